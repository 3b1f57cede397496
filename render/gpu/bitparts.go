package gpu

import (
	"math/bits"

	"tgc/ir"
	"tgc/ir/program"
)

// bitPart are some bits of numbers, from one on: those that a value has of its own.
type bitPart struct {
	of          *program.Value
	from, width int
}

// looseBits is of how many bits at most a product takes each to the signs of bytes: places that lie so far apart as the powers of
// two of the other factor do, so that no two bits meet and carry.
const looseBits = 7

// bitParts are the parts that numbers are put together of, x | y<<n where x has n bits; else they themselves.
func (s *Selector) bitParts(v *program.Value) []bitPart {
	if or := s.defs.alu(v, ir.OpOr); or != nil && s.simplify {
		for k, low := range or.Args {
			shift := s.defs.alu(or.Args[1-k], ir.OpShl)
			if shift == nil {
				continue
			}
			high := shift.Args[0]
			n, known := s.defs.integer(shift.Args[1])
			if lows, highs := s.widthOf(low), s.widthOf(high); known && lows <= int(n) && lows <= looseBits && highs <= looseBits {
				return []bitPart{{low, 0, lows}, {high, int(n), highs}}
			}
		}
	}
	return []bitPart{{v, 0, s.widthOf(v)}}
}

// widthOf is how many bits a number can have.
func (s *Selector) widthOf(v *program.Value) int {
	if b, known := s.bounds[v]; known && b.Lo >= 0 && s.simplify {
		return min(bits.Len64(uint64(b.Hi)), v.Type.Elem.Bits())
	}
	return v.Type.Elem.Bits()
}

// toSigns takes those of four bits of numbers, from one on, that are of a part to the signs of a word's bytes, and others
// elsewhere. ok is false where the part has none of them.
func (s *Selector) toSigns(part bitPart, lane, first int) (signs Operand, ok bool) {
	if first >= part.from+part.width || first+4 <= part.from {
		return Operand{}, false
	}
	number := s.print.Variable(s.Lane(part.of, lane), U32)
	if part.width > looseBits {
		number = s.fourOf(number, first, part.width)
		part.from, part.width = first, 4
	}
	var powers uint64
	for i := range 4 {
		if at := first + i - part.from; at >= 0 && at < part.width {
			powers |= 1 << (8*i + 7 - at)
		}
	}
	if powers == 1<<31 { // what lies above the lowest bit is lost
		if and := s.defs.alu(part.of, ir.OpAnd); and != nil && s.simplify {
			if one, known := s.defs.integer(and.Args[1]); known && one == 1 {
				number = s.print.Variable(s.Lane(and.Args[0], lane), U32)
			}
		}
	}
	return s.print.Named(s.word(ir.OpMul, number, word(powers))), true
}

// fourOf are four bits of a number alone.
func (s *Selector) fourOf(number Operand, from, width int) Operand {
	if from > 0 {
		number = s.print.Named(s.word(ir.OpShr, number, Operand{Bits: uint64(from), Type: I32}))
	}
	if from+4 < width {
		number = s.print.Named(s.word(ir.OpAnd, number, word(15)))
	}
	return number
}
