package gpu

import (
	"math/bits"

	"tgc/ir"
	"tgc/ir/program"
)

// Choices of packed bytes by the bits of a number, a bit a lane: signs of codebooks, upper
// bits of quants. Four bits become the bytes of a word in a multiplication, which is less
// work than a comparison and a choice for each lane.

// bitTest is a vector of conditions: bit at[i] of a number is set, which is lane[i] of a
// value.
type bitTest struct {
	of   *program.Value
	lane []int
	at   []int
}

// spreadable reports whether the bits of each four lanes are of one number and follow one
// another.
func (t bitTest) spreadable() bool {
	for i, at := range t.at {
		if at != t.at[i&^3]+i&3 || t.lane[i] != t.lane[i&^3] {
			return false
		}
	}
	return len(t.at)%4 == 0
}

// byteChoice is a choice of packed bytes by a bit test.
type byteChoice struct {
	test    bitTest
	negated bool // of a vector without zeros and its negative
	of      *program.Value
	least   int64 // of its elements, if negated
}

// byteChoices finds the choices of a program, and the values that nothing else reads.
func byteChoices(p *program.Program, bounds map[*program.Value]Interval) (map[*program.Value]byteChoice, map[*program.Value]bool) {
	f := &choiceFinder{bounds: bounds, uses: make(map[*program.Value]int), made: make(map[*program.Value]*program.Instr),
		choices: make(map[*program.Value]byteChoice)}
	f.block(p.Body)
	unread := make(map[*program.Value]bool)
	for v := range f.choices {
		in := f.made[v]
		f.drop(in.Args[0], unread)
		if f.choices[v].negated {
			f.drop(in.Args[1], unread)
		}
	}
	return f.choices, unread
}

type choiceFinder struct {
	bounds  map[*program.Value]Interval
	uses    map[*program.Value]int
	made    map[*program.Value]*program.Instr
	choices map[*program.Value]byteChoice
}

func (f *choiceFinder) block(b *program.Block) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		for _, a := range in.Args {
			f.uses[a]++
		}
		if in.Result != nil {
			f.made[in.Result] = in
		}
		if c, ok := f.choice(in); ok {
			f.choices[in.Result] = c
		}
		for _, inner := range []*program.Block{in.Body, in.Else} {
			if inner != nil {
				f.block(inner)
			}
		}
	}
}

// drop takes back a reader of a value. What loses its last one loses its own reads.
func (f *choiceFinder) drop(v *program.Value, unread map[*program.Value]bool) {
	if f.uses[v]--; f.uses[v] > 0 || f.made[v] == nil || f.made[v].Op != program.Alu {
		return
	}
	unread[v] = true
	for _, a := range f.made[v].Args {
		f.drop(a, unread)
	}
}

func (f *choiceFinder) choice(in *program.Instr) (byteChoice, bool) {
	if in.Op != program.Alu || in.Ir != ir.OpWhere || !IsPacked(in.Result.Type) || in.Result.Type.Elem.Size() != 1 || in.Result.Type.Elem == ir.Bool {
		return byteChoice{}, false
	}
	test, ok := f.test(f.made[in.Args[0]])
	if !ok || !test.spreadable() {
		return byteChoice{}, false
	}
	minus, of := f.made[in.Args[1]], in.Args[2]
	b, known := f.bounds[of]
	negated := minus != nil && minus.Op == program.Alu && minus.Ir == ir.OpNeg && minus.Args[0] == of && known && (b.Lo > 0 || b.Hi < 0)
	return byteChoice{test, negated, of, b.Lo}, true
}

// test recognises 0 < x & m, where the lanes of x are lanes of a value and each lane of m
// is a bit.
func (f *choiceFinder) test(less *program.Instr) (bitTest, bool) {
	if less == nil || less.Op != program.Alu || less.Ir != ir.OpCmpLt || !f.zero(less.Args[0]) {
		return bitTest{}, false
	}
	and := f.made[less.Args[1]]
	if and == nil || and.Op != program.Alu || and.Ir != ir.OpAnd || and.Result.Type.Elem.IsSigned() {
		return bitTest{}, false
	}
	for i := range 2 {
		x, m := f.made[and.Args[i]], f.made[and.Args[1-i]]
		if x == nil || m == nil || m.Op != program.ConstLanes || x.Result.Type.Elem.Size() > 4 {
			continue
		}
		t, ok := spreadNumber(x)
		if !ok {
			continue
		}
		for _, n := range m.Ints {
			if n <= 0 || n&(n-1) != 0 {
				return bitTest{}, false
			}
			t.at = append(t.at, bits.TrailingZeros64(uint64(n)))
		}
		return t, true
	}
	return bitTest{}, false
}

// spreadNumber is a value of which an instruction spreads lanes over its own.
func spreadNumber(x *program.Instr) (bitTest, bool) {
	t := bitTest{of: x.Args[0], lane: make([]int, x.Result.Type.Lanes)}
	switch x.Op {
	case program.Broadcast:
		return t, true
	case program.Shuffle:
		for i, from := range x.Mask {
			if t.lane[i] = from; from < 0 || from >= t.of.Type.Lanes {
				return bitTest{}, false
			}
		}
		return t, true
	}
	return bitTest{}, false
}

func (f *choiceFinder) zero(v *program.Value) bool {
	in := f.made[v]
	return in != nil && in.Op == program.Const && in.Int == 0 && !v.Type.Elem.IsFloat()
}

// chooseBytes renders a choice by a bit test.
func (s *Selector) chooseBytes(in *program.Instr, c byteChoice) {
	out := make([]Operand, len(c.test.at)/4)
	var number Operand
	for i := range out {
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

// signMask has all bits of those bytes of a word set whose bit in a test is: the bits become
// the signs of the bytes, which a permute repeats.
func (s *Selector) signMask(t bitTest, i int) Operand {
	number := s.print.Variable(s.Lane(t.of, t.lane[4*i]), U32)
	four := s.fourOf(number, t.at[4*i], t.of.Type.Elem.Bits())
	apart := s.print.Named(s.word(ir.OpMul, four, word(1<<7|1<<14|1<<21|1<<28)))
	return s.print.Named(s.print.Permute(apart, word(0), 0xba98))
}

// allBits sets all bits of the bytes that are one.
func (s *Selector) allBits(set Operand) Operand {
	return s.print.Named(s.word(ir.OpMul, set, word(0xff)))
}
