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

// originOf follows a lane of an offset back through what moves lanes and adds constants. Offsets that
// are read from lie within what is read, so that no sum of at least 32 bits wraps.
func (r *renderer) originOf(o origin) origin {
	for {
		in := r.made[o.of.ID]
		switch {
		case in == nil || o.of.Type.Elem.Size() < 4:
			return o
		case in.Op == program.Shuffle:
			from := in.Mask[o.lane]
			if n := in.Args[0].Type.Lanes; from >= n {
				o.of, o.lane = in.Args[1], from-n
			} else if from >= 0 {
				o.of, o.lane = in.Args[0], from
			} else {
				return o
			}
		case in.Op == program.Broadcast:
			o.of, o.lane = in.Args[0], 0
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

// runsOf is of how many offsets that follow one another all runs of a vector are: a power of two, or 1.
func (r *renderer) runsOf(offsets *program.Value) int {
	lanes := offsets.Type.Lanes
	origins := make([]origin, lanes)
	for i := range origins {
		origins[i] = r.originOf(origin{of: offsets, lane: i})
	}
	n := mostRun
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
	return n
}

// gatherRuns loads n bytes at a time.
func (r *renderer) gatherRuns(p, offsets value.Value, t program.Type, n int) value.Value {
	run := types.NewInt(uint64(8 * n))
	var v value.Value = undef(types.NewVector(uint64(t.Lanes/n), run))
	for i := range t.Lanes / n {
		address := r.bitcast(r.pointerAdd(r.at, memoryType(t.Elem), p, r.lane(offsets, i*n)), types.NewPointer(run))
		x := r.at.NewLoad(run, address)
		x.Align = llir.Align(1)
		v = r.at.NewInsertElement(v, x, intOf(types.I32, int64(i)))
	}
	return r.bitcast(v, valueType(t))
}
