package opt

import (
	"tgc/ir"
	"tgc/ir/program"
)

// Panels in turn. A loop that fills shared memory and then computes with it has two
// phases, and each waits for the other at a barrier: while the block decodes, its
// matrix instructions rest. With two sets of arrays the block computes with one
// while it fills the other:
//
//	barrier; fill a[i]; barrier; compute a[i]
//
// becomes
//
//	fill a[0]; for i: barrier; compute a[i%2], and fill a[(i+1)%2] between
//
// What fills stands between the matrix instructions, which leave most issue slots
// free, and what it is made of is loaded half an iteration ahead.

// turner takes one loop apart.
type turner struct {
	*tileLoops
	shared  int64 // bytes that a block may have
	loop    *program.Instr
	body    *program.Block
	first   int // barrier in front of what fills
	last    int // and behind it
	slices  *slicer
	arrays  map[*program.Value]bool           // shared arrays that the loop fills
	pointer map[*program.Value]*program.Value // a pointer of the program -> the array it points into
	chain   map[*program.Value]*program.Instr // how it was made
}

// doubleBuffer rewrites the loops that fill tiles and compute with them. registers bounds
// what a thread holds of loads, shared the bytes of two sets of tiles.
func doubleBuffer(p *program.Program, registers int, shared int64) {
	l := tileLoopsOf(p, registers)
	l.walk(p.Body, func(loop *program.Instr) []program.Instr { return l.turns(loop, shared) })
}

// turns rewrites a loop that fills panels in turn, and returns what goes before
// it; nil where it is no such loop, or shared memory does not hold two sets.
func (l *tileLoops) turns(loop *program.Instr, shared int64) []program.Instr {
	t := &turner{tileLoops: l, shared: shared, loop: loop, body: loop.Body, arrays: make(map[*program.Value]bool),
		pointer: make(map[*program.Value]*program.Value), chain: make(map[*program.Value]*program.Instr)}
	if !t.shape() || !t.ownArrays() {
		return nil
	}
	t.slices = l.slicerOf(loop)
	loads := t.loads()
	fill, ok := t.fillSlice(loads)
	if !ok {
		return nil
	}
	rest, ok := t.computeSlice(loads)
	if !ok {
		return nil
	}
	t.double()
	return t.rewrite(loads, fill, rest)
}

// shape reports a loop over 0, 1, .. with two barriers of its own, matrix
// instructions behind the second and nothing in front of the first but arithmetic.
func (t *turner) shape() bool {
	lo, okLo := t.known[t.loop.Args[0]]
	hi, okHi := t.known[t.loop.Args[1]]
	step, okStep := t.known[t.loop.Args[2]]
	if !okLo || !okHi || !okStep || lo != 0 || step != 1 || hi < 2 {
		return false
	}
	t.first, t.last = -1, -1
	computes := false
	for i := range t.body.Instrs {
		in := &t.body.Instrs[i]
		switch {
		case in.Op == program.Barrier && t.first < 0:
			t.first = i
		case in.Op == program.Barrier && t.last < 0:
			t.last = i
		case in.Op == program.Barrier:
			return false
		case in.Op == program.Mma:
			computes = true
			if t.last < 0 {
				return false
			}
		case t.first < 0 && !isPure(in) || t.last >= 0 && (writes(in) || in.Body != nil):
			return false
		case in.Body != nil && holdsOp(in.Body, program.Barrier):
			return false
		}
	}
	return computes && t.last >= 0
}

// holdsOp reports an instruction in a block or in one within it.
func holdsOp(b *program.Block, op program.Op) bool {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Op == op || in.Body != nil && holdsOp(in.Body, op) || in.Else != nil && holdsOp(in.Else, op) {
			return true
		}
	}
	return false
}

func isPure(in *program.Instr) bool {
	switch in.Op {
	case program.Alu, program.Const, program.ConstLanes, program.Iota, program.Broadcast, program.Extract, program.Insert, program.Shuffle, program.Concat, program.FoldLanes, program.PtrAdd, program.ThreadIndex:
		return true
	}
	return false
}

func writes(in *program.Instr) bool {
	switch in.Op {
	case program.Store, program.Scatter, program.Atomic, program.AsyncCopy, program.AsyncCommit, program.AsyncWait, program.ShuffleLane, program.SyncWarp, program.WaitGrid, program.LaunchNext, program.Fence:
		return true
	}
	return false
}

// ownArrays finds the arrays that the loop fills: shared ones, which nothing outside
// of the loop uses, and into which nothing else is written by the loop.
func (t *turner) ownArrays() bool {
	t.follow(t.program.Body)
	ok := true
	var filled func(b *program.Block, from, to int)
	filled = func(b *program.Block, from, to int) {
		for i := from; i < to; i++ {
			in := &b.Instrs[i]
			if writes(in) {
				array := t.pointer[in.Args[0]]
				ok = ok && in.Op == program.Store && array != nil
				t.arrays[array] = true
			}
			for _, inner := range []*program.Block{in.Body, in.Else} {
				if inner != nil {
					filled(inner, 0, len(inner.Instrs))
				}
			}
		}
	}
	filled(t.body, t.first, t.last)
	inside, all := 0, 0
	t.count(t.body, &inside)
	t.count(t.program.Body, &all)
	return ok && inside == all && t.room()
}

// follow notes the pointers into shared arrays.
func (t *turner) follow(b *program.Block) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		switch {
		case in.Op == program.Alloca && in.Result.Type.Space == program.SharedSpace:
			t.pointer[in.Result], t.chain[in.Result] = in.Result, in
		case in.Op == program.PtrAdd && t.pointer[in.Args[0]] != nil:
			t.pointer[in.Result], t.chain[in.Result] = t.pointer[in.Args[0]], in
		}
		for _, inner := range []*program.Block{in.Body, in.Else} {
			if inner != nil {
				t.follow(inner)
			}
		}
	}
}

// count adds the accesses to the arrays in a block; a use that is none counts many.
func (t *turner) count(b *program.Block, n *int) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		for k, a := range in.Args {
			if array := t.pointer[a]; array != nil && t.arrays[array] && in.Op != program.PtrAdd {
				*n++
				if k > 0 || in.Op != program.Load && in.Op != program.Store {
					*n += 1 << 20
				}
			}
		}
		for _, inner := range []*program.Block{in.Body, in.Else} {
			if inner != nil {
				t.count(inner, n)
			}
		}
	}
}

// room reports shared memory for two sets.
func (t *turner) room() bool {
	bytes := int64(0)
	for v, in := range t.chain {
		if in.Op == program.Alloca {
			n := turnBytes(in)
			if t.arrays[v] {
				n *= 2
			}
			bytes += n
		}
	}
	return bytes <= t.shared
}

// turnBytes is the size of an array in a set: aligned, so that the next is too.
func turnBytes(in *program.Instr) int64 {
	const align = 128
	return (in.Count*int64(in.Result.Type.Elem.Size()) + align - 1) / align * align
}

// loads are what can be loaded ahead, in front of the barrier behind what fills.
func (t *turner) loads() []int {
	var out []int
	for i := range t.body.Instrs[:t.last] {
		if in := &t.body.Instrs[i]; (in.Op == program.Load || in.Op == program.Gather) && t.root[in.Args[0]] && t.slices.take(in) {
			out = append(out, i)
		}
	}
	return out
}

// fillSlice lists what fills, with the arithmetic that it needs.
func (t *turner) fillSlice(loads []int) ([]int, bool) {
	var roots []int
	for i := t.first + 1; i < t.last; i++ {
		if in := &t.body.Instrs[i]; writes(in) || in.Body != nil {
			roots = append(roots, i)
		}
	}
	need, ok := t.backward(roots, loads, true)
	return need, ok && len(roots) > 0
}

// computeSlice lists what stands behind the second barrier, with what it needs of
// what stands before.
func (t *turner) computeSlice(loads []int) ([]int, bool) {
	var roots []int
	for i := t.last + 1; i < len(t.body.Instrs); i++ {
		roots = append(roots, i)
	}
	return t.backward(roots, loads, false)
}

// backward is a slice of the body, in order. Of its first part only arithmetic may
// be in it and, of what fills, loads; of carried values, only in what computes.
func (t *turner) backward(roots, loads []int, fills bool) ([]int, bool) {
	ahead := make(map[int]bool)
	for _, i := range loads {
		ahead[i] = true
	}
	in, ok := make(map[int]bool), true
	var visit func(i int)
	var uses func(instr *program.Instr)
	uses = func(instr *program.Instr) {
		for _, a := range instr.Args {
			if i, inside := t.slices.made[a]; inside && i >= 0 {
				visit(i)
			} else if inside && fills && a != t.body.Args[0] {
				ok = false
			}
		}
		for _, b := range []*program.Block{instr.Body, instr.Else} {
			for k := 0; b != nil && k < len(b.Instrs); k++ {
				uses(&b.Instrs[k])
			}
		}
	}
	visit = func(i int) {
		if in[i] || fills && ahead[i] {
			return
		}
		in[i] = true
		instr := &t.body.Instrs[i]
		if i < t.last && !fills && !isPure(instr) || ahead[i] {
			ok = false
		}
		uses(instr)
	}
	for _, i := range roots {
		visit(i)
	}
	var out []int
	for i := range t.body.Instrs {
		if in[i] {
			out = append(out, i)
		}
	}
	return out, ok
}

// double makes the arrays twice as large.
func (t *turner) double() {
	for v := range t.arrays {
		in := t.chain[v]
		in.Count = 2 * turnBytes(in) / int64(in.Result.Type.Elem.Size())
	}
}

// set is the set of arrays of an iteration: pointers into them, made where they are
// first used.
type set struct {
	*turner
	turn *program.Value // 0 or 1
	with map[*program.Value]*program.Value
}

// at is a pointer of the program in this set, and the instructions that make it.
func (s *set) at(p *program.Value) (*program.Value, []program.Instr) {
	if q := s.with[p]; q != nil {
		return q, nil
	}
	in := s.chain[p]
	var out []program.Instr
	q := s.value(p.Type)
	if in.Op == program.Alloca {
		size, offset := s.value(s.turn.Type), s.value(s.turn.Type)
		out = []program.Instr{
			{Op: program.Const, Int: in.Count / 2, Result: size},
			{Op: program.Alu, Ir: ir.OpMul, Result: offset, Args: []*program.Value{s.turn, size}},
			{Op: program.PtrAdd, Result: q, Args: []*program.Value{p, offset}},
		}
	} else {
		base, made := s.at(in.Args[0])
		index := in.Args[1]
		if v := s.with[index]; v != nil {
			index = v
		}
		out = append(made, program.Instr{Op: program.PtrAdd, Result: q, Args: []*program.Value{base, index}})
	}
	s.with[p] = q
	return q, out
}

// copy repeats instructions of the body in this set, deeply.
func (s *set) copy(in program.Instr) []program.Instr {
	var out []program.Instr
	in.Args = append([]*program.Value(nil), in.Args...)
	for k, a := range in.Args {
		if array := s.pointer[a]; array != nil && s.arrays[array] && in.Op != program.PtrAdd {
			q, made := s.at(a)
			out = append(out, made...)
			in.Args[k] = q
		} else if v := s.with[a]; v != nil {
			in.Args[k] = v
		}
	}
	if in.Op == program.PtrAdd && s.arrays[s.pointer[in.Result]] {
		_, made := s.at(in.Result)
		return made
	}
	for _, r := range append(append([]*program.Value(nil), in.Results...), in.Result) {
		if r != nil {
			s.with[r] = s.value(r.Type)
			s.root[s.with[r]] = s.root[r]
		}
	}
	if in.Result != nil {
		in.Result = s.with[in.Result]
	}
	in.Results = append([]*program.Value(nil), in.Results...)
	for k, r := range in.Results {
		in.Results[k] = s.with[r]
	}
	in.Body, in.Else = s.block(in.Body), s.block(in.Else)
	return append(out, in)
}

func (s *set) block(b *program.Block) *program.Block {
	if b == nil {
		return nil
	}
	out := &program.Block{}
	for _, a := range b.Args {
		s.with[a] = s.value(a.Type)
		out.Args = append(out.Args, s.with[a])
	}
	// A pointer made in a block is known there only.
	outer := s.with
	s.with = make(map[*program.Value]*program.Value, len(outer))
	for v, w := range outer {
		s.with[v] = w
	}
	for i := range b.Instrs {
		out.Instrs = append(out.Instrs, s.copy(b.Instrs[i])...)
	}
	s.with = outer
	return out
}

// rewrite puts the loop together.
func (t *turner) rewrite(loads, fill, rest []int) []program.Instr {
	index := t.body.Args[0]
	var before []program.Instr
	number := func(n int64) *program.Value {
		v := t.value(index.Type)
		before = append(before, program.Instr{Op: program.Const, Int: n, Result: v})
		return v
	}
	zero, one := number(0), number(1)
	hi := t.known[t.loop.Args[1]]
	lastIndex := number(hi - 1)

	// In front of the loop: the first set, and what the second is made of.
	begin := t.copySlice(t.slices, loads, map[*program.Value]*program.Value{index: zero})
	before = append(before, begin.instrs...)
	zeroth := &set{turner: t, turn: zero, with: map[*program.Value]*program.Value{index: zero}}
	for _, i := range loads {
		r := t.body.Instrs[i].Result
		zeroth.with[r] = begin.copies[r]
	}
	if t.depth > 0 { // the iterations of a loop around still read and fill
		before = append(before, program.Instr{Op: program.Barrier})
	}
	for _, i := range fill {
		before = append(before, zeroth.copy(t.body.Instrs[i])...)
	}

	// In the loop.
	next, after, turn, other := t.value(index.Type), t.value(index.Type), t.value(index.Type), t.value(index.Type)
	sum1, sum2, two := t.value(index.Type), t.value(index.Type), number(2)
	out := []program.Instr{
		{Op: program.Barrier},
		{Op: program.Alu, Ir: ir.OpAdd, Result: sum1, Args: []*program.Value{index, one}},
		{Op: program.Alu, Ir: ir.OpMin, Result: next, Args: []*program.Value{sum1, lastIndex}},
		{Op: program.Alu, Ir: ir.OpAdd, Result: sum2, Args: []*program.Value{index, two}},
		{Op: program.Alu, Ir: ir.OpMin, Result: after, Args: []*program.Value{sum2, lastIndex}},
		{Op: program.Alu, Ir: ir.OpAnd, Result: turn, Args: []*program.Value{index, one}},
		{Op: program.Alu, Ir: ir.OpXor, Result: other, Args: []*program.Value{turn, one}},
	}
	yield := t.body.Instrs[len(t.body.Instrs)-1]
	filling := &set{turner: t, turn: other, with: map[*program.Value]*program.Value{index: next}}
	for _, i := range loads {
		r := t.body.Instrs[i].Result
		filling.with[r] = t.value(r.Type)
	}
	var beside []program.Instr
	for _, i := range fill {
		beside = append(beside, filling.copy(t.body.Instrs[i])...)
	}
	beside, carried, again := t.loadAhead(beside, loads, filling.with, next, after)
	second := t.copySlice(t.slices, carried, map[*program.Value]*program.Value{index: one})
	before = append(before, second.instrs...)
	for _, i := range carried {
		r := t.body.Instrs[i].Result
		t.body.Args = append(t.body.Args, filling.with[r])
		t.loop.Args = append(t.loop.Args, second.copies[r])
		t.loop.Results = append(t.loop.Results, t.value(r.Type))
		yield.Args = append(yield.Args, again[r])
	}
	computing := &set{turner: t, turn: turn, with: make(map[*program.Value]*program.Value)}
	var compute []program.Instr
	for _, i := range rest[:len(rest)-1] {
		compute = append(compute, computing.in(t.body.Instrs[i])...)
	}
	for k, a := range yield.Args {
		if v := computing.with[a]; v != nil {
			yield.Args[k] = v
		}
	}
	t.body.Instrs = append(append(out, between(compute, beside)...), yield)
	return before
}

// in is an instruction of the body with its pointers in this set.
func (s *set) in(in program.Instr) []program.Instr {
	var out []program.Instr
	if in.Op == program.PtrAdd && s.arrays[s.pointer[in.Result]] {
		return nil // made where it is used
	}
	in.Args = append([]*program.Value(nil), in.Args...)
	for k, a := range in.Args {
		if array := s.pointer[a]; array != nil && s.arrays[array] {
			q, made := s.at(a)
			out = append(out, made...)
			in.Args[k] = q
		}
	}
	return append(out, in)
}

// loadAhead puts loads half an iteration in front of their use: that is time enough,
// and half of the registers. So those used in the first half are loaded in the second
// half of the iteration before, and carried; again has what is loaded for the next.
func (t *turner) loadAhead(beside []program.Instr, loads []int, held map[*program.Value]*program.Value, next, after *program.Value) (out []program.Instr, carried []int, again map[*program.Value]*program.Value) {
	first, last := make(map[*program.Value]int), make(map[*program.Value]int)
	var note func(i int, in *program.Instr)
	note = func(i int, in *program.Instr) {
		for _, a := range in.Args {
			if _, ok := first[a]; !ok {
				first[a] = i
			}
			last[a] = i
		}
		for _, b := range []*program.Block{in.Body, in.Else} {
			for k := 0; b != nil && k < len(b.Instrs); k++ {
				note(i, &b.Instrs[k])
			}
		}
	}
	for i := range beside {
		note(i, &beside[i])
	}
	half := len(beside) / 2
	late, early := make(map[int][]int), make(map[int][]int) // loads in front of an instruction
	for _, i := range loads {
		v := held[t.body.Instrs[i].Result]
		if at := first[v]; at < half {
			carried = append(carried, i)
			at = max(at+half, last[v]+1)
			late[at] = append(late[at], i)
		} else {
			early[at-half] = append(early[at-half], i)
		}
	}
	index := t.body.Args[0]
	again = map[*program.Value]*program.Value{index: after}
	same := map[*program.Value]*program.Value{index: next}
	madeAgain, made := make(map[int]bool), make(map[int]bool)
	for k := 0; k <= len(beside); k++ {
		for _, i := range early[k] {
			out = append(out, t.sliceOf(i, made, same)...)
			out[len(out)-1].Result = held[t.body.Instrs[i].Result]
		}
		for _, i := range late[k] {
			out = append(out, t.sliceOf(i, madeAgain, again)...)
		}
		if k < len(beside) {
			out = append(out, beside[k])
		}
	}
	return out, carried, again
}

// sliceOf repeats an instruction of the body and what it needs that was not yet
// repeated.
func (t *turner) sliceOf(i int, made map[int]bool, with map[*program.Value]*program.Value) []program.Instr {
	if made[i] {
		return nil
	}
	made[i] = true
	in := t.body.Instrs[i]
	var out []program.Instr
	in.Args = append([]*program.Value(nil), in.Args...)
	for k, a := range in.Args {
		if at, inside := t.slices.made[a]; inside && at >= 0 {
			out = append(out, t.sliceOf(at, made, with)...)
		}
		if v := with[a]; v != nil {
			in.Args[k] = v
		}
	}
	copied := t.value(in.Result.Type)
	with[in.Result] = copied
	t.root[copied] = t.root[in.Result]
	in.Result = copied
	return append(out, in)
}

// between puts instructions between the matrix instructions of others, in equal
// parts.
func between(compute, beside []program.Instr) []program.Instr {
	matrices := 0
	for i := range compute {
		if compute[i].Op == program.Mma {
			matrices++
		}
	}
	out, done, seen := make([]program.Instr, 0, len(compute)+len(beside)), 0, 0
	for i := range compute {
		out = append(out, compute[i])
		if compute[i].Op == program.Mma {
			seen++
			to := len(beside) * seen / matrices
			out, done = append(out, beside[done:to]...), to
		}
	}
	return out
}
