package schedule_test

import (
	"testing"

	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// plainOptions is R0 only: every value a kernel.
func plainOptions() schedule.Options {
	opt := schedule.DefaultOptions()
	opt.Rules = schedule.NoRules
	return opt
}

// modelRig fills a model's buffers; position is that of the first token.
func modelRig(t *testing.T, m arch, position int64) *rig {
	t.Helper()
	return modelRigOf(t, m, m.build(), position)
}

func modelRigOf(t *testing.T, m arch, g *tensor.Graph, position int64) *rig {
	t.Helper()
	positions := make([]int64, m.batch)
	tokens := make([]int64, m.batch*m.tokens)
	for i := range positions {
		positions[i] = position
	}
	for i := range tokens {
		tokens[i] = int64(3 + 7*i)
	}
	return newRig(t, g, map[string]int64{"length": position + int64(m.tokens)}, map[string][]int64{
		"positions": positions, "tokens": tokens,
	})
}

func TestRangeifyOnly(t *testing.T) {
	r := modelRig(t, llamaTiny(), 3)
	s := r.plan(plainOptions())
	r.check(s, interp.KernelOptions{}, 0)
}
