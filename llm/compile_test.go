package llm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir/program"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/nn"
	"tgc/target"
)

// stepLaws are what a decode step of each shape may cost. overhead is for
// launches outside the layers: embedding, rotation tables, logits.
var stepLaws = []struct {
	shape          string
	launchesALayer int
	unique         int
}{
	{"llama3.2:1b-q6_k", 6, 14},
	{"qwen3:0.6b-q8_0", 6, 16},
	{"qwen3:1.7b-q4_k_m", 6, 18},
	{"olmoe:1b-7b-q4_k_m", 9, 20}, // experts are summed apart: a core reads each of them as one stream
	{"gpt2:124m-f16", 6, 14},
	{synth.Tiny, 6, 14},
	{"olmo2:d=2048,layers=4,heads=16,kv=16,head=128,ff=8192,vocab=4096,quant=q4_k_m", 8, 16}, // what blocks add is normed
}

const launchOverhead = 4

// Packed weights are read once and never stored decoded; nothing large lies in
// temporary memory; every kernel that reads weights is planned as one that does.
func TestStepLaws(t *testing.T) {
	for _, law := range stepLaws {
		t.Run(law.shape, func(t *testing.T) {
			m := openOutline(t, law.shape)
			const depth = 128
			v := llm.Variant{Batch: 1, Tokens: 1, Context: min(4096, m.Config.Context)}
			got := describeStep(t, m, v, depth, "llvm:x86-64-v4")
			if want := neededBytes(m); float64(got.WeightBytes) > 1.01*want || float64(got.WeightBytes) < want {
				t.Errorf("%d bytes of weights are read, want %.0f to 1.01 times that", got.WeightBytes, want)
			}
			if limit := law.launchesALayer*m.Config.Layers + launchOverhead; got.Launches > limit || got.Unique > law.unique {
				t.Errorf("%d launches of %d kernels, want at most %d of %d", got.Launches, got.Unique, limit, law.unique)
			}
			for _, k := range got.Kernels {
				checkKernelLaws(t, &k)
			}
			t.Logf("%d launches, %d kernels, %.4f of the weights", got.Launches, got.Unique, float64(got.WeightBytes)/neededBytes(m))
		})
	}
}

// layered are models of two depths, the second of twice the layers: no window's or type's period ends in between.
var layered = []struct {
	shape       string
	few, double int
}{
	{"gemma3:d=1152,layers=%d,heads=4,kv=1,head=256,ff=6912,vocab=2056,pure=1,quant=q4_k", 6, 12},
	{"gemma2:d=2304,layers=%d,heads=8,kv=4,head=256,ff=9216,vocab=2056,pure=1,quant=q4_k", 4, 8},
	{"olmo2:d=2048,layers=%d,heads=16,kv=16,head=128,ff=8192,vocab=2056,pure=1,quant=q6_k", 4, 8},
	{"qwen3:d=1024,layers=%d,heads=16,kv=8,head=128,ff=3072,vocab=2056,pure=1,quant=q8_0", 4, 8},
}

// Twice the layers have the kernels of one time, twice as often: what a layer adds is stored before the next one reads it, however
// many norms lie between them and however many sequences there are.
func TestLayersHaveTheSameKernels(t *testing.T) {
	for _, l := range layered {
		for _, batch := range []int{1, 2, 4} {
			for _, mode := range []nn.Numeric{nn.Exact, nn.Int8} {
				unique := func(layers int) int {
					v := llm.Variant{Batch: batch, Tokens: 1, Context: 256, Numeric: mode}
					step, err := llm.CompileStep(t.Context(), openOutline(t, fmt.Sprintf(l.shape, layers)), v, 64, mustTarget(t, "ptx:sm_90a"), engine.Config{})
					if err != nil {
						t.Fatal(err)
					}
					return len(step.Compiled.Kernels)
				}
				if few, double := unique(l.few), unique(l.double); double > few {
					t.Errorf("%s, %d sequences, %s: %d layers have %d kernels, %d have %d", l.shape, batch, mode, l.few, few, l.double, double)
				}
			}
		}
	}
}

// Exact products of one sequence make for themselves what layers add, also where it has a norm of its own: no kernel stands between a
// product and the next one. Blocks that round it besides would norm twice before their weights come, and beside products of several
// sequences each block would fold all of their rows, so that both sums are stored.
func TestNormsOfProductsAreMadeByTheNext(t *testing.T) {
	for _, c := range []struct {
		mode            nn.Numeric
		batch, launches int // for each layer
	}{{nn.Exact, 1, 5}, {nn.Exact, 2, 9}, {nn.Int8, 1, 7}} {
		launches := func(layers int) int {
			m := openOutline(t, fmt.Sprintf("gemma3:d=1152,layers=%d,heads=4,kv=1,head=256,ff=6912,vocab=2056,pure=1,quant=q4_k", layers))
			return describeStep(t, m, llm.Variant{Batch: c.batch, Tokens: 1, Context: 256, Numeric: c.mode}, 64, "ptx:sm_90a").Launches
		}
		if got := launches(3) - launches(2); got != c.launches {
			t.Errorf("%s, %d sequences: a layer more has %d launches, want %d", c.mode, c.batch, got, c.launches)
		}
	}
}

// Matrix instructions decode weights for eight tokens: for two of them threads are as fast, or faster.
func TestTilesOfFewTokens(t *testing.T) {
	m := openOutline(t, "qwen2:d=1536,layers=2,heads=12,kv=2,ff=8960,vocab=2056,pure=1,quant=q5_k")
	for _, c := range []struct {
		batch, tiles int // products of their kernels
	}{{2, 4}, {3, 7}} {
		manifest := describeStep(t, m, llm.Variant{Batch: c.batch, Tokens: 1, Context: 64}, 8, "ptx:sm_90")
		got := 0
		for _, k := range manifest.Kernels {
			got += strings.Count(k.Why, "matrix instructions")
		}
		if got != c.tiles {
			t.Errorf("%d sequences: matrix instructions make %d products, want %d", c.batch, got, c.tiles)
		}
	}
}

// Panels look up entries of tables two points at a time, where lanes load an entry of four or eight weights at once: the few tokens of a
// batch do not pay for that, however many rows share a panel.
func TestBatchesOfEntriesHaveNoPanels(t *testing.T) {
	for _, quant := range []string{"iq1_m", "iq2_s", "iq3_s"} {
		m := openOutline(t, "llama:d=2048,layers=1,heads=32,kv=8,ff=8192,vocab=128256,pure=1,quant="+quant)
		for _, batch := range []int{8, 16} {
			manifest := describeStep(t, m, llm.Variant{Batch: batch, Tokens: 1, Context: 64}, 8, "ptx:sm_90a")
			for _, k := range manifest.Kernels {
				if slices.ContainsFunc(k.Plan, func(opt string) bool { return strings.Contains(opt, "STAGE") }) {
					t.Errorf("%s, %d sequences: %s has %v", quant, batch, k.Name, k.Plan)
				}
			}
		}
	}
}

// No loop of a product with bytes carries more sums of its copies than registers: groups of 16, whose two loops are copies since they share
// bytes, had a loop in them, which kept four sums of each token, matrix and offset.
func TestLoopsInCopiesCarryFewSums(t *testing.T) {
	m := openOutline(t, "llama:d=512,layers=1,heads=8,kv=2,ff=1536,vocab=2056,pure=1,quant=q6_k")
	for _, c := range []struct {
		target string
		batch  int
		copies bool // of the loop between
	}{{"llvm:sapphirerapids", 2, false}, {"llvm:sapphirerapids", 4, true}, {"llvm:sapphirerapids", 8, true}, {"llvm:haswell", 1, false}, {"llvm:haswell", 4, true}} {
		manifest := describeStep(t, m, llm.Variant{Batch: c.batch, Tokens: 1, Context: 64, Numeric: nn.Int8}, 8, c.target)
		down := manifest.Kernels[slices.IndexFunc(manifest.Kernels, func(k engine.ManifestKernel) bool { return strings.Contains(k.Why, "[512 x 1536]") })]
		if copies := slices.Contains(down.Plan, "UNROLL r4 2"); copies != c.copies || !strings.Contains(down.Why, "interleaved rows") {
			t.Errorf("%s, %d sequences: %v (%s), copies of r4: want %v", c.target, c.batch, down.Plan, down.Why, c.copies)
		}
	}
}

func checkKernelLaws(t *testing.T, k *engine.ManifestKernel) {
	const large, smallWeight = 2 << 20, 64 << 10
	for _, arg := range k.Args {
		if arg.Role == engine.RoleScratch && arg.Bytes > large {
			t.Errorf("kernel %s: temporary %s has %d bytes, want at most %d", k.Name, arg.Name, arg.Bytes, large)
		}
	}
	matrix := strings.HasPrefix(k.Why, "matvec") || strings.HasPrefix(k.Why, "matmul")
	if k.MemoryBytes() > smallWeight && !matrix && !strings.HasPrefix(k.Why, "attention") {
		t.Errorf("kernel %s reads %d bytes of weights or cache, but is planned as %q", k.Name, k.MemoryBytes(), k.Why)
	}
}

// neededBytes is what one token needs of the weights: all of them, but one row
// of an embedding that is no output matrix too, and only the chosen experts.
func neededBytes(m *llm.Model) float64 {
	_, untied := m.File.Tensor("output.weight")
	sum := 0.0
	for _, tensor := range m.File.Tensors() {
		size, row := float64(tensor.Bytes()), float64(tensor.RowBytes())
		switch {
		case tensor.Name == "token_embd.weight" && untied, tensor.Name == "position_embd.weight":
			size = row
		case tensor.Name == "token_embd.weight":
			size += row
		case tensor.Name == "rope_freqs.weight": // part of constants
			size = 0
		case strings.Contains(tensor.Name, "_exps."):
			size *= float64(m.Config.ExpertsUsed) / float64(m.Config.Experts)
		}
		sum += size
	}
	return sum
}

// A step does not depend on when it is compiled: the form, plan and program of
// every kernel are the same, those with panels of matrix products too.
func TestCompileIsDeterministic(t *testing.T) {
	m := openOutline(t, synth.Tiny)
	for _, c := range []struct {
		target string
		v      llm.Variant
	}{
		{"interp", llm.Variant{Batch: 1, Tokens: 8, Context: 256}},
		{"ptx:sm_90", llm.Variant{Batch: 1, Tokens: 128, Context: 256, Numeric: nn.Int8}},
	} {
		text := func() string {
			step, err := llm.CompileStep(t.Context(), m, c.v, 16, mustTarget(t, c.target), engine.Config{Explain: true})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := step.Compiled.Explain(&b); err != nil {
				t.Fatal(err)
			}
			for _, p := range step.Compiled.Programs() {
				b.WriteString(program.Print(p))
			}
			return b.String()
		}
		first := text()
		for i := range 3 {
			if text() != first {
				t.Fatalf("%s: compilation %d differs from the first", c.target, i+2)
			}
		}
	}
}

// describeStep is what a compiled step is made of.
func describeStep(t *testing.T, m *llm.Model, v llm.Variant, depth int, target string) (manifest engine.Manifest) {
	t.Helper()
	step, err := llm.CompileStep(t.Context(), m, v, depth, mustTarget(t, target), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	manifest.Describe(step.Compiled, step.Binding)
	return manifest
}

func openOutline(t *testing.T, name string) *llm.Model {
	t.Helper()
	shape, err := synth.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return outlineOf(t, shape)
}

// outlineOf is a model without its weights.
func outlineOf(t *testing.T, shape synth.Shape) *llm.Model {
	t.Helper()
	f, err := synth.Outline(t.Context(), shape)
	if err != nil {
		t.Fatal(err)
	}
	m, err := llm.NewModel(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func mustTarget(t *testing.T, name string) *target.Desc {
	t.Helper()
	desc, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

// The size of a cache follows from what is asked for and what the model can do.
func TestContextSize(t *testing.T) {
	m := &llm.Model{Name: "m", Config: &llm.Config{Context: 8192}}
	const any = -1
	for _, c := range []struct{ asked, prompt, tokens, want int }{
		{0, 5, 10, 256},
		{0, 200, 57, 512},
		{0, 4000, 96, 4096},
		{0, 4000, 200, 4200},
		{0, 5, any, 4096},
		{0, 5000, any, 8192},
		{0, 5, 1 << 62, 8192},
		{64, 5, 100, 64},
		{8192, 5, 100, 8192},
		{8193, 5, 100, 0},
		{4, 5, 100, 0},
		{0, 8193, 1, 0},
	} {
		got, err := llm.ContextSize(m, c.asked, c.prompt, c.tokens)
		if got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("asked %d for %d and %d tokens: %d, %v; want %d", c.asked, c.prompt, c.tokens, got, err, c.want)
		}
	}
}

func TestParseTokens(t *testing.T) {
	got, err := llm.ParseTokens(" 1,2 3\n4 ", 5)
	if err != nil || len(got) != 4 || got[3] != 4 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"x", "1,5", "-1", "4294967297", "99999999999999999999", "1.5"} {
		if _, err := llm.ParseTokens(bad, 5); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// After its keys and values the last layer of a prompt works for the token whose logits are wanted: the
// operations of a model of one layer are those of projections for all tokens, and of all else for one.
func TestLastLayerForWantedTokens(t *testing.T) {
	const tokens = 64
	m := openOutline(t, "llama:d=256,layers=1,heads=4,kv=2,ff=1024,vocab=512,quant=q8_0")
	for _, name := range []string{"llvm:x86-64-v3", "ptx:sm_90"} {
		operations := func(all bool) (sum int64) {
			v := llm.Variant{Batch: 1, Tokens: tokens, Context: 2 * tokens, All: all}
			manifest := describeStep(t, m, v, 0, name)
			for _, k := range manifest.Kernels {
				sum += k.Flops * int64(k.Launches)
			}
			return sum
		}
		projections, others := int64(256*256*2), int64(256*256+3*256*1024+512*256)
		if got, most := operations(false), 2*(tokens*projections+others)*3/2; got > most {
			t.Errorf("%s: %d operations for one of %d tokens, want at most %d", name, got, tokens, most)
		}
		if got, least := operations(true), 2*tokens*(projections+others); got < least {
			t.Errorf("%s: %d operations for all of %d tokens, want %d and more", name, got, tokens, least)
		}
	}
}

// Activations of a token and the gain of their norm are multiplied once for a block of its experts' rows, in shared memory.
func TestExpertsOfTokensShareActivations(t *testing.T) {
	m := openOutline(t, "qwen3moe:d=2048,layers=1,heads=32,kv=4,head=128,ff=768,experts=128,used=8,vocab=2056,tied=0,pure=1,quant=q3_k")
	for _, batch := range []int{2, 8} {
		manifest := describeStep(t, m, llm.Variant{Batch: batch, Tokens: 1, Context: 64}, 8, "ptx:sm_90")
		at := slices.IndexFunc(manifest.Kernels, func(k engine.ManifestKernel) bool {
			return strings.Contains(k.Why, fmt.Sprintf("[%d x 2048]", batch*8*768))
		})
		gates := manifest.Kernels[at]
		if least := int64(4 * 2048); !slices.Contains(gates.Plan, "STAGE r0") || gates.SharedBytes < least {
			t.Errorf("%d sequences: %v with %d bytes of shared memory, want STAGE r0 and %d", batch, gates.Plan, gates.SharedBytes, least)
		}
	}
}

// Blocks of the experts of few tokens have the threads that their rows take, though each rounds its token's activations in front of them.
func TestBlocksOfExpertsAreTheirRows(t *testing.T) {
	m := openOutline(t, "olmoe:d=2048,layers=1,heads=16,kv=16,head=128,ff=1024,experts=64,used=8,vocab=2056,tied=0,pure=1,quant=q4_k")
	for _, batch := range []int{2, 3} {
		manifest := describeStep(t, m, llm.Variant{Batch: batch, Tokens: 1, Context: 64, Numeric: nn.Int8}, 8, "ptx:sm_90")
		at := slices.IndexFunc(manifest.Kernels, func(k engine.ManifestKernel) bool {
			return strings.Contains(k.Why, fmt.Sprintf("[%d x 2048]", batch*8*1024))
		})
		if gates := manifest.Kernels[at]; gates.Block[0] > 128 {
			t.Errorf("%d sequences: blocks of %d threads, want at most 128: %v", batch, gates.Block[0], gates.Plan)
		} else if !strings.Contains(gates.Name, "_r_32_8_64_") {
			t.Errorf("%d sequences: blocks of %s do not look for their expert among the 64", batch, gates.Name)
		}
	}
}

// Rows of experts are taken in tiles of one expert's, of floats from fewer on than of bytes. All tiles read where their matrix and their
// rows lie: no block looks for them among the choices of all tokens, be these as few as 16.
func TestTilesOfExpertsReadWhereTheyLie(t *testing.T) {
	for _, c := range []struct {
		experts, used   int
		numeric         nn.Numeric
		sequences, want int // products: gate with up, and down
	}{
		{64, 8, nn.Exact, 11, 0}, {64, 8, nn.Exact, 12, 2}, {64, 8, nn.Int8, 15, 0}, {64, 8, nn.Int8, 16, 2},
		{8, 2, nn.Int8, 7, 0}, {8, 2, nn.Int8, 8, 2}, {8, 2, nn.Exact, 8, 2}, {8, 2, nn.Int8, 20, 2},
	} {
		m := openOutline(t, fmt.Sprintf("olmoe:d=2048,layers=1,heads=16,kv=16,head=128,ff=1024,experts=%d,used=%d,vocab=2056,tied=0,pure=1,quant=q4_k", c.experts, c.used))
		manifest := describeStep(t, m, llm.Variant{Batch: c.sequences, Tokens: 1, Context: 64, Numeric: c.numeric}, 8, "ptx:sm_90")
		rows := 8
		if choices := c.sequences * c.used; choices > 4*c.experts {
			rows = 16
		}
		choices, products := c.sequences*c.used, 0
		for _, k := range manifest.Kernels {
			tiles := fmt.Sprintf("reduce_%d_%d_", (choices+c.experts*(rows-1))/rows, rows)
			if strings.HasPrefix(k.Name, tiles) && strings.Contains(k.Why, "matrix instructions") {
				products++
				if strings.Contains(k.Name, fmt.Sprintf("_r_%d_", choices)) {
					t.Errorf("%d experts, %s, %d sequences: %s folds the %d choices", c.experts, c.numeric, c.sequences, k.Name, choices)
				}
			}
		}
		if products != c.want {
			t.Errorf("%d experts, %s, %d sequences: %d products of tiles of rows, want %d", c.experts, c.numeric, c.sequences, products, c.want)
		}
	}
}
