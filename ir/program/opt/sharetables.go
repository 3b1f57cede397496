package opt

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/target"
)

// shareTables copies a constant table that rows of weights look up in to shared memory, if a
// block looks up more of it than there is. Lanes that look up entries of their own read from
// as many lines; the first level of cache serves them one after the other, shared memory as
// many at once as lie in different banks. The copy is made while weights are on their way and
// the kernel before still runs.
func shareTables(p *program.Program, desc *target.Desc) {
	w := weightsOf(p)
	if !w.streams() {
		return
	}
	for i := range p.Params {
		s := &tableSharer{weights: w, table: &p.Params[i]}
		if s.table.Kind == program.ParamTable && s.pays() && sharedBytes(p)+s.table.Bytes+widestLoad <= int64(desc.SharedBytes) {
			s.share()
		}
	}
}

// widestLoad is what a thread loads at once at most, in bytes.
const widestLoad = 16

// sharedBytes is the shared memory that a program has.
func sharedBytes(p *program.Program) (bytes int64) {
	p.Body.Each(func(in *program.Instr) {
		if in.Op == program.Alloca && in.Result.Type.Space == program.SharedSpace {
			bytes += in.Count * int64(in.Result.Type.Elem.Size())
		}
	})
	return bytes
}

// tableSharer moves one table.
type tableSharer struct {
	*weights
	table *program.Param
}

// pays reports that threads look up more bytes than the table has, each at a place of its own, and
// none ahead of the wait.
// Renderers have ways of their own for a Gather.
func (s *tableSharer) pays() bool {
	fits := true
	for i := range s.body.Instrs[:s.wait()] {
		in := &s.body.Instrs[i]
		fits = fits && (in.Op != program.Load || s.memory.Root(in.Args[0]) != s.table.Value)
	}
	looked := s.lookedUp(s.body, s.program.Threads(), func(in *program.Instr) bool {
		for k, v := range in.Args {
			if s.memory.Root(v) == s.table.Value {
				fits = fits && k == 0 && (in.Op == program.Load || in.Op == program.PtrAdd)
			}
		}
		return in.Op == program.Load && s.memory.Root(in.Args[0]) == s.table.Value && in.Args[0] != s.table.Value
	})
	return fits && looked > s.table.Bytes
}

// lookedUp are the bytes that instructions of a block load which count, run so many times.
func (s *tableSharer) lookedUp(b *program.Block, times int64, counts func(*program.Instr) bool) (bytes int64) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if counts(in) {
			bytes += times * int64(in.Result.Type.Bytes())
		}
		inner := times
		if in.Op == program.For {
			inner *= s.known.trips(in)
		}
		for block := range in.Blocks() {
			bytes += s.lookedUp(block, inner, counts)
		}
	}
	return bytes
}

// trips is how often a loop runs, 1 where that is not known.
func (k known) trips(loop *program.Instr) int64 {
	lo, okLo := k[loop.Args[0]]
	hi, okHi := k[loop.Args[1]]
	step, okStep := k[loop.Args[2]]
	if !okLo || !okHi || !okStep || step <= 0 {
		return 1
	}
	return max((hi-lo+step-1)/step, 0)
}

// share copies the table and has look-ups read the copy.
func (s *tableSharer) share() {
	b := program.Resume(s.program)
	elem := s.table.Value.Type.Elem
	var array *program.Value
	reserve, loads, stores := &program.Block{}, &program.Block{}, &program.Block{}
	b.With(reserve, func() {
		array = b.Alloca(elem, program.SharedSpace, (s.table.Bytes+widestLoad-1)/widestLoad*widestLoad/int64(elem.Size()), widestLoad)
	})
	redirect(s.body, s.table.Value, array)
	s.copy(b, loads, stores, array)
	wait := s.wait()
	s.body.Instrs = slices.Concat(loads.Instrs, s.body.Instrs[:wait], stores.Instrs, s.body.Instrs[wait:])
	b.Finish()
	s.program.Body.Instrs = slices.Insert(s.program.Body.Instrs, len(s.program.Body.Instrs)-1, reserve.Instrs...)
}

// wait is the instruction of the body that waits for the kernel before; the first without any.
func (s *tableSharer) wait() int {
	return max(slices.IndexFunc(s.body.Instrs, func(in program.Instr) bool { return in.Op == program.WaitGrid }), 0)
}

// redirect lets pointers into a table lead into an array.
func redirect(body *program.Block, table, array *program.Value) {
	into := map[*program.Value]bool{table: true}
	body.Each(func(in *program.Instr) {
		if len(in.Args) == 0 || !into[in.Args[0]] {
			return
		}
		if in.Args[0] == table {
			in.Args[0] = array
		}
		if in.Op == program.PtrAdd {
			into[in.Result], in.Result.Type.Space = true, program.SharedSpace
		} else {
			in.Cache = program.CacheDefault
		}
	})
}

// copy has each thread load a part of the table, as wide as all of them can, and store it.
func (s *tableSharer) copy(b *program.Builder, loads, stores *program.Block, array *program.Value) {
	threads, size := s.program.Threads(), int64(array.Type.Elem.Size())
	width := int64(widestLoad)
	for width > size && s.table.Bytes%(width*threads) != 0 {
		width /= 2
	}
	parts := s.table.Bytes / width
	for first := int64(0); first < parts; first += threads {
		var at, part, inside *program.Value
		b.With(loads, func() {
			at = b.Add(b.Cast(b.ThreadIndex(0), ir.I64), b.Index(first))
			if first+threads > parts {
				inside = b.Lt(at, b.Index(parts))
				at = b.Alu(ir.OpMin, at, b.Index(parts-1))
			}
			at = b.Mul(at, b.Index(width/size))
			part = b.LoadCached(b.PtrAdd(s.table.Value, at), int(width/size), int(width), program.CacheConst)
		})
		b.With(stores, func() {
			store := func() []*program.Value { b.Store(b.PtrAdd(array, at), part, int(width)); return nil }
			if inside == nil {
				store()
			} else {
				b.If(inside, store, nil)
			}
		})
	}
	b.With(stores, b.Barrier)
}
