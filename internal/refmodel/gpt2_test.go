package refmodel

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tgc/gguf"
	"tgc/ir"
)

// writeModel makes a GPT-2 of width 2 with one head of one block; edit may change it
// before it is written.
func writeModel(t *testing.T, edit func(meta map[string]any, tensors map[string][]float64)) *gguf.File {
	t.Helper()
	meta := map[string]any{
		"general.architecture":              "gpt2",
		"gpt2.block_count":                  uint32(1),
		"gpt2.embedding_length":             uint32(2),
		"gpt2.attention.head_count":         uint32(1),
		"gpt2.context_length":               uint32(3),
		"gpt2.attention.layer_norm_epsilon": float32(0.25),
	}
	tensors := map[string][]float64{
		"token_embd.weight":        {1, 2, 3, -1, 0.5, 0},
		"position_embd.weight":     {0.5, 0, -1, 1, 2, 2},
		"output_norm.weight":       {2, 1},
		"output_norm.bias":         {0.25, -0.5},
		"blk.0.attn_norm.weight":   {1, 1},
		"blk.0.attn_norm.bias":     {0, 0},
		"blk.0.attn_qkv.weight":    make([]float64, 12),
		"blk.0.attn_qkv.bias":      {9, 9, 7, 7, 0.5, -2}, // only the last two, the value, can be seen
		"blk.0.attn_output.weight": {1, 2, 0, 1},
		"blk.0.attn_output.bias":   {0.125, 1},
		"blk.0.ffn_norm.weight":    {1, 0.5},
		"blk.0.ffn_norm.bias":      {0.5, 0},
		"blk.0.ffn_up.weight":      {1, 0, 0, 1, 1, -1},
		"blk.0.ffn_up.bias":        {0, 1, -1},
		"blk.0.ffn_down.weight":    {1, 0, 1, 0, 2, 0},
		"blk.0.ffn_down.bias":      {-1, 0.5},
	}
	if edit != nil {
		edit(meta, tensors)
	}
	columns := map[string]int{"blk.0.ffn_down.weight": 3}
	w := gguf.NewWriter()
	for key, v := range meta {
		w.Put(key, v)
	}
	for name, values := range tensors {
		dims := []int{len(values)}
		if strings.HasSuffix(name, ".weight") && !strings.Contains(name, "norm") {
			n := max(columns[name], 2)
			dims = []int{n, len(values) / n}
		}
		w.Add(name, gguf.F32, dims, gguf.FromBytes([]byte(ir.EncodeTable(ir.F32, values))))
	}
	f, err := w.Memory(context.Background(), "tiny.gguf", nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestGPT2 follows the model by hand: the value row does not depend on the
// input, so every position attends to the same value.
func TestGPT2(t *testing.T) {
	m, err := Load(writeModel(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	s := m.NewState(3)
	embedding := [][2]float64{{1, 2}, {3, -1}, {0.5, 0}}
	positions := [][2]float64{{0.5, 0}, {-1, 1}, {2, 2}}
	for at, token := range []int{2, 0, 1} {
		x, y := embedding[token][0]+positions[at][0], embedding[token][1]+positions[at][1]
		// Value (0.5, -2): the output matrix makes (0.5-4, -2) of it.
		x, y = x+0.5-4+0.125, y-2+1
		nx, ny := pairNorm(x, y)
		hx, hy := nx+0.5, ny*0.5
		a, b, c := tanhGELU(hx), tanhGELU(hy+1), tanhGELU(hx-hy-1)
		x, y = x+a+c-1, y+2*b+0.5
		nx, ny = pairNorm(x, y)
		fx, fy := 2*nx+0.25, ny-0.5
		for id, logit := range m.Step(s, token) {
			want := fx*embedding[id][0] + fy*embedding[id][1]
			if math.Abs(logit-want) > 1e-12 {
				t.Errorf("position %d logit %d: %g, want %g", at, id, logit, want)
			}
		}
	}
}

// pairNorm is LayerNorm of two values with epsilon 1/4, without a weight.
func pairNorm(x, y float64) (float64, float64) {
	d := (x - y) / 2 // both lie d from the mean, so the variance is d*d
	return d / math.Sqrt(d*d+0.25), -d / math.Sqrt(d*d+0.25)
}

// tanhGELU is the formula of the GPT-2 paper's code, written another way:
// (1+tanh(z))/2 is the logistic function of 2z.
func tanhGELU(x float64) float64 {
	z := 0.7978845608028654 * (x + 0.044715*math.Pow(x, 3))
	return x / (1 + math.Exp(-2*z))
}

// TestLoadErrors: what is wrong is named.
func TestLoadErrors(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(meta map[string]any, tensors map[string][]float64)
		want string
	}{
		"architecture":   {func(m map[string]any, _ map[string][]float64) { m["general.architecture"] = "mamba" }, `"mamba"`},
		"missing key":    {func(m map[string]any, _ map[string][]float64) { delete(m, "gpt2.block_count") }, "gpt2.block_count"},
		"zero heads":     {func(m map[string]any, _ map[string][]float64) { m["gpt2.attention.head_count"] = uint32(0) }, "head_count"},
		"missing tensor": {func(_ map[string]any, x map[string][]float64) { delete(x, "blk.0.ffn_up.weight") }, "ffn_up"},
		"wrong shape":    {func(_ map[string]any, x map[string][]float64) { x["output_norm.weight"] = []float64{1} }, "want 2 elements"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(writeModel(t, test.edit))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one about %s", err, test.want)
			}
		})
	}
}

// TestClone: two continuations of one prefix do not disturb each other.
func TestClone(t *testing.T) {
	m, err := Load(writeModel(t, func(_ map[string]any, x map[string][]float64) {
		for i := range x["blk.0.attn_qkv.weight"] {
			x["blk.0.attn_qkv.weight"][i] = rand.New(rand.NewPCG(1, uint64(i))).Float64()
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	s := m.NewState(3)
	m.Step(s, 0)
	a, b := s.Clone(), s.Clone()
	m.Step(a, 1)
	m.Step(b, 2)
	m.Step(s, 1)
	x, y := m.Step(a, 2), m.Step(s, 2)
	for i := range x {
		if x[i] != y[i] {
			t.Fatalf("logit %d after the clone: %g, want %g", i, x[i], y[i])
		}
	}
}
