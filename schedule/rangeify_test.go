package schedule_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// plainOptions is R0 only: every value a kernel.
func plainOptions() schedule.Options {
	opt := schedule.DefaultOptions()
	opt.Off = schedule.AllRules()
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

// A packed row that is no whole number of blocks is an error, not a read past
// the row's end.
func TestRowsOfWholeBlocks(t *testing.T) {
	a := ir.NewArena()
	sink, err := ir.Parse(a, `
%0 = buffer u8 [0 Q8_0] 4 40
%1 = buffer f32 [1] 4 40
%2 = decode f32 %0
%3 = iota i32 4
%4 = reshape i32 %3 4 1
%5 = iota i32 40
%6 = assign f32 %1 %2 %4 %5
%7 = sink void %6
`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = schedule.Run(t.Context(), a, sink, schedule.DefaultOptions())
	if err == nil || !strings.Contains(err.Error(), "whole blocks") {
		t.Errorf("got error %v, want one about whole blocks", err)
	}
}
