package state

import (
	"strings"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/schedule/expr"
)

// Record keeps a decision of the pass that runs. Declined ones only with
// Options.Explain.
func (s *State) Record(v *Value, applied bool, reason string, numbers ...Number) {
	if !applied && !s.Opt.Explain {
		return
	}
	s.Records = append(s.Records, Record{Pass: s.Pass.Name, Key: s.Pass.Key, Value: s.describe(v), At: v.Key, Applied: applied, Reason: reason, Numbers: numbers, value: v.ID})
}

// describe is a value's label and what it computes: its outermost reduces with
// their extents, and the packed formats that it decodes.
func (s *State) describe(v *Value) string {
	if !s.Opt.Explain {
		return v.Label()
	}
	var parts, formats []string
	if s.Height(v.Body) == 0 {
		parts = append(parts, "map")
	}
	for _, u := range ir.Toposort(v.Body) {
		switch u.Op {
		case ir.OpReduce:
			name := "tuple"
			if op := u.Arg.(ir.ReduceArg).Op; op != ir.OpInvalid {
				name = op.String()
			}
			parts = lists.Union(parts, name+":"+expr.ExtentText(u.ReduceRange().Src[0]))
		case ir.OpField:
			formats = lists.Union(formats, u.Arg.(ir.FieldArg).Format)
		}
	}
	return v.Label() + " (" + strings.Join(append(parts, formats...), " ") + ")"
}
