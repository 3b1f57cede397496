package schedule_test

import (
	"testing"

	"tgc/runtime/interp"
	"tgc/schedule"
)

// splitOptions split every reduce that can be, in up to n chunks.
func splitOptions(n int64) schedule.Options {
	opt := schedule.DefaultOptions()
	opt.Profile.Parallel, opt.Profile.GridSplits, opt.Profile.GridChunk, opt.Profile.LaunchEdge = 1<<30, n, 1, 0
	return opt
}

// cacheSplit splits the attention of the tiny models only: it is the one reduce
// in a kernel with few points.
func cacheSplit(stage bool) schedule.Options {
	opt := schedule.DefaultOptions()
	opt.Profile.Parallel, opt.Profile.GridSplits, opt.Profile.GridChunk, opt.Profile.LaunchEdge = 16, 4, 2, 0
	if !stage {
		opt.Profile.StageWork, opt.Profile.StageOps = 300, 0
	}
	return opt
}

// R8 on the decode layer: the parts of attention are one kernel of three
// stores, the combination is staged in front of the output projection, or a
// kernel of its own.
func TestGridSplitLayer(t *testing.T) {
	for _, row := range []struct {
		stage             bool
		kernels, launches int
	}{{true, 7, 5}, {false, 8, 6}} {
		m := llamaTiny()
		for position := range int64(m.context) {
			r := modelRig(t, m, position)
			s := r.plan(cacheSplit(row.stage))
			if kernelCount(s) != row.kernels || len(s.Launches) != row.launches {
				t.Fatalf("%d kernels in %d launches, want %d in %d\n%s", kernelCount(s), len(s.Launches), row.kernels, row.launches, s)
			}
			r.check(s, interp.KernelOptions{}, 2e-5)
		}
	}
}
