package llm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/runtime/interp"
	"tgc/target"
)

// shortCaches is the interpreter as a target that compiles steps for the first rows of a
// long cache.
func shortCaches(rows ...int) *interp.Device {
	desc := target.Interp()
	desc.Tuning.ShortCaches = rows
	return interp.New(interp.Options{Target: desc})
}

// A text that grows past the first rows of a long cache, and one that begins past them,
// get the tokens that one step over the whole cache gives: by the host's loop, by the
// device's, and in a batch.
func TestShortCache(t *testing.T) {
	m := loopModel(t)
	sampling := loopSampling["seeded"]
	requests := []llm.Request{
		{Prompt: []int32{5, 300}, Tokens: 7, IgnoreEOS: true, Sampling: sampling},
		{Prompt: []int32{12}, Tokens: 2, IgnoreEOS: true, Sampling: sampling},
	}
	for name, ahead := range map[string]int{"host": -1, "device": 3} {
		t.Run(name, func(t *testing.T) {
			whole, short := newLoopSession(t, m, shortCaches(), 20, -1), newLoopSession(t, m, shortCaches(3, 6), 20, ahead)
			if err := short.Prepare(t.Context(), 2, sampling); err != nil {
				t.Fatal(err)
			}
			before := short.CompileParts()["write-kernels"]
			sameGeneration(t, whole, short, requests[0])
			if got := short.CompileParts()["write-kernels"]; got != before {
				t.Errorf("kernels of steps past the first rows were compiled in a generation that was prepared: %v after %v", got, before)
			}
			sameGeneration(t, whole, short, requests[1])
			if got := short.CompiledSteps(); got < 3 {
				t.Errorf("%d steps and loops of one token, want those over 3, 6 and 20 rows", got)
			}
		})
	}
	t.Run("batch", func(t *testing.T) {
		batch := newBatch(t, m, shortCaches(3), llm.BatchOptions{Sequences: 4, Context: batchContext, Ahead: 4})
		batchEqualsSingles(t, batch, m, shortCaches(), batchRequests(sampling), 1)
	})
}

// A step over the first rows of a long cache is planned as one over a cache of so many rows, and
// reads old rows before the kernel before has ended: a text is as fast at its beginning whatever
// length the cache has.
func TestShortStepsArePlannedAsShortCaches(t *testing.T) {
	for _, name := range []string{"llama3.2:1b-q6_k", "qwen3:1.7b-q4_k_m"} {
		m := shortOutline(t, name)
		short, long := rowsPlanned(t, m, 256, 0), rowsPlanned(t, m, 8192, 256)
		if diff := cmp.Diff(short, long); diff != "" {
			t.Errorf("%s: over 256 rows of 8192 (+) as over all of 256 (-):\n%s", name, diff)
		}
	}
}

// shortOutline is a model of a shape, of few layers and without weights.
func shortOutline(t *testing.T, name string) *llm.Model {
	t.Helper()
	shape, err := synth.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return outlineOf(t, fewerLayers(shape))
}

// readEarly lists the buffers of a kernel that nothing before it writes.
func readEarly(ast *ir.UOp) []*ir.UOp {
	return lists.Filter(ir.Toposort(ast), func(u *ir.UOp) bool {
		p, is := u.Arg.(ir.ParamArg)
		return is && p.Constant
	})
}

// rowsPlanned lists the kernels of a decode step over some rows of a cache: launch, plan and the
// buffers that nothing before them writes.
func rowsPlanned(t *testing.T, m *llm.Model, rows, visited int) []string {
	t.Helper()
	var out []string
	for _, k := range lowerStep(t, "sm_90", m, llm.Variant{Batch: 1, Tokens: 1, Context: rows, Visited: visited}, 64) {
		out = append(out, fmt.Sprintf("%s %v %v, %d read early: %s", k.Name, k.Program.Grid, k.Program.Block, len(readEarly(k.AST)), k.Plan))
	}
	return out
}

// attentionPlans is how decode attends over caches of some lengths on a GPU: in one launch, whose clusters
// read all rows before the kernel before has ended where their registers hold them, and over many rows in
// parts, which two queries share where that saves more than it costs.
var attentionPlans = []struct {
	shape string
	rows  int
	early bool // the rows are read early; those of heads with norms always are, since attention makes its own row
	parts int  // 0: whole
	holds string
}{
	{"llama3.2:1b-q6_k", 256, true, 0, "CLUSTER r0 2"},
	{"llama3.2:1b-q6_k", 512, true, 0, "CLUSTER r0 4"},
	{"llama3.2:1b-q6_k", 1024, false, 0, "CLUSTER r0 2"},
	{"llama3.2:1b-q6_k", 2048, false, 16, "UNROLL r0 4"},
	{"llama3.2:1b-q6_k", 4096, false, 32, "UPCAST s1 2; UNROLL r0 4"},
	{"qwen3:1.7b-q4_k_m", 512, true, 0, "CLUSTER r0 8"},
	{"qwen3:1.7b-q4_k_m", 1024, true, 0, "CLUSTER r0 4"},
	{"qwen3:1.7b-q4_k_m", 2048, true, 32, "UNROLL r0 4"},
	{"qwen3:1.7b-q4_k_m", 4096, true, 64, "UPCAST s1 2; UNROLL r0 4"},
	{"llama:d=256,layers=1,heads=4,kv=1,head=256,ff=256,vocab=266,quant=q8_0", 4096, false, 64, "UNROLL r0 4"},
}

func TestAttentionOverLongCaches(t *testing.T) {
	for _, c := range attentionPlans {
		m := shortOutline(t, c.shape)
		early, parts, plans := false, 0, ""
		for _, k := range lowerStep(t, "sm_90a", m, llm.Variant{Batch: 1, Tokens: 1, Context: c.rows}, 64) {
			for _, part := range append(k.Parts, k) {
				if !strings.HasPrefix(part.Why, "attention") || part.Plan.String() == "" {
					continue
				}
				if n, joins := joinedParts(part.AST); joins {
					parts = n
					continue
				}
				plans = part.Plan.String()
				early = early || slices.ContainsFunc(readEarly(part.AST), func(u *ir.UOp) bool { return len(u.Src) == 4 })
			}
		}
		if early != c.early || parts != c.parts || !strings.Contains(plans, c.holds) {
			t.Errorf("%s over %d rows: read early %t, %d parts, plan %q; want %t, %d, %q", c.shape, c.rows, early, parts, plans, c.early, c.parts, c.holds)
		}
	}
}

// joinedParts is how many parts a kernel joins: one whose points are a constant number.
func joinedParts(ast *ir.UOp) (n int, joins bool) {
	for _, u := range ir.Toposort(ast) {
		if u.Op == ir.OpReduce && len(u.ReduceValues()) > 1 {
			extent, constant := u.ReduceRange().Src[0].Int()
			return int(extent), constant
		}
	}
	return 0, false
}
