package llm_test

import (
	"context"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tgc/gguf"
	"tgc/internal/cudatools"
	"tgc/llm"
	"tgc/runtime"
	"tgc/runtime/hcq"
	"tgc/runtime/hcq/cubin"
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

// 200 tokens through a ring of four entries, with arguments for two runs and a front end
// that is late: the captured step, several tokens ahead of the host, draws the tokens of a
// device that captures nothing, and the logits after them have the same bits.
func TestTegraLoopEmulated(t *testing.T) {
	if cudatools.FromEnvironment().PtxasPath == "" {
		t.Skip("no ptxas")
	}
	const tokens = 200
	m := syntheticModel(t, "llama:d=32,layers=1,heads=1,ff=32,vocab=266,quant=q8_0")
	if *emulateAll {
		m = tinyModel(t)
	}
	var texts [][]int32
	var logits [][]float32
	for _, captured := range []bool{true, false} {
		machine := emu.New(emu.Options{Delay: time.Millisecond, Seed: 3})
		board, err := tegra.Open(machine, tegra.Options{Entries: 4})
		if err != nil {
			t.Fatal(err)
		}
		device, err := hcq.New(board, hcq.Options{CacheDir: t.TempDir(), Loaded: machine.Know, Timeout: time.Hour})
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

// A session that keeps the logits of all tokens draws from the last row, which it copies from
// memory to memory: the tokens are those of a session that keeps one row only.
func TestLastRowEmulated(t *testing.T) {
	if cudatools.FromEnvironment().PtxasPath == "" {
		t.Skip("no ptxas")
	}
	m := loopModel(t)
	for _, name := range []string{"tegra:emu", "interp"} {
		dev := openDevice(t, name)
		var texts [2][]int32
		for i, all := range []bool{false, true} {
			s, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: 16, Ahead: -1, All: all})
			if err != nil {
				t.Fatal(err)
			}
			result, err := s.Generate(t.Context(), llm.Request{Prompt: []int32{5, 30, 7}, Tokens: 6, IgnoreEOS: true})
			s.Close()
			if err != nil {
				t.Fatal(err)
			}
			texts[i] = result.Tokens
		}
		if len(texts[0]) != 6 || !slices.Equal(texts[0], texts[1]) {
			t.Errorf("%s: tokens %v with all rows, want %v", name, texts[1], texts[0])
		}
	}
}

// Every constant bank that the machine code of a model's kernels (with Q6_K, whose blocks have
// 210 bytes) reads is bound, as far as it
// reads; and no load is wider than the text says: the assembler puts none together whose
// alignment nobody has proved.
func TestTegraMachineCode(t *testing.T) {
	tools := cudatools.FromEnvironment()
	if tools.PtxasPath == "" || tools.NvdisasmPath == "" {
		t.Skip("no ptxas or nvdisasm")
	}
	type kernel struct {
		machine []byte
		text    string
	}
	var mu sync.Mutex
	var kernels []kernel
	machine := emu.New(emu.Options{})
	board, err := tegra.Open(machine, tegra.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := hcq.New(board, hcq.Options{Loaded: func(cubin []byte, text string) error {
		mu.Lock()
		defer mu.Unlock()
		kernels = append(kernels, kernel{slices.Clone(cubin), text})
		return machine.Know(cubin, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	feedEach(t, newLoopSession(t, tinyModel(t), dev, 16, -1), 5)
	seen, widest := make(map[int]bool), 0
	for _, k := range kernels {
		file, err := cubin.Read(k.machine)
		if err != nil {
			t.Fatal(err)
		}
		listing, err := tools.Nvdisasm(t.Context(), k.machine)
		if err != nil {
			t.Fatal(err)
		}
		for bank := range checkBanks(t, file.Kernels[0], listing.Text) {
			seen[bank] = true
		}
		said := widestLoad(k.text)
		if got := listing.WidestLoad["global"]; got > said {
			t.Errorf("kernel %s: a load of %d bytes, the text has %d", file.Kernels[0].Name, got, said)
		}
		widest = max(widest, said)
	}
	if len(kernels) < 5 || !seen[0] || len(seen) < 2 || widest < 8 {
		t.Errorf("%d kernels, banks %v, loads of %d bytes", len(kernels), seen, widest)
	}
}

// constantAccess is c[bank][offset] in a listing.
var constantAccess = regexp.MustCompile(`c\[0x([0-9a-f]+)\]\s*\[0x([0-9a-f]+)\]`)

// checkBanks compares what a listing reads of constant banks with what a launch binds.
func checkBanks(t *testing.T, k *cubin.Kernel, listing string) map[int]bool {
	t.Helper()
	bound := map[int]int{0: len(k.Bank0)}
	for _, b := range k.Banks {
		bound[b.Number] = b.Bytes
	}
	seen := make(map[int]bool)
	for line := range strings.Lines(listing) {
		bytes := 4
		if strings.Contains(line, ".64") || strings.Contains(line, "DFMA") || strings.Contains(line, "DADD") || strings.Contains(line, "DMUL") {
			bytes = 8
		}
		for _, m := range constantAccess.FindAllStringSubmatch(line, -1) {
			bank, _ := strconv.ParseInt(m[1], 16, 32)
			offset, _ := strconv.ParseInt(m[2], 16, 32)
			seen[int(bank)] = true
			if int(offset)+bytes > bound[int(bank)] {
				t.Errorf("kernel %s: %s: bank %d has %d bytes: %s", k.Name, m[0], bank, bound[int(bank)], strings.TrimSpace(line))
			}
		}
	}
	return seen
}

// globalLoad is a load from global memory in PTX: how many elements, of how many bits.
var globalLoad = regexp.MustCompile(`ld\.global[.a-z0-9:_]*?(?:\.v([24]))?\.[busf](\d+)`)

// widestLoad is the most bytes that a load of a text takes.
func widestLoad(text string) int {
	widest := 0
	for _, m := range globalLoad.FindAllStringSubmatch(text, -1) {
		elements, _ := strconv.Atoi(m[1])
		bits, _ := strconv.Atoi(m[2])
		widest = max(widest, max(elements, 1)*bits/8)
	}
	return widest
}
