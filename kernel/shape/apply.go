package shape

import (
	"context"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/pass"
	"tgc/schedule/expr"
	"tgc/target"
)

// Apply checks a plan and carries it out on a kernel.
func Apply(a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc) (*Kernel, error) {
	return ApplyWith(context.Background(), a, sink, chosen, desc, "", nil)
}

// ApplyWith is Apply under the control of a user; subject names the kernel.
func ApplyWith(ctx context.Context, a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc, subject string, control *pass.Control) (*Kernel, error) {
	st := NewState(a, sink, chosen, desc)
	expr.TraceRewrites(st.simp, subject, control)
	if err := Passes.Run(ctx, st, subject, control); err != nil {
		return nil, err
	}
	return st.Kernel, nil
}
