package engine

import (
	"os"
	"slices"

	"tgc/ir/program"
	"tgc/kernel/plan"
)

// startLate lets kernels start the next one late which stand before one that starts its next one
// late: the blocks of that one are long, and should be spread over a device that is free. Those of a
// kernel that starts while two others run go where these leave room, several on some
// multiprocessors and none on others. H200: sort of 100,000 72 us, 49 with the exchanges
// between its stages of rows late too (docs/bench/library-h200.txt). What loads weights
// before its wait is left alone.
func startLate(s *state) {
	if !plan.TRIGGER.On(s.out.Target) {
		return
	}
	late := plan.Opt{Kind: plan.TRIGGER, Amount: int64(slices.Index(program.Trigger.Words(), "wait") + 1)}
	x := os.Getenv("TGC_X_LATE")
	if x == "end" {
		late.Amount++
	}
	has := func(c Call, kind plan.OptKind) bool {
		return slices.ContainsFunc(c.Kernel.Plan.Opts, func(o plan.Opt) bool { return o.Kind == kind })
	}
	var before []Call
	for i := 1; i < len(s.out.Launches); i++ {
		if (slices.ContainsFunc(s.out.Launches[i], func(c Call) bool { return has(c, plan.TRIGGER) }) || x == "all" || x == "end") && x != "none" {
			before = append(before, s.out.Launches[i-1]...)
		}
	}
	if x == "all" || x == "end" {
		before = append(before, s.out.Launches[len(s.out.Launches)-1]...)
	}
	for _, c := range before {
		if !has(c, plan.TRIGGER) && !has(c, plan.PRELOAD) {
			c.Kernel.Plan.Opts = append(slices.Clip(c.Kernel.Plan.Opts), late)
		}
	}
}
