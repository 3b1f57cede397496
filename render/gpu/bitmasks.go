package gpu

import (
	"tgc/ir"
	"tgc/ir/program"
)

// chooseBytes renders a choice by a bit test.
func (s *Selector) chooseBytes(in *program.Instr, c byteChoice) {
	out := make([]Operand, len(c.test.at)/4)
	var number Operand
	for i := range out {
		if c.odd { // ~y | 1
			flipped := s.print.Named(s.word(ir.OpXor, s.Words(in.Args[2])[i], s.signMask(c.test, i)))
			out[i] = s.print.Named(s.word(ir.OpOr, flipped, word(0x01010101)))
			continue
		}
		if lane := c.test.lane[4*i]; i == 0 || lane != c.test.lane[4*i-4] {
			number = s.print.Variable(s.Lane(c.test.of, lane), U32)
		}
		set, y := s.spreadBits(number, c.test.at[4*i], c.test.of.Type.Elem.Bits()), s.Words(in.Args[2])[i]
		if c.negated { // ~y + 1
			flipped := s.print.Named(s.word(ir.OpXor, y, s.allBits(set)))
			out[i] = s.print.Named(s.word(ir.OpAdd, flipped, set))
			continue
		}
		out[i] = s.chooseWord(set, s.Words(in.Args[1])[i], y)
	}
	s.setWords(in.Result, out)
}

// chooseWord picks bytes of x where set has a one, else of y.
func (s *Selector) chooseWord(set, x, y Operand) Operand {
	byteOf := x.Bits & 0xff
	if y.Literal() && y.Bits == 0 && x.Literal() && x.Bits == byteOf*0x01010101 {
		return s.print.Named(s.word(ir.OpMul, set, word(byteOf)))
	}
	mask := s.allBits(set)
	yes := s.word(ir.OpAnd, x, mask)
	return s.print.Named(s.word(ir.OpOr, yes, s.print.Named(s.word(ir.OpAnd, y, s.print.Named(s.word(ir.OpNot, mask))))))
}

// spreadBits makes four bits of a number of so many bits, from one on, the lowest bits of the
// bytes of a word.
func (s *Selector) spreadBits(four Operand, from, width int) Operand {
	apart := s.print.Named(s.word(ir.OpMul, s.fourOf(four, from, width), word(1|1<<7|1<<14|1<<21)))
	return s.print.Named(s.word(ir.OpAnd, apart, word(0x01010101)))
}

// signMask has all bits of those bytes of a word set whose bit in a test is: the bits become
// the signs of the bytes, which a permute repeats.
func (s *Selector) signMask(t bitTest, i int) Operand {
	var signs []Operand
	for _, part := range s.bitParts(t.of) {
		if moved, ok := s.toSigns(part, t.lane[4*i], t.at[4*i]); ok {
			signs = append(signs, moved)
		}
	}
	if len(signs) == 0 {
		return word(0) // no number has one of these bits
	}
	all := signs[0]
	for _, more := range signs[1:] {
		all = s.print.Named(s.word(ir.OpAdd, all, more))
	}
	return s.print.Named(s.print.Permute(all, word(0), 0xba98))
}

// allBits sets all bits of the bytes that are one.
func (s *Selector) allBits(set Operand) Operand {
	return s.print.Named(s.word(ir.OpMul, set, word(0xff)))
}
