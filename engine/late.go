package engine

import (
	"slices"

	"tgc/kernel/plan"
)

// startLate lets kernels start the next one as late as that one does which comes after them, where
// it does so late: its blocks are long, and should be spread over a device that is free. Those of a kernel that
// starts while two others run go where these leave room, several on some multiprocessors and none
// on others. H200: sort of 100,000 70 us, 48 with the exchanges between its stages of rows late too
// (docs/bench/library-h200.txt). A kernel that loads weights before its wait is left alone.
func startLate(s *state) {
	has := func(c Call, kind plan.OptKind) bool {
		return slices.ContainsFunc(c.Kernel.Plan.Opts, func(o plan.Opt) bool { return o.Kind == kind })
	}
	late := make(map[*Kernel]plan.Opt)
	for i := 1; i < len(s.out.Launches); i++ {
		for _, c := range s.out.Launches[i] {
			at := slices.IndexFunc(c.Kernel.Plan.Opts, func(o plan.Opt) bool { return o.Kind == plan.TRIGGER })
			for _, before := range s.out.Launches[i-1] {
				if at >= 0 && !has(before, plan.TRIGGER) && !has(before, plan.PRELOAD) {
					late[before.Kernel] = c.Kernel.Plan.Opts[at]
				}
			}
		}
	}
	for k, o := range late {
		k.Plan.Opts = append(slices.Clip(k.Plan.Opts), o)
	}
}
