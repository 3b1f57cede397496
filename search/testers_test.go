package search

import (
	"context"
	"testing"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/target"
)

// closing is a tester that notes its end.
type closing struct {
	allAlike
	closed *int
}

func (c closing) Close() error {
	*c.closed++
	return nil
}

// While a kernel's plans are timed in the step, the tester of the next one that has time is made: of a GPU alone. All that
// were made are closed.
func TestNextTesterIsMade(t *testing.T) {
	kernels := []*TunedKernel{{}, {settled: true}, {}, {}}
	for _, k := range kernels {
		k.Kernel = &engine.Kernel{}
	}
	for kind, want := range map[target.Kind]int{target.CPU: 0, target.GPU: 1} {
		closed := 0
		options := TuneOptions{Search: DefaultOptions(), Testers: func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return closing{closed: &closed}, nil }}
		tn := newTuning(Step{Compiled: &engine.Compiled{Target: &target.Desc{Kind: kind}}}, options)
		tn.result.Kernels, tn.end = kernels, time.Now().Add(time.Minute)
		tn.planned = map[*TunedKernel]time.Duration{kernels[0]: time.Second, kernels[2]: time.Second, kernels[3]: time.Second}
		tn.beginNext(t.Context(), 0)
		if began := tn.testers.open[kernels[2]] != nil; len(tn.testers.open) != want || began != (want > 0) {
			t.Errorf("%v: %d testers, the next one's %t; want %d", kind, len(tn.testers.open), began, want)
		}
		if tn.testers.close(); closed != want || len(tn.testers.open) > 0 {
			t.Errorf("%v: %d closed, %d open, want %d and 0", kind, closed, len(tn.testers.open), want)
		}
	}
}
