package llm_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"tgc/gguf"
	"tgc/internal/cudatools"
	"tgc/llm"
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

// The decode loop goes through a ring of four entries, several tokens to an entry's run and
// the front end late: it draws the tokens of the GPU under the driver.
func TestTegraLoopEmulated(t *testing.T) {
	if cudatools.FromEnvironment().PtxasPath == "" {
		t.Skip("no ptxas")
	}
	machine := emu.New(emu.Options{Delay: time.Millisecond})
	board, err := tegra.Open(machine, tegra.Options{Entries: 4})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := hcq.New(board, hcq.Options{Loaded: machine.Know})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	m := tinyModel(t)
	tokens := 2 // each takes a second
	if *emulateAll {
		tokens = 40
	}
	var texts [][]int32
	for _, d := range []runtime.Device{dev, openDevice(t, "cuda:emu:sm_87")} {
		s := newLoopSession(t, m, d, tokens+8, 3)
		result, err := s.Generate(t.Context(), llm.Request{Prompt: []int32{5, 300, 7}, Tokens: tokens, IgnoreEOS: true})
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, result.Tokens)
	}
	if len(texts[0]) != tokens || !slices.Equal(texts[0], texts[1]) {
		t.Errorf("tokens %v, want %v", texts[0], texts[1])
	}
	for _, f := range machine.Findings() {
		t.Errorf("found: %s", f)
	}
}
