package rewrite

import (
	"fmt"
	"strings"

	"tgc/ir"
)

// show writes a small expression in one line.
func show(u *ir.UOp) string {
	switch u.Op {
	case ir.OpConst:
		if v, ok := u.Int(); ok {
			return fmt.Sprintf("%d:%s", v, u.DType)
		}
		v, _ := u.Float()
		return fmt.Sprintf("%v:%s", v, u.DType)
	case ir.OpArg:
		return fmt.Sprintf("a%d:%s", u.Arg, u.DType)
	case ir.OpVar:
		return u.Arg.(ir.VarArg).Name
	case ir.OpRange:
		return fmt.Sprintf("r%d<%s", u.Arg.(ir.RangeArg).ID, show(u.Src[0]))
	}
	parts := make([]string, len(u.Src))
	for i, s := range u.Src {
		parts[i] = show(s)
	}
	return fmt.Sprintf("%s:%s(%s)", u.Op, u.DType, strings.Join(parts, ", "))
}

func showEnv(leaves []*ir.UOp, e env) string {
	parts := make([]string, len(leaves))
	for i, u := range leaves {
		parts[i] = fmt.Sprintf("%s = %v", show(u), e[u])
	}
	return strings.Join(parts, ", ")
}
