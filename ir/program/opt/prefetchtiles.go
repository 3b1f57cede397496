package opt

import (
	"tgc/ir"
	"tgc/ir/program"
)

// prefetchTiles moves the loads of global memory before a loop's last barrier one
// iteration ahead: a loop that fills shared memory and then computes with it issues
// the next iteration's loads before it computes, and their latency passes
// meanwhile. Loops that run matrix instructions are those where there is enough to
// compute. What is loaded must be known from the loop's index, and nothing of it
// may be written by this program. Of a loop that may have no iteration the first loads
// are guarded.
func prefetchTiles(p *program.Program, registers int) {
	l := tileLoopsOf(p, registers)
	l.walk(p.Body, l.rotate)
}

// tileRegisters is how many registers of a thread hold what the next iteration's
// shared-memory tiles are made of.
const tileRegisters = 64

// tileLoops rewrites loops that fill shared memory and compute with it.
type tileLoops struct {
	program   *program.Program
	known     known
	root      map[*program.Value]bool // pointers into what the program only reads
	registers int                     // of a thread that hold loads
	depth     int                     // loops around the block that is walked
}

func tileLoopsOf(p *program.Program, registers int) *tileLoops {
	l := &tileLoops{program: p, known: constants(p), root: make(map[*program.Value]bool), registers: registers}
	for i := range p.Params {
		if x := &p.Params[i]; x.Kind == program.ParamBuffer && !x.Write || x.Kind == program.ParamTable {
			l.root[x.Value] = true
		}
	}
	p.Body.Each(func(in *program.Instr) {
		if in.Op == program.PtrAdd || in.Op == program.Alu && in.Result.Type.Ptr {
			l.root[in.Result] = l.root[in.Args[0]]
		}
	})
	return l
}

// walk rewrites the loops in a block, inner ones first; rewrite gives what goes before
// a loop.
func (l *tileLoops) walk(b *program.Block, rewrite func(loop *program.Instr) []program.Instr) {
	for i := 0; i < len(b.Instrs); i++ {
		in := &b.Instrs[i]
		if in.Op == program.For {
			l.depth++
		}
		for inner := range in.Blocks() {
			l.walk(inner, rewrite)
		}
		if in.Op == program.For {
			l.depth--
			before := rewrite(in)
			b.Instrs = append(b.Instrs[:i:i], append(before, b.Instrs[i:]...)...)
			i += len(before)
		}
	}
}

// rotate changes a loop and returns what goes in front of it: the loads of the
// first iteration.
func (l *tileLoops) rotate(loop *program.Instr) []program.Instr {
	body := loop.Body
	last, computes := -1, false
	for i := range body.Instrs {
		switch body.Instrs[i].Op {
		case program.Barrier:
			last = i
		case program.Mma:
			computes = true
		}
	}
	lo, okLo := l.known[loop.Args[0]]
	hi, okHi := l.known[loop.Args[1]]
	known := okLo && okHi
	if last < 0 || !computes || known && hi-lo < 2 {
		return nil
	}
	s := l.slicerOf(loop)
	var loads []int
	for i := range body.Instrs[:last] {
		if in := &body.Instrs[i]; (in.Op == program.Load || in.Op == program.Gather && known) && l.root[in.Args[0]] && s.take(in) {
			loads = append(loads, i)
		}
	}
	if len(loads) == 0 {
		return nil
	}
	index, step := body.Args[0], loop.Args[2]
	first := l.copySlice(s, loads, map[*program.Value]*program.Value{index: loop.Args[0]})
	sum, end, next := l.value(index.Type), l.value(index.Type), l.value(index.Type)
	ahead := []program.Instr{
		{Op: program.Alu, Ir: ir.OpAdd, Result: sum, Args: []*program.Value{index, step}},
		{Op: program.Alu, Ir: ir.OpSub, Result: end, Args: []*program.Value{loop.Args[1], step}},
		{Op: program.Alu, Ir: ir.OpMin, Result: next, Args: []*program.Value{sum, end}},
	}
	second := l.copySlice(s, loads, map[*program.Value]*program.Value{index: next})
	ahead = append(ahead, second.instrs...)
	yield := &body.Instrs[len(body.Instrs)-1]
	held := make(map[*program.Value]*program.Value)
	for _, i := range loads {
		r := body.Instrs[i].Result
		v := l.value(r.Type)
		held[r] = v
		body.Args = append(body.Args, v)
		loop.Args = append(loop.Args, first.copies[r])
		yield.Args = append(yield.Args, second.copies[r])
		loop.Results = append(loop.Results, l.value(r.Type))
	}
	dropped := make(map[int]bool)
	for _, i := range loads {
		dropped[i] = true
	}
	var out []program.Instr
	for i := range body.Instrs {
		if !dropped[i] {
			out = append(out, body.Instrs[i])
		}
		if i == last {
			out = append(out, ahead...)
		}
	}
	body.Instrs = out
	renameValues(body, held)
	if !known {
		return l.guarded(first.instrs, loop)
	}
	return first.instrs
}

// slicerOf notes where the values of a loop's body are made.
func (l *tileLoops) slicerOf(loop *program.Instr) *slicer {
	body := loop.Body
	s := &slicer{made: make(map[*program.Value]int), body: body, need: make(map[int]bool), known: make(map[int]bool), registers: l.registers}
	for _, v := range body.Args {
		s.made[v] = -1
	}
	delete(s.made, body.Args[0])
	for i := range body.Instrs {
		in := &body.Instrs[i]
		for _, r := range append(in.Results[:len(in.Results):len(in.Results)], in.Result) {
			if r != nil {
				s.made[r] = i
			}
		}
	}
	return s
}

// guarded loads only if a loop has an iteration.
func (l *tileLoops) guarded(first []program.Instr, loop *program.Instr) []program.Instr {
	some := l.value(program.Scalar(ir.Bool))
	out := []program.Instr{{Op: program.Alu, Ir: ir.OpCmpLt, Result: some, Args: []*program.Value{loop.Args[0], loop.Args[1]}}}
	zeros := make(map[program.Type]*program.Value)
	for _, in := range first {
		if in.Op == program.Load {
			t := in.Result.Type
			if zeros[t] == nil {
				zeros[t] = l.value(t)
				out = append(out, program.Instr{Op: program.Const, Result: zeros[t]})
			}
			in.Op, in.Args = program.Guarded, []*program.Value{some, in.Args[0], zeros[t]}
		}
		out = append(out, in)
	}
	return out
}

func (l *tileLoops) value(t program.Type) *program.Value {
	v := &program.Value{ID: l.program.Values, Type: t}
	l.program.Values++
	return v
}

// slicer finds what loads need of a loop's body.
type slicer struct {
	made      map[*program.Value]int // instruction of the body; -1: a carried value
	body      *program.Block
	need      map[int]bool
	known     map[int]bool // computable from the loop's index
	registers int
}

// take reports a load that can be done ahead, and that its registers are left.
func (s *slicer) take(in *program.Instr) bool {
	n := (in.Result.Type.Lanes*in.Result.Type.Elem.Size() + 3) / 4
	for _, a := range in.Args {
		if n > s.registers || !s.computable(a) {
			return false
		}
	}
	for _, a := range in.Args {
		s.mark(a)
	}
	s.registers -= n
	return true
}

// computable reports a value that index arithmetic makes of the loop's index and of
// what stands outside.
func (s *slicer) computable(v *program.Value) bool {
	i, inside := s.made[v]
	if !inside || i >= 0 && s.known[i] {
		return true
	}
	if i < 0 {
		return false
	}
	switch in := &s.body.Instrs[i]; in.Op {
	case program.Alu, program.Const, program.ConstLanes, program.Iota, program.Broadcast, program.Extract, program.Insert, program.Shuffle, program.Concat, program.PtrAdd:
		for _, a := range in.Args {
			if !s.computable(a) {
				return false
			}
		}
		s.known[i] = true
		return true
	}
	return false
}

func (s *slicer) mark(v *program.Value) {
	i, inside := s.made[v]
	if !inside || s.need[i] {
		return
	}
	s.need[i] = true
	for _, a := range s.body.Instrs[i].Args {
		s.mark(a)
	}
}

// slice is a copy of loads with what they need.
type slice struct {
	instrs []program.Instr
	copies map[*program.Value]*program.Value
}

func (l *tileLoops) copySlice(s *slicer, loads []int, with map[*program.Value]*program.Value) slice {
	out := slice{copies: with}
	wanted := make(map[int]bool)
	for _, i := range loads {
		wanted[i] = true
	}
	for i := range s.body.Instrs {
		if !s.need[i] && !wanted[i] {
			continue
		}
		in := s.body.Instrs[i]
		in.Args = append([]*program.Value(nil), in.Args...)
		for k, a := range in.Args {
			if v := with[a]; v != nil {
				in.Args[k] = v
			}
		}
		copied := l.value(in.Result.Type)
		with[in.Result] = copied
		l.root[copied] = l.root[in.Result]
		in.Result = copied
		out.instrs = append(out.instrs, in)
	}
	return out
}

// renameValues replaces values in a block and all in it.
func renameValues(b *program.Block, with map[*program.Value]*program.Value) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		for k, a := range in.Args {
			if v := with[a]; v != nil {
				in.Args[k] = v
			}
		}
		if in.Body != nil {
			renameValues(in.Body, with)
		}
		if in.Else != nil {
			renameValues(in.Else, with)
		}
	}
}
