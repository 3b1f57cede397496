package llm_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"tgc/gguf"
	"tgc/internal/cudatools"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/runtime"
	"tgc/runtime/hcq"
	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/tegra"
)

// tegraModels are models whose steps run on the emulated Jetson.
var tegraModels = []string{"llama-iq4_nl"}

// A model on the emulated Jetson, whose words, descriptors and machine code the runtime
// writes itself, gives the bits of the GPU that is emulated under the driver: the same
// plans for as many multiprocessors, the same PTX. All oracle models with -emulate.all.
func TestTegraEqualsCUDAEmulated(t *testing.T) {
	if cudatools.FromEnvironment().PtxasPath == "" {
		t.Skip("no ptxas")
	}
	models := presentModels(t, tegraModels...)
	if *emulateAll {
		models = oracleModels(t)
	}
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			f, err := gguf.Open(modelPath(t, name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			model, err := llm.NewModel(f)
			if err != nil {
				t.Fatal(err)
			}
			var rows [2][][]float32
			for i, name := range []string{"tegra:emu", "cuda:emu:sm_87"} {
				dev := openDevice(t, name)
				session, err := llm.NewSession(t.Context(), model, dev, llm.SessionOptions{Context: 16})
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				rows[i] = feedEach(t, session, 1, 77, 50, 3)
			}
			for p, row := range rows[0] {
				for i, x := range row {
					if math.Float32bits(x) != math.Float32bits(rows[1][p][i]) {
						t.Fatalf("position %d, logit %d: %g, want %g", p, i, x, rows[1][p][i])
					}
				}
			}
		})
	}
}

// eager is a device whose steps are never captured: every run records one launch after the
// other, runs it to its end and forgets it.
type eager struct{ runtime.Device }

func (d eager) Record(_ context.Context, launches []runtime.Launch) (runtime.Recording, error) {
	return &eagerStep{d.Device, launches}, nil
}

type eagerStep struct {
	device   runtime.Device
	launches []runtime.Launch
}

func (s *eagerStep) Run(ctx context.Context, vars map[string]int64) error {
	for i := range s.launches {
		r, err := s.device.Record(ctx, s.launches[i:i+1])
		if err != nil {
			return err
		}
		err = r.Run(ctx, vars)
		r.Free()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *eagerStep) Profile(context.Context, map[string]int64) ([]time.Duration, error) {
	return nil, errors.ErrUnsupported
}

func (s *eagerStep) Free() {}

// loopModel is a model whose 200 tokens take seconds on the emulated machine.
func loopModel(t *testing.T) *llm.Model {
	t.Helper()
	if *emulateAll {
		return tinyModel(t)
	}
	shape, err := synth.Lookup("llama:d=32,layers=1,heads=1,ff=32,vocab=266,quant=q8_0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := synth.Memory(t.Context(), shape, 1)
	if err != nil {
		t.Fatal(err)
	}
	model, err := llm.NewModel(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

// 200 tokens through a ring of four entries, with arguments for two runs and a front end
// that is late: the captured step, several tokens ahead of the host, draws the tokens of a
// device that captures nothing, and the logits after them have the same bits.
func TestTegraLoopEmulated(t *testing.T) {
	if cudatools.FromEnvironment().PtxasPath == "" {
		t.Skip("no ptxas")
	}
	const tokens = 200
	m := loopModel(t)
	var texts [][]int32
	var logits [][]float32
	for _, captured := range []bool{true, false} {
		machine := emu.New(emu.Options{Delay: time.Millisecond, Seed: 3})
		board, err := tegra.Open(machine, tegra.Options{Entries: 4})
		if err != nil {
			t.Fatal(err)
		}
		device, err := hcq.New(board, hcq.Options{CacheDir: t.TempDir(), Loaded: machine.Know})
		if err != nil {
			t.Fatal(err)
		}
		defer device.Close()
		var dev runtime.Device = device
		ahead := 3
		if !captured {
			dev, ahead = eager{device}, -1
		}
		s := newLoopSession(t, m, dev, tokens+8, ahead)
		result, err := s.Generate(t.Context(), llm.Request{Prompt: []int32{5, 30, 7}, Tokens: tokens, IgnoreEOS: true})
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, result.Tokens)
		if err := s.Seek(tokens); err != nil {
			t.Fatal(err)
		}
		logits = append(logits, feedEach(t, s, 11)...)
		for _, f := range machine.Findings() {
			t.Errorf("captured %v: found: %s", captured, f)
		}
	}
	if len(texts[0]) != tokens || !slices.Equal(texts[0], texts[1]) {
		t.Errorf("tokens %v, want %v", texts[0], texts[1])
	}
	if !slices.EqualFunc(logits[0], logits[1], sameBits) {
		t.Error("the logits after the text differ")
	}
}
