package opt

import (
	"maps"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// Double buffering. A loop that fills tiles in shared memory and then computes with
// them has two phases, and each waits for the other at a barrier: while the block
// decodes, its matrix instructions rest. With two sets of tiles the block computes with
// one while it fills the other:
//
//	for i: barrier; fill tile; barrier; compute with tile
//
// becomes
//
//	fill tile 0; for i: barrier; compute with tile i%2, filling tile (i+1)%2 meanwhile
//
// What fills is spread between the matrix instructions, which leave most issue slots
// free, and what it fills with is loaded half an iteration ahead. Where what fills is only
// copied, and warpgroups compute, it needs neither: asynchronous copies begin before the
// products (an assembler moves those behind the first of them behind all), and the next
// iteration waits for them in front of its barrier.

// doubleBuffer rewrites the loops that fill tiles and compute with them; shared bounds
// the bytes of shared memory of a block, copies says that there are asynchronous ones.
func doubleBuffer(p *program.Program, shared int64, copies bool) {
	if p.Options.Of(program.Turns) == 1 {
		return
	}
	l := tileLoopsOf(p)
	l.eachLoop(p.Body, func(loop *program.Instr) (before, after []program.Instr) {
		d := &doubleBuffered{tileLoops: l, loop: loop, body: loop.Body,
			tiles: make(map[*program.Value]bool), address: make(map[*program.Value]*program.Instr)}
		if !d.hasPhases() || !d.ownsTiles() || !d.fits(shared) {
			return nil, nil
		}
		body := loop.Body
		if copies && d.groups {
			d.copyTiles()
		}
		parts, ok := d.parts()
		if !ok {
			loop.Body = body
			return nil, nil
		}
		d.enlargeTiles()
		return d.rewrite(parts)
	})
}

// doubleBuffered is a loop that gets a second set of tiles.
type doubleBuffered struct {
	*tileLoops
	loop    *program.Instr
	body    *program.Block
	fill    int  // the barrier before the filling phase
	compute int  // the barrier before the computing phase
	groups  bool // warpgroups compute
	slice   *loadSlice
	tiles   map[*program.Value]bool           // shared arrays that the loop fills
	address map[*program.Value]*program.Instr // what makes a pointer into a shared array: alloca or ptradd
}

// hasPhases reports a loop over 0, 1, .. with two barriers of its own, matrix
// instructions after the second and nothing before the first but arithmetic.
func (d *doubleBuffered) hasPhases() bool {
	lo, okLo := d.known[d.loop.Args[0]]
	hi, okHi := d.known[d.loop.Args[1]]
	step, okStep := d.known[d.loop.Args[2]]
	if !okLo || !okHi || !okStep || lo != 0 || step != 1 || hi < 2 {
		return false
	}
	d.fill, d.compute = -1, -1
	computes := false
	for i := range d.body.Instrs {
		in := &d.body.Instrs[i]
		switch {
		case in.Op == program.Barrier && d.fill < 0:
			d.fill = i
		case in.Op == program.Barrier && d.compute < 0:
			d.compute = i
		case in.Op == program.Barrier:
			return false
		case isMatrix(in):
			computes, d.groups = true, d.groups || in.Op == program.GroupMma
			if d.compute < 0 {
				return false
			}
		case d.fill < 0 && !dep.Pure(in) && !d.readsOnly(in) || d.compute >= 0 && (actsOnOthers(in) || in.Body != nil):
			return false
		case in.Body != nil && holdsBarrier(in):
			return false
		}
	}
	return computes && d.compute >= 0
}

// actsOnOthers reports an instruction that writes memory or acts together with other
// threads.
func actsOnOthers(in *program.Instr) bool {
	return dep.Of(in)&(dep.Writes|dep.Exchanges|dep.Synchronises) != 0
}

func holdsBarrier(in *program.Instr) bool {
	found := false
	for b := range in.Blocks() {
		b.Each(func(in *program.Instr) { found = found || in.Op == program.Barrier })
	}
	return found
}

// ownsTiles finds the tiles: shared arrays that the loop fills by stores, and that
// nothing outside of the loop accesses.
func (d *doubleBuffered) ownsTiles() bool {
	d.program.Body.Each(func(in *program.Instr) {
		if in.Op == program.Alloca && in.Result.Type.Space == program.SharedSpace || in.Op == program.PtrAdd && d.address[in.Args[0]] != nil {
			d.address[in.Result] = in
		}
	})
	ok := true
	filling := program.Block{Instrs: d.body.Instrs[d.fill:d.compute]}
	filling.Each(func(in *program.Instr) {
		if in.Op == program.Barrier || !actsOnOthers(in) {
			return
		}
		if in.Op != program.Store || d.address[in.Args[0]] == nil {
			ok = false
			return
		}
		d.tiles[d.memory.Root(in.Args[0])] = true
	})
	return ok && d.accesses(d.body) == d.accesses(d.program.Body)
}

// isTile reports a pointer into a tile.
func (d *doubleBuffered) isTile(p *program.Value) bool {
	return d.address[p] != nil && d.tiles[d.memory.Root(p)]
}

// accesses counts the uses of the tiles in a block.
func (d *doubleBuffered) accesses(b *program.Block) (n int) {
	b.Each(func(in *program.Instr) {
		for _, a := range in.Args {
			if in.Op != program.PtrAdd && d.isTile(a) {
				n++
			}
		}
	})
	return n
}

// fits reports shared memory for two sets of tiles.
func (d *doubleBuffered) fits(shared int64) bool {
	bytes := int64(0)
	d.program.Body.Each(func(in *program.Instr) {
		if in.Op == program.Alloca && d.address[in.Result] != nil {
			n := tileBytes(in)
			if d.tiles[in.Result] {
				n *= 2
			}
			bytes = alignedTo(bytes, tileAlign(in)) + n
		}
	})
	return bytes <= shared
}

// tileBytes is the size of an array in a set: aligned, so that the next is too.
func tileBytes(in *program.Instr) int64 {
	return alignedTo(in.Count*int64(in.Result.Type.Elem.Size()), tileAlign(in))
}

func tileAlign(in *program.Instr) int64 {
	const least = 128
	return int64(max(in.Align, least))
}

func alignedTo(bytes, align int64) int64 { return (bytes + align - 1) / align * align }

// loopParts are lists of a body's instructions. What fills and computes come with what they need of the body.
type loopParts struct {
	loads   []int // that are issued ahead
	copies  []int // what only starts copies
	fill    []int // what else fills
	compute []int
}

// parts takes the body apart.
func (d *doubleBuffered) parts() (p loopParts, ok bool) {
	d.slice = d.sliceOf(d.loop)
	var roots, copies []int
	for i := d.fill + 1; i < d.compute; i++ {
		in := &d.body.Instrs[i]
		if actsOnOthers(in) || in.Body != nil {
			roots = append(roots, i)
		}
		if onlyCopies(in) {
			copies = append(copies, i)
		}
	}
	if d.groups {
		p.loads = d.takeLoads(d.needed(roots))
	} else {
		p.loads = d.takeLoads(lists.Upto(d.compute))
	}
	p.copies, _ = d.backward(copies, p.loads, true)
	fill, ok := d.backward(roots, p.loads, true)
	if !ok || len(roots) == 0 {
		return p, false
	}
	first := lists.Set(p.copies)
	p.fill = lists.Filter(fill, func(i int) bool { return !first[i] })
	p.compute, ok = d.computeSlice(p.loads)
	return p, ok
}

// needed lists instructions with all that they need.
func (d *doubleBuffered) needed(roots []int) []int {
	need, _ := d.backward(roots, nil, true)
	return need
}

// takeLoads lists the loads among instructions that can be issued ahead.
func (d *doubleBuffered) takeLoads(among []int) (loads []int) {
	for _, i := range among {
		if in := &d.body.Instrs[i]; (in.Op == program.Load || in.Op == program.Gather) && d.readsOnly(in) && d.slice.take(in) {
			loads = append(loads, i)
		}
	}
	return loads
}

// readsOnly reports a load from memory that the program does not write.
func (d *doubleBuffered) readsOnly(in *program.Instr) bool {
	p := dep.Pointer(in)
	return p != nil && dep.Of(in) == dep.Reads && d.memory.ReadOnly(p)
}

// computeSlice lists what comes after the second barrier, with what it needs of
// what comes before.
func (d *doubleBuffered) computeSlice(loads []int) ([]int, bool) {
	var roots []int
	for i := d.compute + 1; i < len(d.body.Instrs); i++ {
		roots = append(roots, i)
	}
	return d.backward(roots, loads, false)
}

// backward is a slice of the body, in order. What computes may need arithmetic of what
// comes before the computing phase, and where warpgroups compute loads, which it repeats if what
// fills needs them too; what fills needs no carried values.
func (d *doubleBuffered) backward(roots, loads []int, fills bool) ([]int, bool) {
	loaded := lists.Set(loads)
	taken, ok := make(map[int]bool), true
	var visit func(i int)
	visit = func(i int) {
		if taken[i] || fills && loaded[i] {
			return
		}
		taken[i] = true
		in := &d.body.Instrs[i]
		if i < d.compute && !fills && !dep.Pure(in) && !(d.groups && d.readsOnly(in)) {
			ok = false
		}
		in.EachUse(func(v *program.Value) {
			if maker, inside := d.slice.Makers[v]; inside && maker >= 0 {
				visit(maker)
			} else if inside && fills {
				ok = false
			}
		})
	}
	for _, i := range roots {
		visit(i)
	}
	out := lists.Filter(lists.Upto(len(d.body.Instrs)), func(i int) bool { return taken[i] })
	return out, ok
}

// copyTiles gives the loop a body that fills with copies where it can. Its old one stays as it is.
func (d *doubleBuffered) copyTiles() {
	instrs := d.body.Instrs
	c := &tileCopies{rewriter: d.rewriter, isTile: d.isTile, address: d.address}
	made := c.filling(instrs[d.fill+1 : d.compute])
	d.body = &program.Block{Args: d.body.Args, Instrs: slices.Concat(instrs[:d.fill+1], made, instrs[d.compute:])}
	d.loop.Body, d.compute = d.body, d.fill+1+len(made)
}

// enlargeTiles makes room for two sets in each tile's array.
func (d *doubleBuffered) enlargeTiles() {
	for v := range d.tiles {
		in := d.address[v]
		in.Count = 2 * tileBytes(in) / int64(in.Result.Type.Elem.Size())
	}
}

// tileSet is one of the two sets of tiles, and what is computed with it.
type tileSet struct {
	*doubleBuffered
	number *program.Value                    // 0 or 1: which set
	with   map[*program.Value]*program.Value // what takes the place of a value of the loop
}

// pointer is a pointer into a tile, in this set, and the instructions that make it
// where it was not made yet.
func (s *tileSet) pointer(p *program.Value) (*program.Value, []program.Instr) {
	if q := s.with[p]; q != nil {
		return q, nil
	}
	in := s.address[p]
	var out []program.Instr
	q := s.value(p.Type)
	if in.Op == program.Alloca {
		size, offset := s.value(s.number.Type), s.value(s.number.Type)
		out = []program.Instr{
			{Op: program.Const, Int: in.Count / 2, Result: size},
			{Op: program.Alu, Ir: ir.OpMul, Result: offset, Args: []*program.Value{s.number, size}},
			{Op: program.PtrAdd, Result: q, Args: []*program.Value{p, offset}},
		}
	} else {
		base, made := s.pointer(in.Args[0])
		out = append(made, program.Instr{Op: program.PtrAdd, Result: q, Args: []*program.Value{base, replaced(in.Args[1], s.with)}})
	}
	s.with[p] = q
	return q, out
}

// retarget is an instruction with its pointers into tiles in this set. Instructions
// that make such a pointer are left out: pointer makes it where it is used.
func (s *tileSet) retarget(in program.Instr) []program.Instr {
	if in.Op == program.PtrAdd && s.isTile(in.Result) {
		return nil
	}
	out := s.operands(&in, nil)
	return append(out, in)
}

// operands gives an instruction pointers into tiles in this set, and what with has for
// other operands; it returns what makes the pointers.
func (s *tileSet) operands(in *program.Instr, with map[*program.Value]*program.Value) (out []program.Instr) {
	in.Args = append([]*program.Value(nil), in.Args...)
	for k, a := range in.Args {
		if s.isTile(a) {
			q, made := s.pointer(a)
			out = append(out, made...)
			in.Args[k] = q
		} else {
			in.Args[k] = replaced(a, with)
		}
	}
	return out
}

// copy repeats an instruction of the loop for this set, with its blocks.
func (s *tileSet) copy(in program.Instr) []program.Instr {
	if in.Op == program.PtrAdd && s.isTile(in.Result) {
		_, made := s.pointer(in.Result)
		return made
	}
	out := s.operands(&in, s.with)
	in.Results = append([]*program.Value(nil), in.Results...)
	for k, r := range in.Results {
		in.Results[k] = s.renamed(r)
	}
	if in.Result != nil {
		in.Result = s.renamed(in.Result)
	}
	in.Body, in.Else = s.copyBlock(in.Body), s.copyBlock(in.Else)
	return append(out, in)
}

// renamed is a new value that takes the place of one of the loop in this set.
func (s *tileSet) renamed(v *program.Value) *program.Value {
	s.with[v] = s.derived(v)
	return s.with[v]
}

func (s *tileSet) copyBlock(b *program.Block) *program.Block {
	if b == nil {
		return nil
	}
	out := &program.Block{}
	for _, a := range b.Args {
		out.Args = append(out.Args, s.renamed(a))
	}
	outer := s.with // a pointer made in a block is known there only
	s.with = maps.Clone(outer)
	for i := range b.Instrs {
		out.Instrs = append(out.Instrs, s.copy(b.Instrs[i])...)
	}
	s.with = outer
	return out
}

// rewrite puts the loop together, and gives what goes before and after it.
func (d *doubleBuffered) rewrite(parts loopParts) (before, after []program.Instr) {
	index := d.body.Args[0]
	number := func(n int64) *program.Value {
		v := d.value(index.Type)
		before = append(before, program.Instr{Op: program.Const, Int: n, Result: v})
		return v
	}
	zero, one := number(0), number(1)
	last := number(d.known[d.loop.Args[1]] - 1)
	before = append(before, d.fillFirst(parts, zero)...)

	next, afterNext, current, other := d.value(index.Type), d.value(index.Type), d.value(index.Type), d.value(index.Type)
	plusOne, plusTwo, two := d.value(index.Type), d.value(index.Type), number(2)
	alu := func(op ir.Op, result, x, y *program.Value) program.Instr {
		return program.Instr{Op: program.Alu, Ir: op, Result: result, Args: []*program.Value{x, y}}
	}
	var out []program.Instr
	if startsCopies(d.body) {
		after = []program.Instr{{Op: program.WaitCopies}} // those of the last iteration
		out = append(out, after...)
	}
	out = append(out,
		program.Instr{Op: program.Barrier},
		alu(ir.OpAdd, plusOne, index, one), alu(ir.OpMin, next, plusOne, last),
		alu(ir.OpAdd, plusTwo, index, two), alu(ir.OpMin, afterNext, plusTwo, last),
		alu(ir.OpAnd, current, index, one), alu(ir.OpXor, other, current, one),
	)
	filled := &tileSet{doubleBuffered: d, number: other, with: map[*program.Value]*program.Value{index: next}}
	for _, i := range parts.loads {
		r := d.body.Instrs[i].Result
		filled.with[r] = d.value(r.Type)
	}
	copying, filling := filled.copyAll(parts.copies), filled.copyAll(parts.fill)
	filling, carried, following := d.loadAhead(copying, filling, parts.loads, filled.with, next, afterNext)
	second, with := d.copyInOrder(d.slice.Slice, carried, map[*program.Value]*program.Value{index: one})
	before = append(before, second...)
	for _, i := range carried {
		r := d.body.Instrs[i].Result
		d.carry(d.loop, filled.with[r], with[r], following[r])
	}
	yield := d.body.Instrs[len(d.body.Instrs)-1]
	computed := &tileSet{doubleBuffered: d, number: current, with: make(map[*program.Value]*program.Value)}
	var computing []program.Instr
	for _, i := range parts.compute[:len(parts.compute)-1] {
		computing = append(computing, computed.retarget(d.body.Instrs[i])...)
	}
	for k, a := range yield.Args {
		yield.Args[k] = replaced(a, computed.with)
	}
	d.body.Instrs = append(append(append(out, copying...), spread(computing, filling)...), yield)
	return before, after
}

// copyAll repeats instructions of the loop for this set.
func (s *tileSet) copyAll(instrs []int) (out []program.Instr) {
	for _, i := range instrs {
		out = append(out, s.copy(s.body.Instrs[i])...)
	}
	return out
}

// fillFirst fills the first set before the loop.
func (d *doubleBuffered) fillFirst(parts loopParts, zero *program.Value) []program.Instr {
	out, with := d.copyInOrder(d.slice.Slice, parts.loads, map[*program.Value]*program.Value{d.body.Args[0]: zero})
	first := &tileSet{doubleBuffered: d, number: zero, with: map[*program.Value]*program.Value{d.body.Args[0]: zero}}
	for _, i := range parts.loads {
		r := d.body.Instrs[i].Result
		first.with[r] = with[r]
	}
	if d.depth > 0 { // iterations of a loop around this one still read and fill
		out = append(out, program.Instr{Op: program.Barrier})
	}
	return append(append(out, first.copyAll(parts.copies)...), first.copyAll(parts.fill)...)
}

// loadAhead puts loads half an iteration before their use: that is time enough,
// and half of the registers. So those used in the first half of filling, or by copies, are
// loaded in the second half of the iteration before, and carried; following has what is
// loaded for the next iteration. result holds what each load gives. Where warpgroups compute, all are loaded as soon as what they
// give in this iteration has been used.
func (d *doubleBuffered) loadAhead(copying, filling []program.Instr, loads []int, result map[*program.Value]*program.Value, next, afterNext *program.Value) (out []program.Instr, carried []int, following map[*program.Value]*program.Value) {
	first, last := make(map[*program.Value]int), make(map[*program.Value]int)
	for i := range filling {
		filling[i].EachUse(func(v *program.Value) {
			if _, used := first[v]; !used {
				first[v] = i
			}
			last[v] = i
		})
	}
	for i := range copying {
		copying[i].EachUse(func(v *program.Value) { first[v] = -1 })
	}
	half := len(filling) / 2
	forNext, forThis := make(map[int][]int), make(map[int][]int) // loads before an instruction, by the iteration that uses them
	for _, i := range loads {
		v := result[d.body.Instrs[i].Result]
		if at := first[v]; d.groups { // all filling stands behind the products, which is one latency of memory long
			carried = append(carried, i)
			at = min(last[v]+1, len(filling)) // where only copies use it, and nothing else fills
			forNext[at] = append(forNext[at], i)
		} else if at < half {
			carried = append(carried, i)
			at = max(at+half, half, last[v]+1)
			forNext[at] = append(forNext[at], i)
		} else {
			forThis[at-half] = append(forThis[at-half], i)
		}
	}
	index := d.body.Args[0]
	following = map[*program.Value]*program.Value{index: afterNext}
	this := map[*program.Value]*program.Value{index: next}
	for k := 0; k <= len(filling); k++ {
		for _, i := range forThis[k] {
			out = append(out, d.copyNeeded(d.slice.Slice, i, this)...)
			out[len(out)-1].Result = result[d.body.Instrs[i].Result]
		}
		for _, i := range forNext[k] {
			out = append(out, d.copyNeeded(d.slice.Slice, i, following)...)
		}
		if k < len(filling) {
			out = append(out, filling[k])
		}
	}
	return out, carried, following
}

// spread puts instructions after the matrix instructions of others, in equal parts.
func spread(computing, filling []program.Instr) []program.Instr {
	places := spreadPlaces(computing)
	out, done, seen := make([]program.Instr, 0, len(computing)+len(filling)), 0, 0
	for i := range computing {
		out = append(out, computing[i])
		if places[i] {
			seen++
			to := len(filling) * seen / len(places)
			out, done = append(out, filling[done:to]...), to
		}
	}
	return out
}

// spreadPlaces are the instructions behind which others may stand: each product of a warp, and of those of
// warpgroups, which run on by themselves, the last before one of their results is used.
func spreadPlaces(computing []program.Instr) map[int]bool {
	places, last := make(map[int]bool), -1
	running := make(map[*program.Value]bool)
	for i := range computing {
		in := &computing[i]
		uses := false
		in.EachUse(func(v *program.Value) { uses = uses || running[v] })
		switch {
		case in.Op == program.GroupMma:
			running[in.Result], last = true, i
		case uses && dep.MovesLanes(in):
			running[in.Result] = true
		case uses && last >= 0:
			places[last], last = true, -1
			clear(running)
		}
		if in.Op == program.Mma {
			places[i] = true
		}
	}
	if last >= 0 {
		places[last] = true
	}
	return places
}
