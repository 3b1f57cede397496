package gpu

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Memory instructions. A contiguous access is cut into the widest pieces that
// its proven alignment allows: 16, 8, 4 bytes in one access, then halves and
// bytes put together.

// Policy is what an access may assume and what it leaves in caches.
type Policy uint8

// The policies.
const (
	Plain        Policy = iota
	Constant            // nothing writes the data: through the read-only path
	Once                // used once: the first cache need not keep it
	OnceConstant        // both
	Shared              // between blocks: past the first cache
	WideConstant        // OnceConstant, and the second cache fetches 256 bytes
)

// Access is how memory is read or written.
type Access struct {
	Space  program.Space
	Policy Policy
}

// loads chooses the policy of loads.
//
// Read-only data goes through a path of its own, which the assembler or compiler
// may move over anything. In a program that waits for the previous grid that
// holds before the wait (the rule for loads there) but after it only where the
// program says so: the previous grid may have written the rest.
func (s *Selector) loads(p *program.Value, cache program.Cache) Access {
	access := Access{Space: p.Type.Space}
	switch p.Type.Space {
	case program.ConstSpace:
		access.Policy = Constant
		return access
	case program.GlobalSpace:
	default:
		return access
	}
	buffer := s.access[p]
	readOnly := buffer != nil && buffer.Read && !buffer.Write
	if cache == program.CacheWide && (!readOnly || s.Desc.SM < 80) {
		cache = program.CacheStream
	}
	switch {
	case cache == program.CacheL2:
		access.Policy = Shared
	case cache == program.CacheWide:
		access.Policy = WideConstant
	case cache == program.CacheStream && readOnly:
		access.Policy = OnceConstant
	case cache == program.CacheStream:
		access.Policy = Once
	case readOnly && (cache == program.CacheConst || !s.Waited):
		access.Policy = Constant
	}
	return access
}

// stores chooses the policy of stores.
func stores(p *program.Value, cache program.Cache) Access {
	access := Access{Space: p.Type.Space}
	switch {
	case p.Type.Space != program.GlobalSpace:
	case cache == program.CacheStream:
		access.Policy = Once
	case cache == program.CacheL2:
		access.Policy = Shared
	}
	return access
}

func (s *Selector) memory(in *program.Instr) error {
	p := in.Args
	switch in.Op {
	case program.Alloca:
		return s.alloca(in)
	case program.Load:
		s.load(in)
	case program.Guarded:
		if in.Args[0].Type.Lanes > 1 {
			return fmt.Errorf("a GPU has no guarded lanes")
		}
		if s.Address(p[1]).array != nil {
			return fmt.Errorf("a guarded load of an array without memory")
		}
		s.print.Guarded(in, s.loads(p[1], in.Cache))
	case program.Store:
		if a := s.Address(p[0]); a.array != nil {
			s.storeArray(p[1], a)
		} else {
			s.store(stores(p[0], in.Cache), p[1], a, in.Align)
		}
	case program.Gather:
		s.gather(in)
	case program.Scatter:
		s.scatter(in)
	case program.CopyAsync:
		if s.Desc.SM < program.CopySM {
			return fmt.Errorf("%s has no asynchronous copies", s.Desc.Name)
		}
		s.print.CopyAsync(s.Address(p[0]), s.Address(p[1]), in.Int)
	case program.Prefetch:
		if p[0].Type.Space == program.GlobalSpace {
			s.print.Prefetch(s.Address(p[0]))
		}
	}
	return nil
}

func (s *Selector) load(in *program.Instr) {
	a := s.Address(in.Args[0])
	if a.array == nil {
		s.Set(in.Result, s.Loaded(in.Result.Type, s.loads(in.Args[0], in.Cache), a, in.Align))
		return
	}
	lanes := make([]Operand, in.Result.Type.Lanes)
	for i := range lanes { // copies: a later store may change the array
		lanes[i] = s.print.Copy(a.array[a.index+int64(i)])
	}
	s.set(in.Result, lanes)
}

func (s *Selector) storeArray(v *program.Value, a *Address) {
	for i := range v.Type.Lanes {
		to := a.array[a.index+int64(i)]
		s.print.Move(to, s.LaneAs(v, i, to.Type))
	}
}

// Loaded loads a value of a type: its storage.
func (s *Selector) Loaded(t program.Type, access Access, a *Address, align int) []Operand {
	size := t.Elem.Size()
	lane := TypeOf(t.Elem)
	switch {
	case t.Lanes == 1 && size <= 2 && align >= size:
		return []Operand{s.print.LoadNarrow(access, t.Elem, a)}
	case size >= 4 && align >= size && s.print.Typed(access):
		return s.loadTyped(access, lane, a, t.Lanes, align)
	}
	words := s.loadWords(access, a, size*t.Lanes, align)
	if IsPacked(t) {
		return words
	}
	lanes := make([]Operand, t.Lanes)
	for i := range lanes {
		switch {
		case t.Elem == ir.Bool:
			lanes[i] = s.print.NotZero(Word, s.unpack(words, ir.U8, i))
		case size <= 2:
			lanes[i] = s.unpack(words, t.Elem, i)
		case size == 4:
			lanes[i] = s.print.Bitcast(words[i], lane)
		default:
			lanes[i] = s.print.Join(lane, words[2*i], words[2*i+1])
		}
	}
	return lanes
}

// loadTyped loads elements of 4 or 8 bytes by their own type, aligned to that.
func (s *Selector) loadTyped(access Access, t Type, a *Address, lanes, align int) []Operand {
	size := t.Bits() / 8
	var out []Operand
	for _, c := range Pieces(size*lanes, align) {
		out = append(out, s.print.Load(access, t, c.Width/size, a.Plus(int64(c.Off)))...)
	}
	return out
}

// loadWords loads n bytes as 32-bit words; bytes past n are 0.
func (s *Selector) loadWords(access Access, a *Address, n, align int) []Operand {
	words := make([]Operand, (n+3)/4)
	for _, c := range Pieces(n, align) {
		at, w := a.Plus(int64(c.Off)), c.Off/4
		if c.Width >= 4 {
			copy(words[w:], s.print.Load(access, U32, c.Width/4, at))
			continue
		}
		words[w] = s.print.InsertBytes(words[w], s.print.LoadBytes(access, c.Width, at), c.Off%4, c.Width)
	}
	for i := range words {
		words[i] = s.print.Named(words[i])
	}
	return words
}

func (s *Selector) store(access Access, v *program.Value, a *Address, align int) {
	t := v.Type
	size := t.Elem.Size()
	switch {
	case t.Lanes == 1 && size <= 2 && align >= size:
		s.print.StoreNarrow(access, t.Elem, a, s.Lane(v, 0))
		return
	case size == 8 && align >= 8, size == 4 && align >= 4 && !s.simplify:
		s.storeTyped(access, v, a, align)
		return
	}
	words := s.storedWords(v)
	for _, c := range Pieces(size*t.Lanes, align) {
		at, w := a.Plus(int64(c.Off)), c.Off/4
		if c.Width >= 4 {
			s.print.Store(access, U32, at, words[w:][:c.Width/4])
		} else {
			s.print.StoreBytes(access, c.Width, at, words[w], c.Off%4)
		}
	}
}

// storeTyped stores elements of 4 or 8 bytes by their own type.
func (s *Selector) storeTyped(access Access, v *program.Value, a *Address, align int) {
	t := TypeOf(v.Type.Elem)
	size := t.Bits() / 8
	for _, c := range Pieces(size*v.Type.Lanes, align) {
		lanes := lists.Make(c.Width/size, func(i int) Operand { return s.print.Variable(s.LaneAs(v, c.Off/size+i, t), t) })
		s.print.Store(access, t, a.Plus(int64(c.Off)), lanes)
	}
}

// storedWords is a value as 32-bit words in memory order.
func (s *Selector) storedWords(v *program.Value) []Operand {
	t := v.Type
	var words []Operand
	switch {
	case IsPacked(t):
		words = append(words, s.Words(v)...)
	case t.Elem.Size() == 8:
		for i := range t.Lanes {
			words = append(words, s.print.Split(s.LaneAs(v, i, TypeOf(t.Elem)))...)
		}
	case t.Elem == ir.Bool:
		lanes := lists.Make(t.Lanes, func(i int) Operand { return s.print.WordOf(s.Lane(v, i)) })
		for i := range (t.Lanes + 3) / 4 {
			words = append(words, s.pack(lanes, ir.U8, i))
		}
	default:
		for i := range t.Lanes {
			words = append(words, s.print.WordOf(s.Lane(v, i)))
		}
	}
	for i := range words {
		words[i] = s.print.Variable(words[i], U32)
	}
	return words
}
