package kernel

import (
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/kernel/lower"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/target"
)

// Lower applies a plan to a kernel, writes its program and, for a GPU, runs the
// passes over it. The name of the program is "kernel"; who has a better one sets Program.Name.
func Lower(a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc) (*program.Program, error) {
	shaped, err := shape.Apply(a, sink, chosen, desc)
	if err != nil {
		return nil, err
	}
	p, err := lower.Lower(shaped)
	if err != nil {
		return nil, err
	}
	if desc.Kind != target.GPU { // what a CPU lacks is expanded later
		return p, nil
	}
	return opt.Run(p, desc)
}

// Feasible checks a plan as plan.Legality does, and then the limits that depend on
// the digits: ranges, copies and lanes of every value.
func Feasible(a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc) error {
	shaped, err := shape.Apply(a, sink, chosen, desc)
	if err != nil {
		return err
	}
	return lower.Feasible(shaped)
}
