package interp

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Lane movement and folds.

// source is where a lane of a result comes from.
type source struct{ arg, lane int }

// sources are those of the result's lanes.
func sources(in *program.Instr) []source {
	var table []source
	switch in.Op {
	case program.Broadcast:
		table = slices.Repeat([]source{{0, 0}}, in.Result.Type.Lanes)
	case program.Extract:
		table = []source{{0, in.Lane}}
	case program.Shuffle:
		n := in.Args[0].Type.Lanes
		for _, i := range in.Mask {
			table = append(table, source{max(i, 0) / n, max(i, 0) % n})
		}
	case program.Concat:
		for k, a := range in.Args {
			for i := range a.Type.Lanes {
				table = append(table, source{k, i})
			}
		}
	}
	return table
}

// movement of one thread's consecutive lanes shares their register.
func (m *machine) movement(in *program.Instr) func() {
	table := sources(in)
	if m.threads == 1 && consecutive(table) {
		from := in.Args[table[0].arg]
		size := from.Type.Elem.Size()
		at := table[0].lane * size
		m.regs[in.Result.ID] = register{data: m.reg(from).data[at : at+len(table)*size]}
		return nil
	}
	return bySize(in.Result.Type.Elem.Size(), moveLanes[uint8], moveLanes[uint16], moveLanes[uint32], moveLanes[uint64])(m, in, table)
}

// consecutive reports lanes of one argument, one after the other.
func consecutive(table []source) bool {
	for i, s := range table {
		if s.arg != table[0].arg || s.lane != table[0].lane+i {
			return false
		}
	}
	return true
}

func moveLanes[T unsigned](m *machine, in *program.Instr, table []source) func() {
	args := lists.Map(in.Args, func(a *program.Value) []T { return lanes[T](m.reg(a)) })
	r := lanes[T](m.define(in.Result))
	if in.Op == program.Broadcast {
		return func() {
			n := len(table)
			for t, x := range args[0] {
				for i := t * n; i < (t+1)*n; i++ {
					r[i] = x
				}
			}
		}
	}
	return func() {
		at := 0
		for t := range m.threads {
			for _, s := range table {
				r[at] = args[s.arg][t*in.Args[s.arg].Type.Lanes+s.lane]
				at++
			}
		}
	}
}

// fold folds lanes in program.FoldOrder.
func (m *machine) fold(in *program.Instr) (func(), error) {
	fold := loopsOf[in.Result.Type.Elem].fold
	if fold == nil {
		return nil, fmt.Errorf("the interpreter has no fold of %s", in.Result.Type)
	}
	return fold(m, in), nil
}

func foldLanes[T number](m *machine, in *program.Instr) func() {
	a, r := lanes[T](m.reg(in.Args[0])), lanes[T](m.define(in.Result))
	n := in.Args[0].Type.Lanes
	t := make([]T, n)
	var steps []func()
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
		for i := range r {
			copy(t, a[i*n:])
			exec(steps)
			r[i] = t[0]
		}
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
