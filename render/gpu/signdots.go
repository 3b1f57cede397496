package gpu

import (
	"tgc/ir"
	"tgc/ir/program"
)

// Sums of products with bytes whose signs are bits of a number. -y is ^y + 1: the sum takes
// ^y where the bit is set, and a second one, for all of a chain, counts the other factors
// there, which saves adding the ones to the bytes. Odd bytes need neither (oddBytes).

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
	p.Body.Each(func(in *program.Instr) {
		if in.Op != program.Dot4 || chains.first[in.Result] == nil {
			return
		}
		for k := 2; k >= 1; k-- {
			of, word, ok := chains.wordOf(in.Args[k])
			if c := choices[of]; ok && c.negated && !c.odd && c.least > -128 && of.Type.Elem == ir.I8 {
				dots[in.Result] = signDot{k, of, word}
				words[of]++
				several[chains.first[in.Result]]++
				return
			}
		}
	})
	for v, dot := range dots {
		if several[chains.first[v]] < 2 || words[dot.choice] != chains.readers[dot.choice] {
			delete(dots, v)
		}
	}
	return dots
}
