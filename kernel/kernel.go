package kernel

import (
	"context"
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/kernel/lower"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/pass"
	"tgc/target"
)

// writeProgram is the row between the tables of kernel/shape and ir/program/opt.
var writeProgram = pass.NewTable(pass.Table[*lowering]{
	Stage:  "kernel/lower",
	Text:   func(s *lowering) string { return program.PrintOrigins(s.program) },
	Verify: func(s *lowering) error { return program.Verify(s.program) },
	Rows: []pass.Row[*lowering]{{
		Info: pass.Info{
			Name: "write-program", From: pass.Shaped, To: pass.Program, Required: true,
			Doc: "write the loops and instructions of a kernel whose ranges have roles",
			Why: "every value is computed in the outermost loop that has what it depends on",
		},
		Run: func(_ context.Context, s *lowering) (err error) {
			s.program, err = lower.Lower(s.shaped)
			return err
		},
	}},
})

// lowering is what write-program takes and gives.
type lowering struct {
	shaped  *shape.Kernel
	program *program.Program
}

// Passes lists the passes from a planned kernel to its finished program.
func Passes() []pass.Info {
	return slices.Concat(shape.Passes.Infos(), writeProgram.Infos(), opt.Passes.Infos())
}

// Orders lists the pairs of passes whose order matters, with the reasons.
func Orders() []pass.Order {
	return slices.Concat(shape.Passes.Orders, writeProgram.Orders, opt.Passes.Orders)
}

// RunPass runs one of the passes on a form in text and gives the form after it.
func RunPass(ctx context.Context, name, text string, desc *target.Desc) (string, error) {
	if _, ok := opt.Passes.Row(name); ok {
		return opt.RunPass(ctx, name, text, desc)
	}
	if _, ok := writeProgram.Row(name); !ok {
		return shape.RunPass(ctx, ir.NewArena(), name, text, desc)
	}
	st, err := shape.Parse(ir.NewArena(), text, desc)
	if err != nil {
		return "", err
	}
	if st.Kernel == nil {
		return "", fmt.Errorf("kernel: %s: the steps of kernel/shape have not all run", name)
	}
	s := &lowering{shaped: st.Kernel}
	if err := writeProgram.Run(ctx, s, "", nil); err != nil {
		return "", fmt.Errorf("kernel: %w", err)
	}
	return program.Print(s.program), nil
}

// LowerWith applies a plan to a kernel, writes its program and runs the passes over
// it, all as control asks. name is that of the program.
func LowerWith(ctx context.Context, a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc, name string, control *pass.Control) (*program.Program, error) {
	p, err := lowerOnly(ctx, a, sink, chosen, desc, name, control)
	if err != nil {
		return nil, err
	}
	s := &opt.State{Program: p, Target: desc}
	if err := opt.Passes.Run(ctx, s, name, control); err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	return s.Program, nil
}

func lowerOnly(ctx context.Context, a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc, name string, control *pass.Control) (*program.Program, error) {
	shaped, err := shape.ApplyWith(ctx, a, sink, chosen, desc, name, control)
	if err != nil {
		return nil, err
	}
	s := &lowering{shaped: shaped}
	if err := writeProgram.Run(ctx, s, name, control); err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	s.program.Name = name
	return s.program, nil
}

// Lower is LowerWith for those who ask nothing of the passes. What a CPU lacks is
// not expanded yet. The program's name is "kernel".
func Lower(a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc) (*program.Program, error) {
	if desc.Kind == target.GPU {
		return LowerWith(context.Background(), a, sink, chosen, desc, "kernel", nil)
	}
	return lowerOnly(context.Background(), a, sink, chosen, desc, "kernel", nil)
}

// Feasible checks a plan as plan.Legality does, and then the limits that depend on
// the sub-axes: ranges, unrolled instances and lanes of every value.
func Feasible(a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc) error {
	shaped, err := shape.Apply(a, sink, chosen, desc)
	if err != nil {
		return err
	}
	return lower.Feasible(shaped)
}
