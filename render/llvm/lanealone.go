package llvm

import (
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
	"tgc/ir/program"
)

// Lanes that become addresses. What makes a vector is computed for all its lanes, and each is then taken
// out: vectors wait for loads that wait for vectors. Where a lane is little arithmetic on what a buffer
// holds, it is loaded and computed in general registers by itself: a word, a mask, and the address.

// aloneLane is a lane in general registers: how many instructions it costs, and what writes them.
type aloneLane struct {
	cost  int
	write func() value.Value
}

// alone is the cheapest way to a lane: out of the vector, or by itself.
func (r *renderer) alone(v *program.Value, lane int) aloneLane {
	if lanes, known := r.constLanes(v); known {
		return aloneLane{0, func() value.Value { return intOf(valueType(program.Scalar(v.Type.Elem)), lanes[lane]) }}
	}
	taken := aloneLane{0, func() value.Value { return r.lane(r.value(v), lane) }}
	in := r.made[v.ID]
	if v.Type.Lanes == 1 || r.desc == nil || in == nil || !v.Type.Elem.IsInt() {
		return taken
	}
	if of, from, moved := movedFrom(in, lane); moved {
		return r.alone(of, from)
	}
	taken.cost = r.desc.LaneCost
	computed, ok := r.computedAlone(in, lane)
	if !ok || computed.cost > taken.cost {
		return taken
	}
	return computed
}

// computedAlone is one lane of what an instruction of general registers makes, too.
func (r *renderer) computedAlone(in *program.Instr, lane int) (a aloneLane, ok bool) {
	switch {
	case in.Op == program.Load && r.buffers.ReadOnly(in.Args[0]):
		return aloneLane{1, func() value.Value { return r.loadLane(in, lane) }}, true
	case in.Op != program.Alu || !in.Args[0].Type.Elem.IsInt():
		return aloneLane{}, false
	}
	from, to := in.Args[0].Type, program.Scalar(in.Result.Type.Elem)
	x := r.alone(in.Args[0], lane)
	switch in.Ir {
	case ir.OpCast: // a part of what reads it
		return aloneLane{x.cost, func() value.Value { return r.cast(x.write(), from, to) }}, true
	case ir.OpShl, ir.OpShr:
		counts, known := r.constLanes(in.Args[1])
		if !known || to.Elem.IsSigned() || counts[lane] < 0 || counts[lane] >= int64(to.Elem.Bits()) {
			return aloneLane{}, false
		}
		return aloneLane{x.cost + 1, func() value.Value { return r.shiftedBy(in.Ir, x.write(), counts[lane]) }}, true
	case ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpAdd, ir.OpMul:
		y := r.alone(in.Args[1], lane)
		return aloneLane{x.cost + y.cost + r.aluCost(in, lane), func() value.Value { return r.aluInt(in, from, []value.Value{x.write(), y.write()}) }}, true
	}
	return aloneLane{}, false
}

// aluCost is 1, or nothing for what an address adds and scales by itself.
func (r *renderer) aluCost(in *program.Instr, lane int) int {
	lanes, known := r.constLanes(in.Args[1])
	switch {
	case known && in.Ir == ir.OpAdd:
		return 0
	case known && in.Ir == ir.OpMul && (lanes[lane] == 1 || lanes[lane] == 2 || lanes[lane] == 4 || lanes[lane] == 8):
		return 0
	}
	return 1
}

// shiftedBy shifts an unsigned number by less than its width.
func (r *renderer) shiftedBy(op ir.Op, x value.Value, n int64) value.Value {
	if op == ir.OpShl {
		return r.at.NewShl(x, intOf(x.Type(), n))
	}
	return r.at.NewLShr(x, intOf(x.Type(), n))
}

// loadLane loads one lane of a vector.
func (r *renderer) loadLane(in *program.Instr, lane int) value.Value {
	t := program.Scalar(in.Result.Type.Elem)
	at := r.pointerAdd(r.at, memoryType(t.Elem), r.value(in.Args[0]), intOf(types.I64, int64(lane)))
	return r.load(at, t, min(in.Align, t.Elem.Size()))
}
