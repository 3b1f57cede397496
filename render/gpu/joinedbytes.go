package gpu

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// Numbers whose upper bits lie apart from their lower byte, like those of a codebook's
// points: a byte permute takes both where they are. Where the upper bits are single ones,
// four of them are spread to the bytes of a word at once.

// fewestSpread is from how many on: a multiplication and two masks for all, in place of a shift
// and a mask for each.
const fewestSpread = 3

// joinBytes renders x<<8 | y for a byte y, where x has no more than 7 bits.
func (s *Selector) joinBytes(in *program.Instr) bool {
	t := in.Result.Type
	if !s.simplify || in.Ir != ir.OpOr || t.Lanes != 1 || t.Elem.Size() > 4 {
		return false
	}
	for i := range 2 {
		shift, low := s.defs.alu(in.Args[i], ir.OpShl), in.Args[1-i]
		if shift == nil || !s.within(low, 0xff) || !s.within(shift.Args[0], 0x7f) {
			continue
		}
		if by, ok := s.single(shift.Args[1]); !ok || !by.Literal() || by.Bits != 8 {
			continue
		}
		word, at := s.lowByte(low)
		high, from := s.lowByte(shift.Args[0])
		if s.TypeOf(word).Bits() != 32 || s.TypeOf(high).Bits() != 32 {
			continue
		}
		upper := s.print.Variable(s.Lane(high, 0), U32)
		if bit, ok := s.bits[s.uncast(shift.Args[0])]; ok && s.spreads[bitOf{bit.of, bit.at / 4}] >= fewestSpread {
			upper, from = s.fourBits(bit.of, bit.at/4), bit.at%4
		} else if from != 0 { // its neighbours are no zeros
			high, from = shift.Args[0], 0
			upper = s.print.Variable(s.Lane(high, 0), U32)
		}
		zero := 8 | 4 | from // the sign of a byte without one
		o := s.print.Permute(s.print.Variable(s.Lane(word, 0), U32), upper, zero<<12|zero<<8|(4|from)<<4|at)
		s.set(in.Result, []Operand{o})
		return true
	}
	return false
}

// within reports an integer from 0 to a limit.
func (s *Selector) within(v *program.Value, limit int64) bool {
	b, ok := s.bounds[v]
	return ok && b.Lo >= 0 && b.Hi <= limit && v.Type.Lanes == 1 && !v.Type.Elem.IsFloat() && v.Type.Elem != ir.Bool
}

// uncast looks through conversions between integers that keep the lowest byte.
func (s *Selector) uncast(v *program.Value) *program.Value {
	for {
		in := s.defs.alu(v, ir.OpCast)
		if in == nil || !in.Args[0].Type.Elem.IsInt() {
			return v
		}
		v = in.Args[0]
	}
}

// lowByte says in which byte of which value the lowest byte of v lies.
func (s *Selector) lowByte(v *program.Value) (*program.Value, int) {
	v = s.uncast(v)
	if shift, ok := s.shifted[v]; ok {
		return shift.from, shift.bytes
	}
	return v, 0
}

// fourBits are four bits of a byte as bytes of a word.
func (s *Selector) fourBits(of *program.Value, four int) Operand {
	key := fmt.Sprintf("bits %d %d", of.ID, four)
	return s.Once(key, func() Operand {
		return s.spreadBits(s.print.Variable(s.Lane(of, 0), U32), 4*four, of.Type.Elem.Bits())
	})
}
