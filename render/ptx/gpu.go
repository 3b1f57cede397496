package ptx

import (
	"fmt"
	"strings"

	"tgc/ir"
	"tgc/ir/program"
)

// Instructions of threads and warps.

var axisNames = [...]string{"x", "y", "z"}

func (r *renderer) gpu(in *program.Instr) error {
	switch in.Op {
	case program.ThreadIndex:
		r.threadIndex(in)
	case program.Barrier:
		r.barrier()
	case program.SyncWarp:
		r.ins("bar.warp.sync -1")
	case program.ShuffleLane:
		r.shuffleLane(in)
	case program.WaitGrid:
		if r.desc.SM >= 90 {
			r.waitGrid()
		}
		r.waited = true
	case program.LaunchNext:
		if r.desc.SM >= 90 {
			r.ins("griddepcontrol.launch_dependents")
		}
	case program.Fence:
		r.ins("fence.acq_rel.gpu")
	case program.Atomic:
		return r.atomic(in)
	case program.Mma:
		return r.mma(in)
	case program.AsyncCopy:
		return r.asyncCopy(in)
	case program.AsyncCommit:
		return r.async("cp.async.commit_group")
	case program.AsyncWait:
		return r.async(fmt.Sprintf("cp.async.wait_group %d", in.Count))
	case program.Dot4:
		r.dot4(in)
	default:
		return fmt.Errorf("a GPU has no %s", in.Op)
	}
	return nil
}

// waitGrid waits for the grid before. The wait stands in a loop that runs once
// (a grid has at least one block along z, which ptxas does not know): ptxas
// takes loads of constant memory across a wait in straight code, so that weights
// were loaded behind it, but not into a loop.
func (r *renderer) waitGrid() {
	head, blocks, again := r.label(), r.reg(word), r.reg(predicate)
	r.place(head)
	r.ins("griddepcontrol.wait")
	r.ins("mov.u32 %s, %%nctaid.z", blocks.reg)
	r.ins("setp.eq.u32 %s, %s, 0", again.reg, blocks.reg)
	r.ins("@%s bra %s", again.reg, head)
	r.blocks = blocks
}

// mostBlocks is how many blocks a grid has along z, at most.
const mostBlocks = 65535

// barrier lets the threads of a block meet. Behind a wait it stands in a loop that
// runs once, as the wait does: arithmetic on weights that are still on their way
// would be taken ahead of it, and the block would stop in front of its barrier.
// Each loop needs a condition of its own, as ptxas learns from the last one.
func (r *renderer) barrier() {
	if r.blocks.reg == "" || r.loops > 0 {
		r.ins("bar.sync 0")
		return
	}
	head, again := r.label(), r.reg(predicate)
	r.barriers++
	r.place(head)
	r.ins("bar.sync 0")
	r.ins("setp.eq.u32 %s, %s, %d", again.reg, r.blocks.reg, mostBlocks+r.barriers)
	r.ins("@%s bra %s", again.reg, head)
}

func (r *renderer) threadIndex(in *program.Instr) {
	axes := r.program.Block
	if len(axes) == 0 || axes[in.Lane] == 1 {
		r.set(in.Result, []operand{{}})
		return
	}
	axis := axisNames[len(axes)-1-in.Lane]
	o := r.scopes.Once("thread "+axis, func() operand {
		d := r.reg(word)
		r.ins("mov.u32 %s, %%tid.%s", d.reg, axis)
		return d
	})
	r.set(in.Result, []operand{o})
}

// shuffleLane exchanges whole registers.
func (r *renderer) shuffleLane(in *program.Instr) {
	v := in.Args[0]
	mask := r.lane(in.Args[1], 0).i32()
	exchange := func(o operand) operand {
		d := r.reg(word)
		r.ins("shfl.sync.bfly.b32 %s, %s, %s, 31, -1", d.reg, r.inReg(o, word).reg, mask)
		return d
	}
	if isPacked(v.Type) {
		words := make([]operand, wordsOf(v.Type))
		for i, o := range r.words(v) {
			words[i] = exchange(o)
		}
		r.setWords(in.Result, words)
		return
	}
	lanes := make([]operand, v.Type.Lanes)
	for i := range lanes {
		switch o := r.laneFor(v, i, in.Result); r.classOf(in.Result) {
		case predicate:
			n := number{dtype: ir.U32, class: word}
			lanes[i] = r.compare("ne", n, exchange(r.boolTo(o, n)), operand{})
		case wide:
			lo, hi, d := r.reg(word), r.reg(word), r.reg(wide)
			r.ins("mov.b64 {%s, %s}, %s", lo.reg, hi.reg, r.inReg(o, wide).reg)
			lo, hi = exchange(lo), exchange(hi)
			r.ins("mov.b64 %s, {%s, %s}", d.reg, lo.reg, hi.reg)
			lanes[i] = d
		default:
			lanes[i] = exchange(o)
		}
	}
	r.set(in.Result, lanes)
}

// dot4 is one dp4a per lane; the types of its factors are those of the bytes.
func (r *renderer) dot4(in *program.Instr) {
	signs := [2]string{"u32", "u32"}
	for i, a := range in.Args[1:] {
		if a.Type.Elem == ir.I8 {
			signs[i] = "s32"
		}
	}
	x, y := r.words(in.Args[1]), r.words(in.Args[2])
	lanes := make([]operand, in.Result.Type.Lanes)
	for i := range lanes {
		lanes[i] = r.reg(word)
		acc := r.lane(in.Args[0], i)
		if signs == [2]string{"u32", "u32"} {
			r.ins("dp4a.u32.u32 %s, %s, %s, %s", lanes[i].reg, x[i].i32(), y[i].i32(), acc.i32())
			continue
		}
		r.ins("dp4a.%s.%s %s, %s, %s, %s", signs[0], signs[1], lanes[i].reg, x[i].i32(), y[i].i32(), acc.i32())
	}
	r.set(in.Result, lanes)
}

func (r *renderer) atomic(in *program.Instr) error {
	p, v := in.Args[0], in.Args[1]
	d := in.Result.Type.Elem
	a := r.values[p.ID].address
	if a.array != nil {
		return fmt.Errorf("an atomic access of registers")
	}
	scope := "relaxed.gpu.global"
	if p.Type.Space == program.SharedSpace {
		scope = "relaxed.cta.shared"
	}
	suffix := ""
	c := word
	if d.Size() == 8 {
		c = wide
	}
	switch in.Ir {
	case ir.OpAnd, ir.OpOr, ir.OpXor:
		suffix = fmt.Sprintf("b%d", d.Bits())
	case ir.OpAdd:
		suffix = d.String()
		if !d.IsFloat() {
			suffix = fmt.Sprintf("u%d", d.Bits()) // wraps the same; 64 bits exist unsigned only
		}
	default:
		suffix = number{dtype: d, class: c}.suffix()
	}
	o := r.reg(c)
	value := r.inReg(r.laneAs(v, 0, c), c)
	r.ins("atom.%s.%s.%s %s, %s, %s", scope, strings.ToLower(in.Ir.String()), suffix, o.reg, a, value.reg)
	r.set(in.Result, []operand{o})
	return nil
}

func (r *renderer) mma(in *program.Instr) error {
	acc, x, y := in.Args[0], in.Args[1], in.Args[2]
	shape := program.MmaOf(acc.Type, x.Type, y.Type)
	if r.desc.SM < shape.SM {
		return fmt.Errorf("%s has no mma.%s", r.desc.Name, shape.Name)
	}
	fragment := func(words []operand) string {
		names := make([]string, len(words))
		for i, o := range words {
			names[i] = r.inReg(o, word).reg
		}
		return "{" + strings.Join(names, ", ") + "}"
	}
	sums, _ := r.storage(acc)
	c := fragment(sums)
	a, b := fragment(r.words(x)), fragment(r.words(y))
	out := r.fresh(in.Result)
	r.ins("mma.sync.aligned.%s %s, %s, %s, %s", shape.Name, fragment(out), a, b, c)
	return nil
}

func (r *renderer) async(text string) error {
	if r.desc.SM < 80 {
		return fmt.Errorf("%s has no cp.async", r.desc.Name)
	}
	r.ins("%s", text)
	return nil
}

// asyncCopy: 16 bytes go past the first level, fewer through it.
func (r *renderer) asyncCopy(in *program.Instr) error {
	policy := "ca"
	if in.Count == 16 {
		policy = "cg"
	}
	to, from := r.values[in.Args[0].ID].address, r.values[in.Args[1].ID].address
	return r.async(fmt.Sprintf("cp.async.%s.shared.global %s, %s, %d", policy, to, from, in.Count))
}
