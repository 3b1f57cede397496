package ptx

import (
	"fmt"

	"tgc/ir/program"
	"tgc/render/gpu"
)

// Control flow. Carried values and results of branches are registers that are
// written by moves; loops test before the first round and at the end of each.

// assign moves all of `from` to `to` at once: where a target is still needed as
// a source of a later move, its old value is saved first.
func (r *renderer) assign(to, from []operand, classes []class) {
	for i := range to {
		if to[i] == from[i] {
			continue
		}
		for j := i + 1; j < len(from); j++ {
			if from[j] == to[i] && from[j] != to[j] {
				saved := r.reg(classes[j])
				r.move(saved, from[j], classes[j])
				for k := j; k < len(from); k++ {
					if from[k] == to[i] {
						from[k] = saved
					}
				}
				break
			}
		}
		r.move(to[i], from[i], classes[i])
	}
}

// carry collects registers of several values for assign.
type carry struct {
	to, from []operand
	classes  []class
}

func (r *renderer) carried(c *carry, to []operand, v, from *program.Value) {
	source := r.like(from, v)
	if len(source) != len(to) {
		panic(fmt.Sprintf("render/ptx: %d registers for %d", len(source), len(to)))
	}
	class := r.classOf(v)
	for i := range to {
		c.to, c.from, c.classes = append(c.to, to[i]), append(c.from, source[i]), append(c.classes, class)
	}
}

func (r *renderer) loop(in *program.Instr) error {
	index := in.Body.Args[0]
	c := r.classOf(index)
	lo, hi, step := r.bound(in.Args[0], c), r.bound(in.Args[1], c), r.bound(in.Args[2], c)
	i := r.fresh(index)[0]
	r.move(i, lo, c)

	var start carry
	registers := make([][]operand, len(in.Results))
	for k, init := range in.Args[3:] {
		arg := in.Body.Args[1+k]
		registers[k] = r.fresh(arg)
		r.carried(&start, registers[k], arg, init)
	}
	r.assign(start.to, start.from, start.classes)

	head, done := r.label(), r.label()
	suffix := "s32"
	if c == wide {
		suffix = "s64"
	}
	runs := lo.literal() && hi.literal() && int64(lo.bits) < int64(hi.bits)
	if !runs {
		p := r.reg(predicate)
		r.ins("setp.ge.%s %s, %s, %s", suffix, p.reg, r.print(lo, c), r.print(hi, c))
		r.ins("@%s bra %s", p.reg, done)
	}
	r.place(head)
	r.scopes.Open()
	r.loops++
	if err := r.block(in.Body); err != nil {
		return err
	}
	r.loops--
	var next carry
	for k, v := range gpu.Yielded(in.Body) {
		r.carried(&next, registers[k], in.Body.Args[1+k], v)
	}
	r.assign(next.to, next.from, next.classes)
	r.ins("add.%s %s, %s, %s", suffix, i.reg, i.reg, r.print(step, c))
	p := r.reg(predicate)
	r.ins("setp.lt.%s %s, %s, %s", suffix, p.reg, i.reg, r.print(hi, c))
	r.ins("@%s bra %s", p.reg, head)
	r.scopes.Close()
	if !runs {
		r.place(done)
	}
	for k, v := range in.Results { // as their block arguments: nothing is known of either
		if isPacked(v.Type) {
			r.setWords(v, registers[k])
		} else {
			r.set(v, registers[k])
		}
	}
	return nil
}

func (r *renderer) bound(v *program.Value, c class) operand {
	if c == wide {
		return r.wideLane(v, 0)
	}
	return r.lane(v, 0)
}

func (r *renderer) print(o operand, c class) string {
	if c == wide {
		return o.i64()
	}
	return o.i32()
}

func (r *renderer) branch(in *program.Instr) error {
	cond := r.inReg(r.lane(in.Args[0], 0), predicate)
	registers := make([][]operand, len(in.Results))
	for k, v := range in.Results {
		registers[k] = r.fresh(v)
	}
	otherwise, join := r.label(), r.label()
	empty := len(in.Results) == 0 && len(in.Else.Instrs) == 1
	if empty {
		otherwise = join
	}
	r.ins("@!%s bra %s", cond.reg, otherwise)
	waited, shared, blocks := r.waited, r.shared, r.blocks
	if err := r.arm(in, in.Body, registers); err != nil {
		return err
	}
	if r.uniform[in.Args[0]] {
		shared, r.shared = r.shared, shared // the arms use one place
	}
	bodyWaited := r.waited
	r.waited, r.blocks = waited, blocks
	if !empty {
		r.ins("bra %s", join)
		r.place(otherwise)
		if err := r.arm(in, in.Else, registers); err != nil {
			return err
		}
	}
	r.waited, r.blocks = r.waited && bodyWaited, blocks
	r.shared = max(r.shared, shared)
	r.place(join)
	return nil
}

func (r *renderer) arm(in *program.Instr, b *program.Block, registers [][]operand) error {
	r.scopes.Open()
	defer r.scopes.Close()
	if err := r.block(b); err != nil {
		return err
	}
	var out carry
	for k, v := range gpu.Yielded(b) {
		r.carried(&out, registers[k], in.Results[k], v)
	}
	r.assign(out.to, out.from, out.classes)
	return nil
}

// grid runs the block's own unit or, persistent, every gridDim-th after it.
func (r *renderer) grid(in *program.Instr) error {
	index := in.Body.Args[0]
	unit := r.fresh(index)[0]
	r.ins("mov.u32 %s, %%ctaid.x", unit.reg)
	if !r.opt.Persistent {
		return r.block(in.Body)
	}
	head, done := r.label(), r.label()
	stride, p := r.reg(word), r.reg(predicate)
	r.ins("mov.u32 %s, %%nctaid.x", stride.reg)
	r.ins("setp.ge.u32 %s, %s, %d", p.reg, unit.reg, r.program.Units())
	r.ins("@%s bra %s", p.reg, done)
	r.place(head)
	r.scopes.Open()
	if err := r.block(in.Body); err != nil {
		return err
	}
	r.scopes.Close()
	if r.shared > 0 {
		r.ins("bar.sync 0") // the next unit writes what this one reads
	}
	r.ins("add.u32 %s, %s, %s", unit.reg, unit.reg, stride.reg)
	p = r.reg(predicate)
	r.ins("setp.lt.u32 %s, %s, %d", p.reg, unit.reg, r.program.Units())
	r.ins("@%s bra %s", p.reg, head)
	r.place(done)
	return nil
}
