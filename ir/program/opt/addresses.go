package opt

import (
	"cmp"
	"maps"
	"slices"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// Where loads lie beside each other.

// addressFinder reads addresses off a program, whose blocks may be written anew.
type addressFinder struct {
	fieldFinder
	memory *dep.Memory
	known  known
	loops  map[*program.Value]*program.Instr // by their indices
	equal  map[*program.Value]bool           // in all threads of a block
	varies map[*program.Value]bool           // among the threads of a warp
}

func addressesIn(p *program.Program) addressFinder {
	a := addressFinder{fieldFinder: fieldsIn(p), memory: dep.MemoryOf(p), known: constants(p), loops: make(map[*program.Value]*program.Instr), equal: make(map[*program.Value]bool), varies: make(map[*program.Value]bool)}
	for _, x := range p.Params {
		a.equal[x.Value] = true
	}
	p.Body.Each(func(in *program.Instr) {
		switch in.Op {
		case program.For:
			copied := *in
			a.loops[in.Body.Args[0]] = &copied
		case program.GridLoop:
			a.equal[in.Body.Args[0]] = true
		}
	})
	return a
}

// place is where a load's bytes lie: so many from a pointer.
type place struct {
	from  *program.Value
	bytes int64
}

// placeOf follows a pointer to where it is no constant number of bytes from another one.
func (a *addressFinder) placeOf(p *program.Value) place {
	at := place{from: p}
	for {
		before, offset := a.step(at.from)
		n, ok := int64(0), before != nil
		if offset != nil {
			n, ok = a.known[offset]
		}
		if !ok {
			return at
		}
		at = place{before, at.bytes + n*int64(before.Type.Elem.Size())}
	}
}

// step is what a pointer is computed from, and by how many elements it is moved, nil: none; nil where it is the first.
func (a *addressFinder) step(p *program.Value) (before, offset *program.Value) {
	in := a.makers[p]
	switch {
	case in == nil || len(in.Args) == 0 || !in.Args[0].Type.Ptr:
		return nil, nil
	case in.Op == program.PtrAdd:
		return in.Args[0], in.Args[1]
	case in.Op == program.Alu && in.Ir == ir.OpBitcast:
		return in.Args[0], nil
	}
	return nil, nil
}

// loaded is a load, as one of those of its block.
type loaded struct {
	instr *program.Instr
	bytes int64 // from the pointer that all have in common
}

// alikeLoads tells loads apart that cannot be one.
type alikeLoads struct {
	from  *program.Value
	typ   program.Type
	cache program.Cache
}

// alike are the loads of a block of what the program does not write, in the order of their places.
func (a *addressFinder) alike(instrs []program.Instr) map[alikeLoads][]loaded {
	alike := make(map[alikeLoads][]loaded)
	for i := range instrs {
		in := &instrs[i]
		if in.Op != program.Load || !a.memory.ReadOnly(in.Args[0]) || in.Cache == program.CacheL2 || in.Result.Type.Elem == ir.Bool {
			continue
		}
		at := a.placeOf(in.Args[0])
		key := alikeLoads{at.from, in.Result.Type, in.Cache}
		alike[key] = append(alike[key], loaded{in, at.bytes})
	}
	for _, list := range alike {
		slices.SortFunc(list, func(x, y loaded) int { return cmp.Compare(x.bytes, y.bytes) })
	}
	return alike
}

// linear is an address: so many bytes from a pointer, and bytes for each value.
type linear struct {
	place
	terms map[*program.Value]int64
}

// linear follows a pointer to the buffer that it leads into.
func (a *addressFinder) linear(p *program.Value) linear {
	at := linear{place{from: p}, make(map[*program.Value]int64)}
	for {
		before, offset := a.step(at.from)
		if before == nil {
			return at
		}
		if at.from = before; offset != nil {
			a.add(&at, offset, int64(before.Type.Elem.Size()))
		}
	}
}

// mostLoaded is how many bytes a thread loads at once.
const mostLoaded = 16

// alignOf is how a place so many bytes from a pointer is aligned, up to the bytes that a thread loads at once.
func (a *addressFinder) alignOf(pointer *program.Value, bytes int64) int {
	at := a.linear(pointer)
	param := a.memory.Param(at.from)
	if param == nil {
		return 1
	}
	align := min(mostLoaded, int64(param.Align))
	for _, n := range append(slices.Collect(maps.Values(at.terms)), at.bytes+bytes) {
		for n%align != 0 {
			align /= 2
		}
	}
	return int(align)
}

// add adds an index, each of which counts so many bytes.
func (a *addressFinder) add(at *linear, v *program.Value, bytes int64) {
	if n, ok := a.known[v]; ok {
		at.bytes += n * bytes
		return
	}
	if in := a.makers[v]; in != nil && in.Op == program.Alu {
		switch n, times := a.known[in.Args[len(in.Args)-1]]; {
		case in.Ir == ir.OpAdd:
			a.add(at, in.Args[0], bytes)
			a.add(at, in.Args[1], bytes)
			return
		case in.Ir == ir.OpMul && times:
			a.add(at, in.Args[0], bytes*n)
			return
		case in.Ir == ir.OpShl && times && n < 32:
			a.add(at, in.Args[0], bytes<<n)
			return
		}
	}
	at.terms[v] += bytes
}

// quadLanes are the threads of a quad, and a warp has 1<<warpShift.
const (
	quadLanes = 4
	warpShift = 5
)

// isThread reports the number of a thread in its block.
func (a *addressFinder) isThread(v *program.Value) bool {
	in := a.makers[v]
	if in != nil && in.Op == program.Alu && in.Ir == ir.OpCast {
		in = a.makers[in.Args[0]]
	}
	return in != nil && in.Op == program.ThreadIndex
}

// isQuadLane reports the number of a thread in its quad.
func (a *addressFinder) isQuadLane(v *program.Value) bool {
	in := a.makers[v]
	return in != nil && in.Op == program.Alu && in.Ir == ir.OpAnd && a.isThread(in.Args[0]) && a.isKnown(in.Args[1], quadLanes-1)
}

// isPairLane reports the number of a thread in its half of a quad.
func (a *addressFinder) isPairLane(v *program.Value) bool {
	in := a.makers[v]
	return in != nil && in.Op == program.Alu && in.Ir == ir.OpAnd && a.isKnown(in.Args[1], 1) && (a.isThread(in.Args[0]) || a.isQuadLane(in.Args[0]))
}

// isPair reports the number of a half in its quad.
func (a *addressFinder) isPair(v *program.Value) bool {
	in := a.makers[v]
	return in != nil && in.Op == program.Alu && in.Ir == ir.OpShr && a.isKnown(in.Args[1], 1) && a.isQuadLane(in.Args[0])
}

func (a *addressFinder) isKnown(v *program.Value, n int64) bool {
	m, ok := a.known[v]
	return ok && m == n
}

// sameInQuad reports a value that is equal in the threads of a quad, and notes whether it varies among those of a warp.
func (a *addressFinder) sameInQuad(v *program.Value) bool {
	if loop := a.loops[v]; loop != nil { // its first index and its step
		return a.allSame(v, loop.Args[0], loop.Args[2])
	}
	in := a.makers[v]
	switch {
	case a.equal[v]:
		return true
	case in == nil || in.Op != program.Const && in.Op != program.Alu:
		return false
	case in.Ir == ir.OpShr && a.isThread(in.Args[0]):
		n, ok := a.known[in.Args[1]]
		a.varies[v] = n < warpShift
		return ok && n >= 2
	}
	return a.allSame(v, in.Args...)
}

func (a *addressFinder) allSame(v *program.Value, args ...*program.Value) bool {
	for _, x := range args {
		if !a.sameInQuad(x) {
			return false
		}
		a.varies[v] = a.varies[v] || a.varies[x]
	}
	return true
}
