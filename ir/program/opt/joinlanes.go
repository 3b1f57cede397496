package opt

import (
	"fmt"
	"slices"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
	"tgc/target"
)

// Points of a loop that are computed side by side (a tile of a cache's positions) have scores, maxima and
// exponentials each, one or two lanes wide. They are computed alike, so that all of them fit the lanes of
// one register: superword-level parallelism (Larsen and Amarasinghe, PLDI 2000). What each of them computes, and how it
// is rounded, stays as it is. Attention over 4,000 positions, 2 x 6 heads of 128, one Zen 5 core: an iteration of eight
// points and two queries takes 1,064 instructions instead of 1,387, and in cache 21 % less time.

// joinLanes joins values of the loops of a CPU's program.
func joinLanes(p *program.Program, desc *target.Desc) {
	pack, known := packer{program.Resume(p), desc.VectorBytes / ir.F32.Size()}, constants(p)
	p.Body.Each(func(in *program.Instr) {
		if in.Op == program.For && worthJoining(in.Body, pack.width) {
			joinIn(pack, in.Body, known)
		}
	})
	pack.Finish()
	renumber(p)
}

// worthJoining reports a body of loads, prefetches and arithmetic alone that has functions of narrow values. Beside them,
// what joining takes is little; operations of one instruction are hardly worth it, as the lanes of most of them come one by one.
func worthJoining(b *program.Block, width int) bool {
	functions := 0
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if dep.Of(in)&^(dep.Reads|dep.Hints) != 0 && in.Op != program.Yield {
			return false
		}
		if in.Op == program.Alu && halfRegister(in.Result.Type, width) && price(in) > 1 {
			functions++
		}
	}
	return functions > 1
}

// joinIn joins values of a loop's body.
func joinIn(p packer, body *program.Block, known known) {
	alike := findAlike(&program.Block{Args: body.Args, Instrs: expandFolds(p.Builder, body.Instrs)}, p.width)
	if len(alike.of) == 0 || alike.circular() {
		return
	}
	j := &joiner{packer: p, alikeValues: alike, known: known,
		written: make([]bool, len(alike.block.Instrs)), joins: make([]bool, len(alike.classes)), results: make([]pack, len(alike.classes)),
		packs: make(map[string]pack), narrowed: make(map[*program.Value]*program.Value)}
	out := &program.Block{Args: body.Args}
	j.With(out, j.write)
	readers := make(map[*program.Value]int)
	for i := range out.Instrs {
		out.Instrs[i].EachUse(func(v *program.Value) { readers[v]++ })
	}
	dropUnreadIn(out, readers, dep.Pure)
	body.Instrs = out.Instrs
}

// expandFolds writes folds of floats as halves that are combined, as FoldOrder has it, so that several folds can be joined.
func expandFolds(b *program.Builder, list []program.Instr) []program.Instr {
	out := &program.Block{}
	b.With(out, func() {
		for _, in := range list {
			if in.Op != program.FoldLanes || in.Result.Type.Elem != ir.F32 || in.Args[0].Type.Lanes&(in.Args[0].Type.Lanes-1) != 0 {
				b.Emit(in)
				continue
			}
			v := in.Args[0]
			for n := v.Type.Lanes / 2; n > 0; n /= 2 {
				v = b.Alu(in.Ir, b.Slice(v, 0, n), b.Slice(v, n, n))
			}
			out.Instrs[len(out.Instrs)-1].Result = in.Result
		}
	})
	return out.Instrs
}

// joiner writes the body of a loop anew, with alike values in the lanes of registers.
type joiner struct {
	packer
	*alikeValues
	known known

	written, joins []bool // of instructions that are not joined, and of classes
	results        []pack // of classes
	packs          map[string]pack
	narrowed       map[*program.Value]*program.Value
}

// write writes the block in the order that it had, but for what joined values need earlier.
func (j *joiner) write() {
	for i := range j.block.Instrs {
		m, joined := j.of[j.block.Instrs[i].Result]
		switch {
		case !joined:
			j.put(i)
		case m.index == len(j.classes[m.class].instrs)-1:
			j.join(m.class)
		}
	}
}

// need writes what makes a value, if the block does.
func (j *joiner) need(v *program.Value) {
	if m, joined := j.of[v]; joined {
		j.join(m.class)
	} else if i, inside := j.makers[v]; inside {
		j.put(i)
	}
}

// put writes an instruction that is not joined.
func (j *joiner) put(i int) {
	if j.written[i] {
		return
	}
	j.written[i] = true
	in := j.block.Instrs[i]
	for _, v := range in.Args {
		j.need(v)
	}
	if spreads(&in) && j.joined(in.Args[0]) {
		j.spread(in)
		return
	}
	in.Args = lists.Map(in.Args, j.narrow)
	j.Emit(in)
}

// spread writes an instruction that spreads lanes of a joined value, of the register that has them.
func (j *joiner) spread(in program.Instr) {
	m, lanes := j.of[in.Args[0]], in.Args[0].Type.Lanes
	register, first := j.at(j.results[m.class], m.index*lanes)
	mask := in.Mask
	if in.Op == program.Broadcast {
		mask = make([]int, in.Result.Type.Lanes)
	}
	mask = lists.Map(mask, func(lane int) int {
		if lane >= 0 {
			lane = first + lane%lanes
		}
		return lane
	})
	j.Emit(program.Instr{Op: program.Shuffle, Result: in.Result, Args: []*program.Value{register, register}, Mask: mask})
}

// narrow is a value by itself.
func (j *joiner) narrow(v *program.Value) *program.Value {
	m, joined := j.of[v]
	if !joined {
		return v
	}
	if j.narrowed[v] == nil {
		w := j.take(j.results[m.class], m.index*v.Type.Lanes, v.Type.Lanes)
		w.Origin = v.Origin
		j.narrowed[v] = w
	}
	return j.narrowed[v]
}

// join writes the operation of a class, once for all its values.
func (j *joiner) join(n int) {
	if j.joins[n] {
		return
	}
	j.joins[n] = true
	c := j.classes[n]
	in := &j.block.Instrs[c.instrs[0]]
	args := lists.Make(len(in.Args), func(k int) pack { return j.packOf(j.operands(c, k)) })
	if in.Op == program.Shuffle {
		j.results[n] = j.pick(args[0], eachLanes(len(c.instrs), in.Mask, in.Args[0].Type.Lanes))
		return
	}
	j.results[n] = j.operate(in, args)
}

// eachLanes are the same lanes of each of n values that lie one after the other.
func eachLanes(n int, mask []int, lanes int) []int {
	return lists.FlatMap(lists.Upto(n), func(k int) []int {
		return lists.Map(mask, func(lane int) int { return k*lanes + lane%lanes })
	})
}

// packOf puts values of one type together. Of what is not joined, integers and truth values are computed together where they are
// alike; the values themselves stay for others, as scalars cost little.
func (j *joiner) packOf(values []*program.Value) pack {
	key := strings.Join(lists.Map(values, func(v *program.Value) string { return fmt.Sprint(v.ID) }), " ")
	if p, ok := j.packs[key]; ok {
		return p
	}
	p := j.newPack(values)
	j.packs[key] = p
	return p
}

func (j *joiner) newPack(values []*program.Value) pack {
	v := values[0]
	if j.ofOneClass(values) {
		m := j.of[v]
		j.join(m.class)
		return j.pick(j.results[m.class], lists.FlatMap(values, func(v *program.Value) []int {
			return lists.Map(lists.Upto(v.Type.Lanes), func(lane int) int { return j.of[v].index*v.Type.Lanes + lane })
		}))
	}
	if base, offsets := j.steps(values); base != nil {
		return j.stepsFrom(base, offsets)
	}
	if instrs := j.sameOperation(values); instrs != nil {
		return j.operation(instrs)
	}
	for _, v := range values {
		j.need(v)
	}
	if allAre(values, v) {
		return j.repeat(j.narrow(v), len(values))
	}
	return j.concat(lists.Map(values, j.narrow))
}

// steps are integers as one of them, or what it is made of, and what each has beyond it; nil if they are others.
func (j *joiner) steps(values []*program.Value) (base *program.Value, offsets []int64) {
	if t := values[0].Type; t.Lanes != 1 || t.Elem.IsFloat() || t.Elem == ir.Bool || allAre(values, values[0]) {
		return nil, nil
	}
	for _, v := range values {
		from, offset := j.withoutConstant(v)
		if base != nil && from != base {
			return nil, nil
		}
		base, offsets = from, append(offsets, offset)
	}
	return base, offsets
}

// withoutConstant is a value as another one and a constant that is added to it.
func (j *joiner) withoutConstant(v *program.Value) (*program.Value, int64) {
	if i, inside := j.makers[v]; inside {
		if in := &j.block.Instrs[i]; in.Op == program.Alu && in.Ir == ir.OpAdd {
			if c, known := j.known[in.Args[1]]; known {
				return in.Args[0], c
			}
		}
	}
	return v, 0
}

func (j *joiner) stepsFrom(base *program.Value, offsets []int64) pack {
	j.need(base)
	chunk := j.chunk(len(offsets))
	start := j.Broadcast(base, chunk)
	p := pack{lanes: len(offsets)}
	for part := range slices.Chunk(offsets, chunk) {
		p.registers = append(p.registers, j.Alu(ir.OpAdd, start, j.IntLanes(base.Type.Elem, filled(part, chunk)...)))
	}
	return p
}

// sameOperation is what makes integers or truth values that one pure operation makes, lane by lane or from one lane; nil for others.
func (j *joiner) sameOperation(values []*program.Value) []*program.Instr {
	if values[0].Type.Elem.IsFloat() || allAre(values, values[0]) {
		return nil
	}
	var instrs []*program.Instr
	for _, v := range values {
		i, inside := j.makers[v]
		if !inside {
			return nil
		}
		in := &j.block.Instrs[i]
		if instrs = append(instrs, in); !alikeOperations(instrs[0], in) {
			return nil
		}
	}
	return instrs
}

func alikeOperations(a, b *program.Instr) bool {
	if a.Op != b.Op || a.Ir != b.Ir || a.Result.Type != b.Result.Type || a.Op != program.Alu && a.Op != program.Broadcast {
		return false
	}
	for k, v := range b.Args {
		if v.Type != a.Args[k].Type || v.Type.Ptr || a.Op == program.Alu && v.Type.Lanes != a.Result.Type.Lanes {
			return false
		}
	}
	return true
}

func (j *joiner) operation(instrs []*program.Instr) pack {
	in := instrs[0]
	args := lists.Make(len(in.Args), func(k int) pack {
		return j.packOf(lists.Map(instrs, func(in *program.Instr) *program.Value { return in.Args[k] }))
	})
	if in.Op == program.Broadcast {
		return j.pick(args[0], eachLanes(len(instrs), make([]int, in.Result.Type.Lanes), 1))
	}
	return j.operate(in, args)
}
