package gpu

import (
	"maps"
	"math/bits"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/bounds"
)

// bitOf is a value that is one bit of another.
type bitOf struct {
	of *program.Value
	at int
}

// singleBits finds the values that are one bit of a byte, x>>n & 1, and counts those of each
// four bits.
func singleBits(p *program.Program, d definitions) (bits map[*program.Value]bitOf, fours map[bitOf]int) {
	bits, fours = make(map[*program.Value]bitOf), make(map[bitOf]int)
	p.Body.Each(func(in *program.Instr) {
		if in.Op != program.Alu || in.Ir != ir.OpAnd || in.Result.Type != program.Scalar(ir.U8) {
			return
		}
		if one, ok := d.integer(in.Args[1]); !ok || one != 1 {
			return
		}
		bit := bitOf{of: in.Args[0]}
		if shift := d.alu(in.Args[0], ir.OpShr); shift != nil {
			if by, ok := d.integer(shift.Args[1]); ok && by >= 0 && by < 8 {
				bit = bitOf{shift.Args[0], int(by)}
			}
		}
		bits[in.Result] = bit
		fours[bitOf{bit.of, bit.at / 4}]++
	})
	return bits, fours
}

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
	odd     bool // all elements of that vector are
	of      *program.Value
	least   int64 // of its elements, if negated
}

// byteChoices finds the choices of a program, and the values that nothing else reads.
func byteChoices(p *program.Program, d definitions, bounds map[*program.Value]bounds.Interval) (map[*program.Value]byteChoice, map[*program.Value]bool) {
	f := &choiceFinder{definitions: d, bounds: bounds, odd: oddBytes(p), reads: maps.Clone(d.readers)}
	choices, unread := make(map[*program.Value]byteChoice), make(map[*program.Value]bool)
	p.Body.Each(func(in *program.Instr) {
		if c, ok := f.choice(in); ok {
			choices[in.Result] = c
		}
	})
	for v, c := range choices {
		in := f.made[v]
		f.drop(in.Args[0], unread)
		if c.negated {
			f.drop(in.Args[1], unread)
		}
	}
	return choices, unread
}

type choiceFinder struct {
	definitions
	bounds map[*program.Value]bounds.Interval
	odd    map[*program.Value]bool
	reads  map[*program.Value]int // readers that are not dropped
}

// drop takes back a reader of a value. What loses its last one loses its own reads.
func (f *choiceFinder) drop(v *program.Value, unread map[*program.Value]bool) {
	in := f.by(v, program.Alu)
	if f.reads[v]--; f.reads[v] > 0 || in == nil {
		return
	}
	unread[v] = true
	for _, a := range distinct(in.Args) {
		f.drop(a, unread)
	}
}

func (f *choiceFinder) choice(in *program.Instr) (byteChoice, bool) {
	if in.Op != program.Alu || in.Ir != ir.OpWhere || !IsPacked(in.Result.Type) || in.Result.Type.Elem.Size() != 1 || in.Result.Type.Elem == ir.Bool {
		return byteChoice{}, false
	}
	test, ok := f.test(f.alu(in.Args[0], ir.OpCmpLt))
	if !ok || !test.spreadable() {
		return byteChoice{}, false
	}
	minus, of := f.alu(in.Args[1], ir.OpNeg), in.Args[2]
	b, known := f.bounds[of]
	negated := minus != nil && minus.Args[0] == of && known && (b.Lo > 0 || b.Hi < 0)
	return byteChoice{test, negated, negated && f.odd[of], of, b.Lo}, true
}

// test recognises 0 < x & m, where the lanes of x are lanes of a value and each lane of m
// is a bit.
func (f *choiceFinder) test(less *program.Instr) (bitTest, bool) {
	if less == nil {
		return bitTest{}, false
	}
	if zero, ok := f.integer(less.Args[0]); !ok || zero != 0 {
		return bitTest{}, false
	}
	and := f.alu(less.Args[1], ir.OpAnd)
	if and == nil || and.Result.Type.Elem.IsSigned() {
		return bitTest{}, false
	}
	for i := range 2 {
		x, m := f.made[and.Args[i]], f.by(and.Args[1-i], program.ConstLanes)
		if x == nil || m == nil || x.Result.Type.Elem.Size() > 4 {
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
