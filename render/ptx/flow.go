package ptx

import (
	"tgc/internal/lists"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Control flow. Carried values and results of branches are registers that are
// written by moves; loops test before the first round and at the end of each.

// Loop is head, body and branch back.
func (r *printer) Loop(in *program.Instr) error {
	index, carried := in.Body.Args[0], in.Body.Args[1:]
	n := gpu.Number{DType: index.Type.Elem, Type: r.TypeOf(index)}
	lo, hi, step := r.LaneAs(in.Args[0], 0, n.Type), r.LaneAs(in.Args[1], 0, n.Type), r.LaneAs(in.Args[2], 0, n.Type)
	i := r.Variables(index)[0]
	r.Move(i, lo)

	var to, from []operand
	registers := make([][]operand, len(in.Results))
	for k, init := range in.Args[3:] {
		registers[k] = r.Variables(carried[k])
		to, from = append(to, registers[k]...), append(from, r.StorageAs(init, carried[k])...)
	}
	r.Assign(to, from)

	head, done := r.label(), r.label()
	runs := lo.Literal() && hi.Literal() && int64(lo.Bits) < int64(hi.Bits)
	if !runs {
		p := r.reg(gpu.Bool)
		r.ins("setp.ge.%s %s, %s, %s", signed(n), p.Name, bits(lo, n.Type), bits(hi, n.Type))
		r.ins("@%s bra %s", p.Name, done)
	}
	r.place(head)
	r.Open()
	r.loops++
	if err := r.Block(in.Body); err != nil {
		return err
	}
	r.loops--
	r.Yields(in.Body, registers, carried)
	r.ins("add.%s %s, %s, %s", signed(n), i.Name, i.Name, bits(step, n.Type))
	p := r.reg(gpu.Bool)
	r.ins("setp.lt.%s %s, %s, %s", signed(n), p.Name, i.Name, bits(hi, n.Type))
	r.ins("@%s bra %s", p.Name, head)
	r.Close()
	if !runs {
		r.place(done)
	}
	for k, v := range in.Results { // as their block arguments: nothing is known of either
		r.Set(v, registers[k])
	}
	return nil
}

// Branch jumps over the arm that is not taken.
func (r *printer) Branch(in *program.Instr) error {
	cond := r.Variable(r.Lane(in.Args[0], 0), gpu.Bool)
	registers := lists.Map(in.Results, func(v *program.Value) []operand { return r.Variables(v) })
	otherwise, join := r.label(), r.label()
	empty := len(in.Results) == 0 && len(in.Else.Instrs) == 1
	if empty {
		otherwise = join
	}
	r.ins("@!%s bra %s", cond.Name, otherwise)
	blocks := r.blocks
	err := r.Arms(in, func() error { return r.arm(in, in.Body, registers) }, func() error {
		r.blocks = blocks
		if empty {
			return nil
		}
		r.ins("bra %s", join)
		r.place(otherwise)
		return r.arm(in, in.Else, registers)
	})
	r.blocks = blocks
	r.place(join)
	return err
}

func (r *printer) arm(in *program.Instr, b *program.Block, registers [][]operand) error {
	r.Open()
	defer r.Close()
	if err := r.Block(b); err != nil {
		return err
	}
	r.Yields(b, registers, in.Results)
	return nil
}

// Grid runs the block's own unit or, persistent, every gridDim-th after it.
func (r *printer) Grid(in *program.Instr) error {
	unit := r.Variables(in.Body.Args[0])[0]
	r.ins("mov.u32 %s, %%ctaid.x", unit.Name)
	if !r.Options.Persistent {
		return r.Block(in.Body)
	}
	head, done := r.label(), r.label()
	stride, p := r.reg(gpu.U32), r.reg(gpu.Bool)
	r.ins("mov.u32 %s, %%nctaid.x", stride.Name)
	r.ins("setp.ge.u32 %s, %s, %d", p.Name, unit.Name, r.Program.Units())
	r.ins("@%s bra %s", p.Name, done)
	r.place(head)
	r.Open()
	if err := r.Block(in.Body); err != nil {
		return err
	}
	r.Close()
	if r.SharedBytes > 0 {
		r.showStores()
		r.ins("bar.sync 0") // the next unit writes what this one reads
	}
	r.ins("add.u32 %s, %s, %s", unit.Name, unit.Name, stride.Name)
	p = r.reg(gpu.Bool)
	r.ins("setp.lt.u32 %s, %s, %d", p.Name, unit.Name, r.Program.Units())
	r.ins("@%s bra %s", p.Name, head)
	r.place(done)
	return nil
}
