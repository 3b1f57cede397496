package gpu

import (
	"tgc/ir"
	"tgc/ir/program"
)

// Sums of products with bytes whose signs are bits of a number. -y is ^y + 1: the sum takes
// ^y where the bit is set, and a second one, for all of a chain, counts the other factors
// there, which saves adding the ones to the bytes.

// signDot is a dot4 of which a factor is a word of such bytes.
type signDot struct {
	factor int            // the argument with the signs
	choice *program.Value // that the word is of
	word   int
}

// signDots finds the dot4s, by their results, of chains that have several, where nothing else
// reads the bytes.
func signDots(p *program.Program, choices map[*program.Value]byteChoice, chains *dotChains) map[*program.Value]signDot {
	dots, words, several := make(map[*program.Value]signDot), make(map[*program.Value]int), make(map[*program.Value]int)
	eachInstr(p.Body, func(in *program.Instr) {
		if in.Op != program.Dot4 || chains.first[in.Result] == nil {
			return
		}
		for k := 2; k >= 1; k-- {
			of, word, ok := chains.wordOf(in.Args[k])
			if c := choices[of]; ok && c.negated && c.least > -128 && of.Type.Elem == ir.I8 {
				dots[in.Result] = signDot{k, of, word}
				words[of]++
				several[chains.first[in.Result]]++
				return
			}
		}
	})
	for v, dot := range dots {
		if several[chains.first[v]] < 2 || words[dot.choice] != chains.uses[dot.choice] {
			delete(dots, v)
		}
	}
	return dots
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
