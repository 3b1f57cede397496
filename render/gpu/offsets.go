package gpu

import (
	"math"

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

// ByteOffsets finds conversions of bytes to f32 that only a sum with a whole
// number reads, by their results. The conversion ends in a subtraction that takes
// the number along: a signed weight costs no more than one without an offset.
func ByteOffsets(p *program.Program) map[*program.Value]Offset {
	f := &offsetFinder{uses: make(map[*program.Value]int), whole: make(map[*program.Value]float64),
		bytes: make(map[*program.Value]bool), found: make(map[*program.Value]Offset)}
	p.Body.Each(f.instr)
	for v := range f.found {
		if f.uses[v] != 1 {
			delete(f.found, v)
		}
	}
	return f.found
}

type offsetFinder struct {
	uses  map[*program.Value]int
	whole map[*program.Value]float64 // f32 constants, of every lane
	bytes map[*program.Value]bool    // conversions of bytes
	found map[*program.Value]Offset
}

func (f *offsetFinder) instr(in *program.Instr) {
	for _, a := range in.Args {
		f.uses[a]++
	}
	if in.Result == nil || in.Result.Type.Elem != ir.F32 || in.Result.Type.Ptr {
		return
	}
	switch {
	case in.Op == program.Const:
		f.constant(in.Result, in.Float)
	case in.Op == program.ConstLanes:
		same := true
		for _, x := range in.Floats {
			same = same && x == in.Floats[0]
		}
		if same && len(in.Floats) > 0 {
			f.constant(in.Result, in.Floats[0])
		}
	case in.Op == program.Broadcast:
		if x, ok := f.whole[in.Args[0]]; ok {
			f.constant(in.Result, x)
		}
	case in.Op == program.Alu && in.Ir == ir.OpCast:
		d := in.Args[0].Type.Elem
		f.bytes[in.Result] = d == ir.U8 || d == ir.I8
	case in.Op == program.Alu && (in.Ir == ir.OpAdd || in.Ir == ir.OpSub) && f.bytes[in.Args[0]]:
		if x, ok := f.whole[in.Args[1]]; ok {
			if in.Ir == ir.OpSub {
				x = -x
			}
			f.found[in.Args[0]] = Offset{Sum: in.Result, Plus: x}
		}
	}
}

func (f *offsetFinder) constant(v *program.Value, x float64) {
	if x == math.Trunc(x) && math.Abs(x) <= mostOffset {
		f.whole[v] = x
	}
}
