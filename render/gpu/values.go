package gpu

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// held says where a value lives. A pointer has an address. A vector of narrow
// elements has words, lanes, or both; every other value has lanes.
//
// Words are packed little-endian; bytes past the last lane are undefined.
type held struct {
	lanes   []Operand
	words   []Operand
	bits    uint64 // of packed words: those that a lane can have; 0 says nothing
	half    *half  // of an f16 that has no register of its own yet
	address *Address
}

// half is an f16 of a packed vector: what takes it apart needs no word of its own for it.
type half struct {
	of   *program.Value
	lane int
}

// TypeOf is the type in which lanes of v are held. An I64 whose bounds fit is 32
// bits.
func (s *Selector) TypeOf(v *program.Value) Type {
	b, known := s.bounds[v]
	return typeOf(v.Type.Elem, known && b.Fits32())
}

// TypeOf is the type in which elements of a dtype are held, indices of any size.
func TypeOf(d ir.DType) Type { return typeOf(d, false) }

func typeOf(d ir.DType, narrow bool) Type {
	switch {
	case d == ir.Bool:
		return Bool
	case d == ir.F32:
		return F32
	case d == ir.F64:
		return F64
	case d == ir.U64:
		return U64
	case d == ir.I64 && !narrow:
		return I64
	case IsSignExtended(d):
		return I32
	}
	return U32
}

// StorageType is the type of a value's words if it is packed, else of its lanes.
func (s *Selector) StorageType(v *program.Value) Type {
	if IsPacked(v.Type) {
		return U32
	}
	return s.TypeOf(v)
}

func (s *Selector) set(v *program.Value, lanes []Operand) {
	t := s.TypeOf(v)
	for i := range lanes {
		lanes[i].Type = t
	}
	s.values[v.ID] = &held{lanes: lanes}
}

func (s *Selector) setWords(v *program.Value, words []Operand) {
	s.values[v.ID] = &held{words: words}
}

// Set makes variables the storage of a value: its words if it is packed, else
// its lanes.
func (s *Selector) Set(v *program.Value, storage []Operand) {
	if IsPacked(v.Type) {
		s.setWords(v, storage)
	} else {
		s.set(v, storage)
	}
}

// Once is the operand of a key, computed in the innermost scope if no open one
// has it.
func (s *Selector) Once(key string, compute func() Operand) Operand {
	return s.scopes.Once(key, compute)
}

// Open enters a block; Close leaves it.
func (s *Selector) Open()  { s.scopes.Open() }
func (s *Selector) Close() { s.scopes.Close() }

// Lane is one lane, in the type of its value.
func (s *Selector) Lane(v *program.Value, i int) Operand {
	h := s.values[v.ID]
	if h.lanes != nil {
		return h.lanes[i]
	}
	if h.half != nil {
		return s.Lane(h.half.of, h.half.lane)
	}
	return s.Once(fmt.Sprintf("lane %d %d", v.ID, i), func() Operand { return s.unpack(h.words, v.Type.Elem, i) })
}

// LaneAs is one lane as an operand of an instruction of a type.
func (s *Selector) LaneAs(v *program.Value, i int, t Type) Operand {
	return s.print.Use(s.Lane(v, i), t)
}

// unpack takes element i out of packed words.
func (s *Selector) unpack(words []Operand, d ir.DType, i int) Operand {
	bits := d.Bits()
	per := 32 / bits
	w, at := words[i/per], i%per*bits
	if w.Literal() {
		return extended(d, w.Bits>>at)
	}
	return s.print.Unpack(w, d, at)
}

// narrowed is the low bits of an integer as a lane of a narrow dtype.
func (s *Selector) narrowed(d ir.DType, o Operand) Operand {
	if o.Literal() {
		return extended(d, o.Bits)
	}
	return s.print.Extend(d, o)
}

// Words are the packed words of a narrow vector.
func (s *Selector) Words(v *program.Value) []Operand {
	h := s.values[v.ID]
	if h.words != nil {
		return h.words
	}
	words := make([]Operand, wordsOf(v.Type))
	for i := range words {
		words[i] = s.Once(fmt.Sprintf("word %d %d", v.ID, i), func() Operand { return s.pack(h.lanes, v.Type.Elem, i) })
	}
	return words
}

// pack makes word i of lanes; missing lanes are 0.
func (s *Selector) pack(lanes []Operand, d ir.DType, i int) Operand {
	per := 4 / d.Size()
	part := make([]Operand, per)
	literals, bits := true, uint64(0)
	for k := range part {
		part[k] = word(0)
		if at := i*per + k; at < len(lanes) {
			part[k] = lanes[at]
		}
		literals = literals && part[k].Literal()
		bits |= part[k].Bits & mask(d) << (k * d.Bits())
	}
	zero := word(0)
	switch {
	case literals:
		return word(bits)
	case per == 2 && s.simplify && part[0].Same(part[1]):
		return s.print.Permute(part[0], zero, 0x1010)
	case per == 2:
		return s.print.Permute(part[0], part[1], 0x5410)
	case part[0].Same(part[1]) && part[0].Same(part[2]) && part[0].Same(part[3]):
		return s.print.Permute(part[0], zero, 0x0000)
	case s.simplify && part[1].Same(zero) && part[2].Same(zero) && part[3].Same(zero):
		return s.print.Permute(part[0], zero, 0x4440)
	}
	low := s.print.Permute(part[0], part[1], 0x0040)
	return s.print.Permute(low, s.print.Permute(part[2], part[3], 0x0040), 0x5410)
}

// Storage are the variables of a value as its whole: words of a packed vector,
// else lanes.
func (s *Selector) Storage(v *program.Value) []Operand {
	if IsPacked(v.Type) {
		return s.Words(v)
	}
	return lists.Make(v.Type.Lanes, func(i int) Operand { return s.Lane(v, i) })
}

// Fragment is a value as a matrix instruction takes it: words of 32 bits, or numbers of 64.
func (s *Selector) Fragment(v *program.Value) ([]Operand, Type) {
	if v.Type.Elem == ir.F64 {
		return s.Storage(v), F64
	}
	return s.Words(v), U32
}

// StorageAs is the storage of v as operands of the type that `as` has: an index
// may be held narrow in one and wide in the other.
func (s *Selector) StorageAs(v, as *program.Value) []Operand {
	out := s.Storage(v)
	if !IsPacked(v.Type) {
		for i := range out {
			out[i] = s.print.Use(out[i], s.TypeOf(as))
		}
	}
	return out
}

// Variables declares the storage of a value, to be assigned later.
func (s *Selector) Variables(v *program.Value) []Operand {
	n := v.Type.Lanes
	if IsPacked(v.Type) {
		n = wordsOf(v.Type)
	}
	out := lists.Make(n, func(int) Operand { return s.print.Declare(s.StorageType(v)) })
	s.Set(v, out)
	return out
}

// single is the one operand that all lanes of v are.
func (s *Selector) single(v *program.Value) (Operand, bool) {
	h := s.values[v.ID]
	if h.lanes == nil {
		return Operand{}, false
	}
	for _, o := range h.lanes[1:] {
		if !o.Same(h.lanes[0]) {
			return Operand{}, false
		}
	}
	return h.lanes[0], true
}

// constant holds literals; variables are made where an instruction needs one.
func (s *Selector) constant(in *program.Instr) {
	s.consts[in.Result] = in
	lanes := lists.Map(ConstantBits(in), func(bits uint64) Operand { return Operand{Bits: bits} })
	s.set(in.Result, lanes)
}

// Assign moves all of `from` to `to` at once: where a target is still needed as
// a source of a later move, its old value is saved first.
func (s *Selector) Assign(to, from []Operand) {
	for i := range to {
		if to[i].Same(from[i]) {
			continue
		}
		for j := i + 1; j < len(from); j++ {
			if from[j].Same(to[i]) && !from[j].Same(to[j]) {
				saved := s.print.Copy(to[i])
				for k := j; k < len(from); k++ {
					if from[k].Same(to[i]) {
						from[k] = saved
					}
				}
				break
			}
		}
		s.print.Move(to[i], from[i])
	}
}

// Yields assigns what a block ends with to the storage of values, at once.
func (s *Selector) Yields(b *program.Block, storage [][]Operand, values []*program.Value) {
	var to, from []Operand
	for k, v := range b.Yielded() {
		to, from = append(to, storage[k]...), append(from, s.StorageAs(v, values[k])...)
	}
	s.Assign(to, from)
}
