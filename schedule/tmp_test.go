package schedule_test

import (
	"testing"
	"tgc/ir"
	"tgc/schedule"
)

func TestTmp(t *testing.T) {
	for _, tokens := range []int{1, 128} {
		m := llama1B(1)
		m.format, m.vFormat = "Q4_K", "Q6_K"
		m.tokens = tokens
		g := m.build()
		sink, _ := g.Sink()
		a := ir.NewArena()
		opt := schedule.CPUOptions()
		opt.Explain = true
		s, err := schedule.Run(t.Context(), a, a.Import(sink), opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(s)
		for _, r := range s.Records {
			t.Log(r)
		}
	}
}
