package gpu

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Arithmetic on packed words: what needs no lane of its own.

// packedAlu computes an op on whole words of packed lanes, if it is one of
// those that allow it and an operand is in words already. It reports success.
func (s *Selector) packedAlu(in *program.Instr) bool {
	d := in.Result.Type.Elem
	if s.shiftByThread(in) {
		return true
	}
	if !IsPacked(in.Result.Type) || d.IsFloat() || !s.inWords(in.Args) {
		return false
	}
	last := in.Args[len(in.Args)-1]
	count, one := s.single(last)
	bits := s.possible(in.Args[0]) // those that a lane of the result can have
	compute := func(x, y Operand) Operand { return s.word(in.Ir, x, y) }
	switch in.Ir {
	case ir.OpAnd:
		if s.simplify && one && count.Literal() && bits&^count.Bits == 0 {
			compute = func(x, _ Operand) Operand { return x }
			break
		}
		bits &= s.possible(last)
	case ir.OpOr, ir.OpXor:
		bits |= s.possible(last)
	case ir.OpNot:
		bits = mask(d)
		compute = func(x, _ Operand) Operand { return s.word(ir.OpNot, x) }
	case ir.OpAdd, ir.OpSub:
		bits = mask(d)
		compute = func(x, y Operand) Operand { return s.addPacked(in.Ir, d, x, y) }
	case ir.OpShl, ir.OpShr:
		if !one || !count.Literal() || in.Ir == ir.OpShr && d.IsSigned() {
			return false
		}
		from := bits
		bits = shiftedBits(in.Ir, d, from, count.Bits)
		compute = func(x, _ Operand) Operand { return s.shiftPacked(in.Ir, d, x, count.Bits, from) }
	default:
		return false
	}
	x, y := s.Words(in.Args[0]), s.Words(last)
	out := lists.Make(len(x), func(i int) Operand { return s.print.Named(compute(x[i], y[i])) })
	s.setWords(in.Result, out)
	s.values[in.Result.ID].bits = bits
	return true
}

// word is an operator of words.
func (s *Selector) word(op ir.Op, x ...Operand) Operand { return s.print.Word(op, x...) }

// possible are the bits that a lane of a packed vector can have, where the
// printer's language does not find out itself. Lanes past the last keep to them
// as well: they are zeros, copies, or came about by the same ops.
func (s *Selector) possible(v *program.Value) uint64 {
	all := mask(v.Type.Elem)
	if !s.simplify {
		return all
	}
	if h := s.values[v.ID]; h.words != nil && h.bits != 0 {
		return h.bits
	}
	if c, ok := s.single(v); ok && c.Literal() {
		return c.Bits & all
	}
	return all
}

func shiftedBits(op ir.Op, d ir.DType, bits, count uint64) uint64 {
	switch {
	case count >= uint64(d.Bits()):
		return 0
	case op == ir.OpShl:
		return bits << count & mask(d)
	}
	return bits >> count
}

// inWords reports operands of which some are words and the others literals or
// words.
func (s *Selector) inWords(args []*program.Value) bool {
	some := false
	for _, a := range args {
		if !IsPacked(a.Type) {
			return false
		}
		if s.values[a.ID].words != nil {
			some = true
			continue
		}
		for _, o := range s.values[a.ID].lanes {
			if !o.Literal() {
				return false
			}
		}
	}
	return some
}

// shiftPacked shifts the word and clears what came from the neighbour, if its
// bits can have anything there.
func (s *Selector) shiftPacked(op ir.Op, d ir.DType, x Operand, count, bits uint64) Operand {
	all := mask(d)
	switch {
	case count >= uint64(d.Bits()):
		return word(0)
	case count == 0:
		return x
	}
	shifted := s.word(op, x, Operand{Bits: count, Type: I32})
	switch {
	case op == ir.OpShl && bits<<count&^all == 0, op == ir.OpShr && bits&(1<<count-1) == 0:
		return shifted
	case op == ir.OpShl:
		return s.word(ir.OpAnd, shifted, repeat(d, all<<count))
	}
	return s.word(ir.OpAnd, shifted, repeat(d, all>>count))
}

// shiftByThread shifts words by an amount that is the same in all lanes of a vector, but only
// known to a thread: the lanes of a warp that share bytes take other bits of them. It reports
// success.
func (s *Selector) shiftByThread(in *program.Instr) bool {
	d := in.Result.Type.Elem
	if in.Ir != ir.OpShl && in.Ir != ir.OpShr || !IsPacked(in.Result.Type) || in.Ir == ir.OpShr && d.IsSigned() {
		return false
	}
	count, single := s.single(in.Args[1])
	within, known := s.bounds[in.Args[1]]
	if !single || count.Literal() || !known || within.Lo < 0 || within.Hi >= int64(d.Bits()) || s.values[in.Args[0].ID].words == nil {
		return false
	}
	count.Type = I32
	kept := s.Once(fmt.Sprintf("kept %s %s %s", in.Ir, d, count.Name), func() Operand {
		lane := s.print.Named(s.word(in.Ir, word(mask(d)), count))
		if in.Ir == ir.OpShl {
			lane = s.print.Named(s.word(ir.OpAnd, lane, word(mask(d))))
		}
		return s.print.Named(s.word(ir.OpMul, lane, repeat(d, 1)))
	})
	from, bits := s.possible(in.Args[0]), uint64(0)
	for n := within.Lo; n <= within.Hi; n++ {
		bits |= shiftedBits(in.Ir, d, from, uint64(n))
	}
	s.setWords(in.Result, lists.Map(s.Words(in.Args[0]), func(x Operand) Operand {
		return s.print.Named(s.word(ir.OpAnd, s.word(in.Ir, x, count), kept))
	}))
	s.values[in.Result.ID].bits = bits
	return true
}

// addPacked keeps carries (or borrows) inside of lanes: the upper bits of the
// lanes are added apart, without one.
func (s *Selector) addPacked(op ir.Op, d ir.DType, x, y Operand) Operand {
	top := uint64(1) << (d.Bits() - 1)
	tops, rest := repeat(d, top), repeat(d, top-1)
	upper := s.print.Named(s.word(ir.OpAnd, s.word(ir.OpXor, x, y), tops))
	if op == ir.OpAdd {
		low := s.word(ir.OpAnd, x, rest)
		return s.word(ir.OpXor, s.word(ir.OpAdd, low, s.word(ir.OpAnd, y, rest)), upper)
	}
	full := s.word(ir.OpOr, x, tops)
	difference := s.word(ir.OpSub, full, s.word(ir.OpAnd, y, rest))
	return s.word(ir.OpXor, difference, s.word(ir.OpXor, upper, tops))
}

// halfAlu is arithmetic on f16, two lanes at a time. Only ops that round once
// are left by opt.Has.HalfArith.
func (s *Selector) halfAlu(in *program.Instr) bool {
	t := in.Result.Type
	if t.Elem != ir.F16 {
		return false
	}
	var compute func(x []Operand) Operand
	switch in.Ir {
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpFma:
		compute = func(x []Operand) Operand { return s.print.Half(in.Ir, x) }
	case ir.OpNeg:
		compute = func(x []Operand) Operand { return s.print.Named(s.word(ir.OpXor, x[0], word(0x80008000))) }
	case ir.OpAbs:
		compute = func(x []Operand) Operand { return s.print.Named(s.word(ir.OpAnd, x[0], word(0x7fff7fff))) }
	default:
		return false
	}
	args := lists.Map(in.Args, s.Storage)
	out := make([]Operand, len(args[0]))
	for i := range out {
		x := lists.Make(len(args), func(k int) Operand { return args[k][i] })
		out[i] = compute(x)
	}
	if !IsPacked(t) {
		out[0] = s.narrowed(ir.F16, out[0])
	}
	s.Set(in.Result, out)
	return true
}
