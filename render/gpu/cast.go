package gpu

import (
	"fmt"
	"math"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// cast converts between the dtypes that the expansion for a GPU leaves.
func (s *Selector) cast(in *program.Instr) error {
	v, to := in.Args[0], in.Result
	from, d := v.Type.Elem, to.Type.Elem
	if from == ir.U8 {
		s.origin[to] = v
	}
	if d == ir.F16 || d == ir.BF16 {
		if !s.bytesToHalves(v, to) {
			s.roundHalf(v, to)
		}
		return nil
	}
	h := s.values[v.ID]
	if IsPacked(to.Type) && h.words != nil && from.IsInt() && d.IsInt() && from.Size() == d.Size() {
		s.keepWords(to, h)
		return nil
	}
	if s.bytesToFloat(v, to) || s.wordsToBytes(v, to) || s.widenWords(v, to) || s.narrowWords(v, to) {
		return nil
	}
	lanes := make([]Operand, to.Type.Lanes)
	for i := range lanes {
		o, err := s.castLane(v, to, i)
		if err != nil {
			return err
		}
		lanes[i] = o
	}
	s.set(to, lanes)
	return nil
}

// keepWords holds a value in the words of another one.
func (s *Selector) keepWords(to *program.Value, h *held) {
	s.setWords(to, h.words)
	s.values[to.ID].bits = h.bits
}

// bytesToFloat converts packed bytes to f32 without the conversion unit, which
// is narrow (converting kernels stop at 80 % of an H200's bandwidth): a byte in
// the low bits of 2^23 makes the float 2^23 + x, and taking 2^23 off is exact.
// Signed bytes are moved up by 128 first. What is added to the float is taken off
// less (byteOffsets).
func (s *Selector) bytesToFloat(v, to *program.Value) bool {
	d, words := v.Type.Elem, s.values[v.ID].words
	if words == nil || to.Type.Elem != ir.F32 || d != ir.U8 && d != ir.I8 {
		return false
	}
	off := float64(1<<23) - s.offsets[to].Plus
	if d == ir.I8 {
		off += 128
		words = s.signedToUnsigned(words, math.MaxUint8)
	}
	s.bytes[to] = v
	lanes := lists.Make(to.Type.Lanes, func(i int) Operand { return s.print.ByteToFloat(words[i/4], i%4, off) })
	s.set(to, lanes)
	if sum := s.offsets[to].Sum; sum != nil {
		s.added[sum] = to
	}
	return true
}

// wordsToBytes packs the low bytes of 32-bit integers by byte permutes, four lanes
// in three. Where a shift by whole bytes made them, the permutes take the bytes
// from what was shifted.
func (s *Selector) wordsToBytes(v, to *program.Value) bool {
	d := v.Type.Elem
	if !s.simplify || !IsPacked(to.Type) || to.Type.Elem.Size() != 1 || d != ir.I32 && d != ir.U32 {
		return false
	}
	at := 0
	if shift, ok := s.shifted[v]; ok {
		v, at = shift.from, shift.bytes
	}
	lane := func(i int) Operand { return s.print.Variable(s.Lane(v, min(i, v.Type.Lanes-1)), U32) }
	pair := at | (at+4)<<4 // byte at of both words
	words := make([]Operand, wordsOf(to.Type))
	for i := range words {
		words[i] = s.print.Permute(lane(4*i), lane(4*i+1), pair)
		if to.Type.Lanes > 2 {
			words[i] = s.print.Permute(words[i], s.print.Permute(lane(4*i+2), lane(4*i+3), pair), 0x5410)
		}
	}
	s.setWords(to, words)
	if within, known := s.bounds[v]; known && within.Lo >= 0 && within.Hi <= math.MaxUint8 && to.Type.Elem == ir.U8 && at == 0 {
		s.values[to.ID].lanes = lists.Make(to.Type.Lanes, lane) // nothing has to be taken out of words again
	}
	return true
}

// byteShift is a shift of integers to the right by whole bytes.
type byteShift struct {
	from  *program.Value
	bytes int
}

// noteShift remembers such shifts for wordsToBytes and narrowWords.
func (s *Selector) noteShift(in *program.Instr) {
	d := in.Result.Type.Elem
	if in.Ir != ir.OpShr || d != ir.I32 && d != ir.U32 && d != ir.U16 {
		return
	}
	if c, ok := s.single(in.Args[1]); ok && c.Literal() && c.Bits < uint64(d.Bits()) && c.Bits%8 == 0 {
		s.shifted[in.Result] = byteShift{in.Args[0], int(c.Bits / 8)}
	}
}

// byteOf takes a byte out of a word and extends it, in one permutation.
func (s *Selector) byteOf(d ir.DType, w Operand, at int) Operand {
	high := 4 // the first byte of 0
	if d.IsSigned() {
		high = 8 | at // its sign
	}
	return s.print.Permute(w, word(0), high<<12|high<<8|high<<4|at)
}

func (s *Selector) castLane(v, to *program.Value, i int) (Operand, error) {
	from, d, t := v.Type.Elem, to.Type.Elem, s.TypeOf(to)
	n := Number{DType: from, Type: s.TypeOf(v)}
	machine := n.Type.Float() || !from.IsFloat() // f16 and the like are bits
	switch {
	case from == d:
		return s.print.Hold(s.Lane(v, i), t), nil
	case d == ir.Bool:
		return s.print.NotZero(n, s.Lane(v, i)), nil
	case from == ir.Bool:
		return s.boolTo(s.Lane(v, i), d, t), nil
	case from == ir.F16 && d == ir.F32:
		if IsPacked(v.Type) {
			if !s.simplify { // CUDA C names the half as well; its compiler drops that
				s.Lane(v, i)
			}
			return s.print.HalfToFloat(s.Words(v)[i/2], i%2 != 0), nil
		}
		if h := s.values[v.ID].half; h != nil {
			return s.print.HalfToFloat(s.Words(h.of)[h.lane/2], h.lane%2 != 0), nil
		}
		return s.print.HalfToFloat(s.Lane(v, 0), false), nil
	case machine && t.Float():
		return s.print.ToFloat(n, t, s.Lane(v, i)), nil
	case machine && from.IsFloat() && !d.IsFloat():
		return s.print.FloatToInt(n, d, s.Lane(v, i)), nil
	case machine && !d.IsFloat():
		return s.intToInt(v, to, i), nil
	}
	return Operand{}, fmt.Errorf("no cast of %s to %s", from, d)
}

// boolTo is 1 or 0.
func (s *Selector) boolTo(p Operand, d ir.DType, t Type) Operand {
	one := Operand{Bits: 1, Type: t}
	if d.IsFloat() {
		one.Bits = ir.FloatBits(d, 1)
	}
	return s.Pick(p, one, Operand{Type: t}, t)
}

// roundHalf converts f32 to f16 or bf16; pairs in one instruction from sm_80.
func (s *Selector) roundHalf(v, to *program.Value) {
	d, lanes := to.Type.Elem, to.Type.Lanes
	if lanes == 1 {
		s.set(to, []Operand{s.print.RoundHalf(d, s.Lane(v, 0))})
		return
	}
	words := make([]Operand, wordsOf(to.Type))
	for i := range words {
		low, high := s.Lane(v, 2*i), Operand{Type: F32}
		if 2*i+1 < lanes {
			high = s.Lane(v, 2*i+1)
		}
		words[i] = s.print.RoundHalves(d, low, high)
	}
	s.setWords(to, words)
}

func (s *Selector) intToInt(v, to *program.Value, i int) Operand {
	from, d, t := v.Type.Elem, to.Type.Elem, s.TypeOf(to)
	o := s.Lane(v, i)
	if d.Size() >= 4 {
		switch {
		case o.Literal() && o.Type == I32:
			o.Bits = uint64(int64(int32(o.Bits)))
		case o.Literal() && o.Type == U32:
			o.Bits &= math.MaxUint32
		}
		return s.print.Hold(o, t)
	}
	lo, hi := from.IntRange()
	if b, ok := s.bounds[v]; ok && from != ir.U64 {
		lo, hi = b.Lo, b.Hi
	}
	if dlo, dhi := d.IntRange(); from != ir.U64 && lo >= dlo && hi <= dhi {
		return s.print.Hold(o, t)
	}
	if shift, ok := s.shifted[v]; ok && s.simplify && d.Size() == 1 {
		return s.byteOf(d, s.Lane(shift.from, i), shift.bytes)
	}
	return s.narrowed(d, o)
}

// bitcast keeps bits; lanes that were extended by another sign are extended
// again.
func (s *Selector) bitcast(in *program.Instr) {
	v, to := in.Args[0], in.Result
	from, d := v.Type.Elem, to.Type.Elem
	if h := s.values[v.ID]; IsPacked(to.Type) && h.words != nil {
		s.keepWords(to, h)
		return
	}
	if to.Type.Lanes != v.Type.Lanes {
		s.setWords(to, lists.Make(v.Type.Lanes, func(i int) Operand { return s.print.Bitcast(s.Lane(v, i), U32) }))
		return
	}
	narrow := d.Size() <= 2 && d != ir.Bool
	lanes := make([]Operand, to.Type.Lanes)
	for i := range lanes {
		o := s.Lane(v, i)
		switch {
		case narrow && (o.Literal() || IsSignExtended(from) != IsSignExtended(d)):
			lanes[i] = s.narrowed(d, o)
		case o.Literal():
			lanes[i] = o
		default:
			lanes[i] = s.print.Bitcast(o, s.TypeOf(to))
		}
	}
	s.set(to, lanes)
}
