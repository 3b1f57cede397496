package gpu

import (
	"math"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// halfFormat is how a half holds whole numbers: a byte below the upper bits of a power of two is their sum, where the
// significand has room for it, and taking the power off is exact.
type halfFormat struct {
	upper int     // byte of the power of two
	power float64 // the power
	bits  uint64  // those of a byte that the significand has room for
}

var halfFormats = map[ir.DType]halfFormat{
	ir.F16:  {upper: 0x64, power: 1 << 10, bits: 0xff},
	ir.BF16: {upper: 0x43, power: 1 << 7, bits: 0x7f},
}

// bytesToHalves makes halves of floats that bytes were converted to, two at a time, from the bytes: a permute and a
// subtraction. The floats are left to nobody then.
func (s *Selector) bytesToHalves(v, to *program.Value) bool {
	made, plus := v, 0.0
	if of := s.added[v]; of != nil {
		made, plus = of, s.offsets[of].Plus
	}
	bytes, d := s.bytes[made], to.Type.Elem
	if bytes == nil || !s.simplify || to.Type.Lanes%4 != 0 || s.values[bytes.ID].words == nil {
		return false
	}
	words, from, ok := s.smallBytes(bytes, halfFormats[d])
	if less := halfFormats[d].power + from - plus; ok && ir.RoundFloat(d, less) == less {
		all := s.print.Variable(repeat(d, ir.FloatBits(d, less)), U32)
		s.setWords(to, s.halvesOf(words, d, func(int) Operand { return all }))
		return true
	}
	if d == ir.BF16 && bytes.Type.Elem == ir.I8 && plus == 0 {
		s.setWords(to, s.signedHalves(s.values[bytes.ID].words, d))
		return true
	}
	return false
}

// smallBytes are the words of bytes that a format has room for, each of so much more than the bytes themselves.
func (s *Selector) smallBytes(v *program.Value, f halfFormat) (words []Operand, more float64, ok bool) {
	words = s.values[v.ID].words
	if v.Type.Elem == ir.U8 {
		return words, 0, s.possible(v)&^f.bits == 0
	}
	half := f.bits/2 + 1
	within, known := s.bounds[v]
	if f.bits < math.MaxUint8 && (!known || within.Lo < -int64(half) || within.Hi >= int64(half)) {
		return nil, 0, false
	}
	return s.signedToUnsigned(words, f.bits), float64(half), true
}

// signedToUnsigned adds half of what some of their lower bits can say, 128 for all of them, to signed bytes that have no others.
func (s *Selector) signedToUnsigned(words []Operand, bits uint64) []Operand {
	return lists.Map(words, func(w Operand) Operand {
		if bits < math.MaxUint8 {
			w = s.word(ir.OpAnd, w, repeat(ir.U8, bits))
		}
		return s.print.Named(s.word(ir.OpXor, w, repeat(ir.U8, bits/2+1)))
	})
}

// halvesOf makes halves of bytes below a power of two and takes others off.
func (s *Selector) halvesOf(bytes []Operand, d ir.DType, less func(word int) Operand) []Operand {
	var out []Operand
	for i, w := range s.belowPower(bytes, d) {
		out = append(out, s.print.SubHalves(d, w, less(i)))
	}
	return out
}

// belowPower puts bytes below the upper bits of a format's power of two, two in a word.
func (s *Selector) belowPower(bytes []Operand, d ir.DType) []Operand {
	upper := word(uint64(halfFormats[d].upper))
	return lists.FlatMap(bytes, func(w Operand) []Operand {
		return []Operand{s.print.Named(s.print.Permute(w, upper, 0x4140)), s.print.Named(s.print.Permute(w, upper, 0x4342))}
	})
}

// signedHalves makes halves of signed bytes that a format has room for but for their signs: 2^n and the lower bits, less 2^n and
// the sign's, which is the next power where it is set.
func (s *Selector) signedHalves(bytes []Operand, d ir.DType) []Operand {
	bits := halfFormats[d].bits
	part := func(mask uint64) []Operand {
		return lists.Map(bytes, func(w Operand) Operand { return s.print.Named(s.word(ir.OpAnd, w, repeat(ir.U8, mask))) })
	}
	signs := s.belowPower(part(math.MaxUint8&^bits), d)
	return s.halvesOf(part(bits), d, func(i int) Operand { return signs[i] })
}
