package gpu

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// dot4 adds the dot products of four bytes each to the lanes of a sum.
func (s *Selector) dot4(in *program.Instr) {
	if s.lookupDot(in) || s.signDot(in) {
		return
	}
	x, y := s.Words(in.Args[1]), s.Words(in.Args[2])
	signed := [2]bool{in.Args[1].Type.Elem == ir.I8, in.Args[2].Type.Elem == ir.I8}
	lanes := lists.Make(in.Result.Type.Lanes, func(i int) Operand { return s.print.Dot4(signed, x[i], y[i], s.Lane(in.Args[0], i)) })
	s.set(in.Result, lanes)
}

// lookupDot renders a dot4 whose look-up was left to it: the first one of a pair adds nothing
// yet, the second one adds both.
func (s *Selector) lookupDot(in *program.Instr) bool {
	dot := s.dots[in.Result]
	if dot == nil || !s.left[dot.gather.Result] {
		return false
	}
	acc := s.Lane(in.Args[0], 0)
	if dot.last {
		acc = s.addPair(dot, acc)
	}
	s.endDot(in, acc, s.owed[in.Args[0]])
	return true
}

// addPair adds the products of a word's lower and upper halves.
func (s *Selector) addPair(dot *lookupDot, acc Operand) Operand {
	lower, upper := dot, dot.partner
	if s.pairs[s.origin[dot.gather.Args[1]]].upper {
		lower, upper = upper, lower
	}
	table := s.tables[dot.gather.Args[0]]
	halves, _ := splitLevels([]byte(table.Table))
	levels := s.tableWords(fmt.Sprintf("summands %d", table.Value.ID), halves)
	x := s.Words(lower.in.Args[3-dot.factor])[0]
	y := s.Words(upper.in.Args[3-dot.factor])[0]
	w := s.print.Variable(s.Words(s.pairs[s.origin[dot.gather.Args[1]]].of)[dot.word], U32)
	turned := s.print.Named(s.word(ir.OpXor, w, word(0x88888888)))
	for i, order := range []int{0x5140, 0x7362} {
		factor := s.Once(fmt.Sprintf("in turn %v %v %d", x, y, i), func() Operand {
			return s.print.Permute(s.print.Variable(x, U32), s.print.Variable(y, U32), order)
		})
		for half, selector := range []Operand{w, turned} {
			if i == 1 {
				selector = s.print.Named(s.shiftedRight(selector, 16))
			}
			factors, signed := [2]Operand{factor, s.print.PermuteBy(levels[2*half], levels[2*half+1], selector)}, [2]bool{}
			for k := range 2 {
				signed[k] = dot.in.Args[k+1].Type.Elem == ir.I8
			}
			if dot.factor == 1 {
				factors[0], factors[1] = factors[1], factors[0]
			}
			acc = s.print.Dot4(signed, factors[0], factors[1], acc)
		}
	}
	return acc
}

// signDot renders such a dot4, and takes the second sum off the last one of a chain.
func (s *Selector) signDot(in *program.Instr) bool {
	owed, owes := s.owed[in.Args[0]]
	dot, signs := s.signs[in.Result]
	if !owes && !signs {
		return false
	}
	types, factors := [2]bool{}, [2]Operand{}
	for k := range factors {
		types[k] = in.Args[k+1].Type.Elem == ir.I8
		if !signs || k+1 != dot.factor {
			factors[k] = s.Words(in.Args[k+1])[0]
		}
	}
	if signs {
		if !owes {
			owed = word(0)
		}
		c := s.choices[dot.choice]
		set := s.signMask(c.test, dot.word)
		factors[dot.factor-1] = set
		owed = s.print.Dot4(types, factors[0], factors[1], owed)
		factors[dot.factor-1] = s.print.Named(s.word(ir.OpXor, s.Words(c.of)[dot.word], set))
	}
	s.endDot(in, s.print.Dot4(types, factors[0], factors[1], s.Lane(in.Args[0], 0)), owed)
	return true
}

// endDot holds a sum, off which the last one of a chain takes what is owed, if anything is.
func (s *Selector) endDot(in *program.Instr, sum, owed Operand) {
	switch {
	case owed.Literal():
	case s.chains.goes[in.Result]:
		s.owed[in.Result] = owed
	default:
		sum = s.print.Named(s.word(ir.OpSub, sum, owed))
	}
	s.set(in.Result, []Operand{sum})
}
