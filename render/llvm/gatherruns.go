package llvm

import (
	llir "github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
	"tgc/ir/program"
)

// Gathers of runs: the entries of a grid are several bytes each, side by side, so that lanes of bytes
// read as many neighbours in one load.

// origin is a lane of a value and what was added to it.
type origin struct {
	of    *program.Value
	lane  int
	added int64
}

// movedFrom is the lane of another value that a lane was moved from, if it was only moved.
func movedFrom(in *program.Instr, lane int) (of *program.Value, from int, moved bool) {
	switch {
	case in == nil:
	case in.Op == program.Broadcast:
		return in.Args[0], 0, true
	case in.Op == program.Shuffle && in.Mask[lane] >= 0:
		n := in.Args[0].Type.Lanes
		return in.Args[in.Mask[lane]/n], in.Mask[lane] % n, true
	}
	return nil, 0, false
}

// originOf follows a lane of an offset back through what moves lanes and adds constants. Offsets that
// are read from lie within what is read, so that no sum of at least 32 bits wraps.
func (r *renderer) originOf(o origin) origin {
	for {
		in := r.made[o.of.ID]
		if of, lane, moved := movedFrom(in, o.lane); moved {
			o.of, o.lane = of, lane
			continue
		}
		switch {
		case in == nil || o.of.Type.Elem.Size() < 4:
			return o
		case in.Op == program.Alu && in.Ir == ir.OpCast && in.Args[0].Type.Elem.Size() >= 4 && !in.Args[0].Type.Elem.IsFloat():
			o.of = in.Args[0]
		case in.Op == program.Alu && in.Ir == ir.OpAdd:
			var ok bool
			if o, ok = r.addedTo(in, o); !ok {
				return o
			}
		default:
			return o
		}
	}
}

// addedTo follows a lane of a sum with a constant.
func (r *renderer) addedTo(in *program.Instr, o origin) (origin, bool) {
	for i, v := range in.Args {
		if lanes, ok := r.constLanes(in.Args[1-i]); ok {
			return origin{v, o.lane, o.added + lanes[o.lane]}, true
		}
	}
	return o, false
}

// mostRun is the longest run that is one load of a general register.
const mostRun = 8

// runsOf are the runs of offsets that follow one another, of all lanes: where each starts, and how many
// each has, a power of two.
func (r *renderer) runsOf(offsets *program.Value) (starts []origin, n int) {
	lanes := offsets.Type.Lanes
	origins := make([]origin, lanes)
	for i := range origins {
		origins[i] = r.originOf(origin{of: offsets, lane: i})
	}
	n = mostRun
	for i := 1; i < lanes; i++ {
		follows := origins[i-1]
		if follows.added++; origins[i] != follows {
			for i%n != 0 {
				n /= 2
			}
		}
	}
	for lanes%n != 0 {
		n /= 2
	}
	for i := 0; i < lanes; i += n {
		starts = append(starts, origins[i])
	}
	return starts, n
}

// gatherRuns loads n bytes at a time. Eight are a double: a load can take one as the upper half of a register
// as it is, which LLVM does not find for integers.
func (r *renderer) gatherRuns(p value.Value, starts []origin, t program.Type, n int) value.Value {
	var run types.Type = types.NewInt(uint64(8 * n))
	if n == 8 {
		run = types.Double
	}
	var v value.Value = undef(types.NewVector(uint64(t.Lanes/n), run))
	for i, o := range starts {
		at := r.pointerAdd(r.at, memoryType(t.Elem), p, r.intToInt(r.alone(o.of, o.lane).write(), o.of.Type.Elem, ir.I64, types.I64))
		if o.added != 0 {
			at = r.pointerAdd(r.at, memoryType(t.Elem), at, intOf(types.I64, o.added))
		}
		x := r.at.NewLoad(run, r.bitcast(at, types.NewPointer(run)))
		x.Align = llir.Align(1)
		v = r.at.NewInsertElement(v, x, intOf(types.I32, int64(i)))
	}
	return r.bitcast(v, valueType(t))
}
