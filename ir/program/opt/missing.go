package opt

import (
	"tgc/ir/program"
	"tgc/target"
)

// Missing tells what of a program to expand for a target. The instructions of a GPU
// do exactly what they are kept for, or approximate where the target allows it; an
// x86 CPU below x86-64-v3 has neither FMA nor conversions of halves.
func Missing(desc *target.Desc) Lacks {
	switch {
	case desc == nil:
		return Lacks{}
	case desc.Kind == target.GPU:
		return Lacks{Has: Has{HalfArith: true, MulHi: true, RoundBF16: desc.SM >= 80, Rsqrt: true, Approx: desc.ApproxMath}}
	}
	old := desc.Kind == target.CPU && !desc.FMA
	return Lacks{FMA: old, Half: old}
}

// Expand is the program in the instructions that a target has: what its renderer
// takes. One that has no others comes back as it is.
func Expand(p *program.Program, desc *target.Desc) *program.Program {
	return ExpandFor(p, Missing(desc))
}
