package gpu

import (
	"math"
	"math/bits"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Products of unsigned lanes of words with a number that they have in common: a product of words multiplies all of their lanes, as long
// as none of them grows into the next. Bytes have room for that in 16 bits.

// mulWords computes such a product, and reports success.
func (s *Selector) mulWords(in *program.Instr) bool {
	t := in.Result.Type
	if in.Ir != ir.OpMul || !IsPacked(t) || t.Elem != ir.U8 && t.Elem != ir.U16 {
		return false
	}
	for k, v := range in.Args {
		factor, ok := s.single(in.Args[1-k])
		if !ok || s.values[v.ID].words == nil {
			continue
		}
		product := uint64(1)<<bits.Len64(s.possible(v)*s.possible(in.Args[1-k])) - 1
		factor.Type = U32
		switch {
		case product <= mask(t.Elem):
			s.setWords(in.Result, lists.Map(s.Words(v), func(w Operand) Operand { return s.print.Named(s.word(ir.OpMul, w, factor)) }))
			s.values[in.Result.ID].bits = product
			return true
		case t.Elem == ir.U8:
			s.setWords(in.Result, lists.Map(s.Words(v), func(w Operand) Operand { return s.lowBytesOfProducts(w, factor) }))
			return true
		}
	}
	return false
}

// lowBytesOfProducts multiplies the even bytes and the odd ones.
func (s *Selector) lowBytesOfProducts(w, factor Operand) Operand {
	even, odd := s.word(ir.OpAnd, w, word(0x00ff00ff)), s.print.Permute(w, word(0), 0x4341)
	products := lists.Map([]Operand{even, odd}, func(x Operand) Operand { return s.print.Named(s.word(ir.OpMul, s.print.Named(x), factor)) })
	return s.print.Named(s.print.Permute(products[0], products[1], 0x6240))
}

// widenWords makes 16-bit integers of unsigned bytes in words, for products: others would take them apart again.
func (s *Selector) widenWords(v, to *program.Value) bool {
	words := s.values[v.ID].words
	if words == nil || !s.defs.factors[to] || !IsPacked(to.Type) || v.Type.Elem != ir.U8 || to.Type.Elem.Size() != 2 || !to.Type.Elem.IsInt() {
		return false
	}
	var out []Operand
	for _, w := range words {
		out = append(out, s.print.Named(s.print.Permute(w, word(0), 0x4140)), s.print.Named(s.print.Permute(w, word(0), 0x4342)))
	}
	s.setWords(to, out[:wordsOf(to.Type)])
	s.values[to.ID].bits = s.possible(v)
	return true
}

// narrowWords makes bytes of 16-bit integers in words: where a shift by whole bytes made them, it takes the bytes from what was shifted.
func (s *Selector) narrowWords(v, to *program.Value) bool {
	words := s.values[v.ID].words
	if words == nil || !IsPacked(to.Type) || v.Type.Elem.Size() != 2 || !v.Type.Elem.IsInt() || to.Type.Elem.Size() != 1 || to.Type.Elem == ir.Bool {
		return false
	}
	possible, selector := s.possible(v), 0x6420
	if shift, ok := s.shifted[v]; ok && s.values[shift.from.ID].words != nil {
		words, selector = s.values[shift.from.ID].words, selector+0x1111*shift.bytes
	}
	out := make([]Operand, wordsOf(to.Type))
	for i := range out {
		out[i] = s.print.Named(s.print.Permute(words[2*i], words[min(2*i+1, len(words)-1)], selector))
	}
	s.setWords(to, out)
	s.values[to.ID].bits = possible & math.MaxUint8
	return true
}
