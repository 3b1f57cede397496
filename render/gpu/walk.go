package gpu

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// Each renders the instructions of a block in order. An error names the innermost
// instruction.
func Each(b *program.Block, render func(*program.Instr) error) error {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if err := render(in); err != nil {
			if in.Body != nil {
				return err
			}
			return fmt.Errorf("`%s`: %w", program.PrintInstr(in), err)
		}
	}
	return nil
}

// ConstantBits are the lanes of a Const or ConstLanes: integers extended by
// their sign, floats as their bits.
func ConstantBits(in *program.Instr) []uint64 {
	t := in.Result.Type
	lanes := make([]uint64, t.Lanes)
	for i := range lanes {
		n, f := in.Int, in.Float
		switch {
		case in.Op == program.ConstLanes && t.Elem.IsFloat():
			f = in.Floats[i]
		case in.Op == program.ConstLanes:
			n = in.Ints[i]
		}
		lanes[i] = uint64(n)
		if t.Elem.IsFloat() {
			lanes[i] = ir.FloatBits(t.Elem, f)
		}
	}
	return lanes
}

// Fold combines lanes in program.FoldOrder: halves for a power of two, else one
// after the other.
func Fold[T any](lanes []T, step func(x, y T) (T, error)) (T, error) {
	var err error
	count := len(lanes)
	if count&(count-1) != 0 {
		for _, o := range lanes[1:] {
			if lanes[0], err = step(lanes[0], o); err != nil {
				return lanes[0], err
			}
		}
		return lanes[0], nil
	}
	for count > 1 {
		count /= 2
		for i := range count {
			if lanes[i], err = step(lanes[i], lanes[i+count]); err != nil {
				return lanes[0], err
			}
		}
	}
	return lanes[0], nil
}
