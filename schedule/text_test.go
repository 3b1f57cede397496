package schedule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/ir"
	"tgc/pass"
	"tgc/schedule"
)

// textModels are small models that all kinds of rows fire in.
func textModels() map[string]arch {
	llama := llamaTiny()
	llama.embed, llama.output = true, true
	prefill := llamaTiny()
	prefill.tokens, prefill.batch = 4, 2
	gpt2 := llamaTiny()
	gpt2.gpt2, gpt2.kv, gpt2.format = true, 4, ""
	olmoe := llamaTiny()
	olmoe.experts, olmoe.used, olmoe.headNorm, olmoe.format = 4, 2, "all", "Q4_K"
	olmoe.width, olmoe.ff, olmoe.head, olmoe.kv = 256, 256, 64, 4
	qwen := llamaTiny()
	qwen.bias, qwen.headNorm = true, "each"
	return map[string]arch{"llama": llama, "prefill": prefill, "gpt2": gpt2, "olmoe": olmoe, "qwen": qwen}
}

// After every row the form can be printed, read back and taken to the same
// kernels; and it keeps its contract.
func TestTextAfterEveryRow(t *testing.T) {
	for name, model := range textModels() {
		t.Run(name, func(t *testing.T) {
			targets := map[string]schedule.Options{"gpu": schedule.DefaultOptions()}
			if name == "llama" {
				targets["cpu"] = schedule.CPUOptions()
			}
			for target, opt := range targets {
				opt.Profile.GridChunk, opt.Profile.LaunchEdge = 2, 0 // so that split-grid fires
				sink, err := model.build().Sink()
				if err != nil {
					t.Fatal(err)
				}
				checkEveryRow(t, target, sink, opt)
			}
		})
	}
}

func checkEveryRow(t *testing.T, target string, sink *ir.UOp, opt schedule.Options) {
	t.Helper()
	rows := schedule.Passes()
	a := ir.NewArena()
	want, err := schedule.TextAfter(t.Context(), a, a.Import(sink), len(rows)-1, opt)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows[:len(rows)-1] {
		if row.Group != "" && rows[i+1].Group == row.Group {
			continue // a group is one step
		}
		a := ir.NewArena()
		text, err := schedule.TextAfter(t.Context(), a, a.Import(sink), i, opt)
		if err != nil {
			t.Fatalf("%s: up to %s: %v", target, row.Name, err)
		}
		got, err := schedule.Resume(t.Context(), ir.NewArena(), text, i, opt)
		if err != nil {
			t.Fatalf("%s: after %s: %v\n%s", target, row.Name, err, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: read back after %s (-want +got):\n%s", target, row.Name, diff)
		}
	}
}

// RunPass takes the form that a row says, and no other.
func TestRunPass(t *testing.T) {
	sink, err := llamaTiny().build().Sink()
	if err != nil {
		t.Fatal(err)
	}
	text, opt := ir.Text(sink), schedule.DefaultOptions()
	want, err := schedule.TextAfter(t.Context(), ir.NewArena(), sink, len(schedule.Passes())-1, opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schedule.RunPass(t.Context(), ir.NewArena(), "hoist-factors", text, opt); err == nil {
		t.Error("hoist-factors takes a tensor graph")
	}
	for _, row := range schedule.Passes() {
		if text, err = schedule.RunPass(t.Context(), ir.NewArena(), row.Name, text, opt); err != nil {
			t.Fatalf("%s: %v", row.Name, err)
		}
		if row.To == pass.Tensor {
			continue
		}
		if err := schedule.VerifyText(ir.NewArena(), text, opt); err != nil {
			t.Fatalf("after %s: %v", row.Name, err)
		}
	}
	if len(text) == 0 || len(want) == 0 {
		t.Error("no kernels")
	}
}
