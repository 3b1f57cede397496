package interp

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// Lane movement and folds.

func (m *machine) movement(in *program.Instr) func() {
	switch in.Result.Type.Elem.Size() {
	case 1:
		return moveLanes[uint8](m, in)
	case 2:
		return moveLanes[uint16](m, in)
	case 4:
		return moveLanes[uint32](m, in)
	}
	return moveLanes[uint64](m, in)
}

func moveLanes[T unsigned](m *machine, in *program.Instr) func() {
	switch in.Op {
	case program.Extract:
		m.alias(in, in.Args[0], in.Lane)
		return nil
	case program.Shuffle:
		return shuffle[T](m, in)
	case program.Concat:
		return m.concat(in)
	}
	a, r := lanes[T](m.reg(in.Args[0])), lanes[T](m.define(in.Result))
	if in.Op == program.Insert {
		x, lane := lanes[T](m.reg(in.Args[1])), in.Lane
		return func() {
			copy(r, a)
			r[lane] = x[0]
		}
	}
	return func() { // Broadcast
		x := a[0]
		for i := range r {
			r[i] = x
		}
	}
}

// alias makes the result the lanes of v from first on.
func (m *machine) alias(in *program.Instr, v *program.Value, first int) {
	size := v.Type.Elem.Size()
	at := first * size
	data := m.reg(v).data[at : at+in.Result.Type.Lanes*size]
	m.regs[in.Result.ID] = register{data: data}
}

func shuffle[T unsigned](m *machine, in *program.Instr) func() {
	n := in.Args[0].Type.Lanes
	if v, first, ok := contiguous(in.Mask, n); ok {
		m.alias(in, in.Args[v], first)
		return nil
	}
	a, b, r := lanes[T](m.reg(in.Args[0])), lanes[T](m.reg(in.Args[1])), lanes[T](m.define(in.Result))
	mask := in.Mask
	return func() {
		for i, lane := range mask {
			switch {
			case lane >= n:
				r[i] = b[lane-n]
			case lane >= 0:
				r[i] = a[lane]
			}
		}
	}
}

// contiguous reports a mask that takes consecutive lanes of one argument.
func contiguous(mask []int, n int) (arg, first int, ok bool) {
	first = mask[0]
	for i, lane := range mask {
		if lane != first+i || lane < 0 {
			return 0, 0, false
		}
	}
	if first >= n {
		return 1, first - n, true
	}
	return 0, first, first+len(mask) <= n
}

func (m *machine) concat(in *program.Instr) func() {
	parts := make([][]byte, len(in.Args))
	for i, a := range in.Args {
		parts[i] = m.reg(a).data
	}
	r := m.define(in.Result).data
	return func() {
		at := 0
		for _, p := range parts {
			at += copy(r[at:], p)
		}
	}
}

// fold folds lanes in program.FoldOrder.
func (m *machine) fold(in *program.Instr) (func(), error) {
	var step func()
	switch in.Result.Type.Elem {
	case ir.I8:
		step = foldLanes[int8](m, in)
	case ir.I16:
		step = foldLanes[int16](m, in)
	case ir.I32:
		step = foldLanes[int32](m, in)
	case ir.I64:
		step = foldLanes[int64](m, in)
	case ir.U8:
		step = foldLanes[uint8](m, in)
	case ir.U16:
		step = foldLanes[uint16](m, in)
	case ir.U32:
		step = foldLanes[uint32](m, in)
	case ir.U64:
		step = foldLanes[uint64](m, in)
	case ir.F32:
		step = foldLanes[float32](m, in)
	case ir.F64:
		step = foldLanes[float64](m, in)
	}
	if step == nil {
		return nil, fmt.Errorf("the interpreter has no fold of %s", in.Result.Type)
	}
	return step, nil
}

func foldLanes[T number](m *machine, in *program.Instr) func() {
	a, r := lanes[T](m.reg(in.Args[0])), lanes[T](m.define(in.Result))
	t := make([]T, len(a))
	var steps []func()
	n := len(a)
	if n&(n-1) != 0 {
		for i := 1; i < n; i++ {
			steps = append(steps, arithmetic(in.Ir, operands[T]{r: t[:1], a: t[:1], b: t[i : i+1]}))
		}
	} else {
		for h := n / 2; h >= 1; h /= 2 {
			steps = append(steps, arithmetic(in.Ir, operands[T]{r: t[:h], a: t[:h], b: t[h : 2*h]}))
		}
	}
	return func() {
		copy(t, a)
		exec(steps)
		r[0] = t[0]
	}
}

func (m *machine) dot4(in *program.Instr) func() {
	signed := [2]bool{in.Args[1].Type.Elem == ir.I8, in.Args[2].Type.Elem == ir.I8}
	switch signed {
	case [2]bool{false, true}:
		return dot4Of[uint8, int8](m, in)
	case [2]bool{true, false}:
		return dot4Of[int8, uint8](m, in)
	case [2]bool{true, true}:
		return dot4Of[int8, int8](m, in)
	}
	return dot4Of[uint8, uint8](m, in)
}

func dot4Of[X, Y int8 | uint8](m *machine, in *program.Instr) func() {
	acc, x, y := lanes[int32](m.reg(in.Args[0])), lanes[X](m.reg(in.Args[1])), lanes[Y](m.reg(in.Args[2]))
	r := lanes[int32](m.define(in.Result))
	return func() {
		for i := range r {
			sum := acc[i]
			for k := 4 * i; k < 4*i+4; k++ {
				sum += int32(x[k]) * int32(y[k])
			}
			r[i] = sum
		}
	}
}
