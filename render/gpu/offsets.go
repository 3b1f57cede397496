package gpu

import (
	"math"
	"slices"

	"tgc/ir"
	"tgc/ir/program"
)

// mostOffset bounds whole numbers that are added to a byte: 2^23 with both in it
// is exact in f32.
const mostOffset = 1 << 20

// Offset is a whole number that is added to bytes converted to f32.
type Offset struct {
	Sum  *program.Value // the only reader of the conversion
	Plus float64
}

// byteOffsets finds conversions of bytes to f32 that only a sum with a whole
// number reads, by their results. The conversion ends in a subtraction that takes
// the number along: a signed weight costs no more than one without an offset.
func byteOffsets(p *program.Program, d definitions) map[*program.Value]Offset {
	found := make(map[*program.Value]Offset)
	p.Body.Each(func(in *program.Instr) {
		if in.Op != program.Alu || in.Ir != ir.OpAdd && in.Ir != ir.OpSub || in.Result.Type.Elem != ir.F32 {
			return
		}
		of := d.alu(in.Args[0], ir.OpCast)
		if of == nil || d.readers[of.Result] != 1 || of.Args[0].Type.Elem != ir.U8 && of.Args[0].Type.Elem != ir.I8 {
			return
		}
		if x, ok := d.wholeFloat(in.Args[1]); ok {
			if in.Ir == ir.OpSub {
				x = -x
			}
			found[of.Result] = Offset{Sum: in.Result, Plus: x}
		}
	})
	return found
}

// wholeFloat is the whole number, small enough to be added to a byte, that every lane of v is.
func (d definitions) wholeFloat(v *program.Value) (float64, bool) {
	in := d.made[v]
	if in == nil {
		return 0, false
	}
	x := in.Float
	switch in.Op {
	case program.Const:
	case program.ConstLanes:
		x = in.Floats[0]
		if slices.ContainsFunc(in.Floats, func(y float64) bool { return y != x }) {
			return 0, false
		}
	case program.Broadcast:
		return d.wholeFloat(in.Args[0])
	default:
		return 0, false
	}
	return x, x == math.Trunc(x) && math.Abs(x) <= mostOffset
}
