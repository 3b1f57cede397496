package schedule_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// Reference kernels as text: testdata/reference/gate_up.uop and attention.uop
// are written by hand (the kernels that the design aims at), layer_*.uop are what
// the scheduler makes of the worked LLaMA layer. All parse, verify, and compute
// what the eager model does.

// readKernel parses and verifies a text.
func readKernel(t *testing.T, name string) *ir.UOp {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "reference", name+".uop"))
	if err != nil {
		t.Fatal(err)
	}
	sink, err := ir.Parse(ir.NewArena(), string(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := ir.VerifyKernel(sink); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return sink
}

func zeros(n int) *interp.KernelBuffer {
	return &interp.KernelBuffer{DType: ir.F32, Data: make([]ir.Scalar, n)}
}

func TestReferenceGateUp(t *testing.T) {
	const rows, width = 16, 512
	g := tensor.NewGraph()
	x, gamma := g.Input("x", ir.F32, width), g.Input("gamma", ir.F32, width)
	gate, up := g.Packed("gate", "Q6_K", rows, width), g.Packed("up", "Q6_K", rows, width)
	y := nn.RMSNorm(x, gamma, 1e-5)
	g.Output("act", y.Linear(gate).Silu().Mul(y.Linear(up)))
	r := newRig(t, g, nil, nil)
	act := zeros(rows)
	args := []*interp.KernelBuffer{act, r.buffers[0], r.buffers[1], r.buffers[2], r.buffers[3]}
	stats, err := interp.EvalKernel(context.Background(), readKernel(t, "gate_up"), args, nil, interp.KernelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, act.Data, r.reference()[4].Data, 2e-6)
	for _, slot := range []int{3, 4} {
		for field, per := range map[string]int64{"ql": 1, "qh": 1, "scales": 16, "d": 256} {
			if n := stats.FieldReads[fmt.Sprintf("%d.%s", slot, field)]; n != rows*width/per {
				t.Errorf("%s of slot %d is read %d times, want %d", field, slot, n, rows*width/per)
			}
		}
	}
}

func closeTo(t *testing.T, got, want []ir.Scalar, tolerance float64) {
	t.Helper()
	largest := 1e-30
	for _, w := range want {
		largest = max(largest, math.Abs(w.F))
	}
	for i, w := range want {
		if d := math.Abs(got[i].F - w.F); !(d <= tolerance*largest) {
			t.Fatalf("element %d is %v, want %v", i, got[i].F, w.F)
		}
	}
}

func TestReferenceAttention(t *testing.T) {
	const kv, group, rows, head, parts = 2, 4, 16, 16, 4
	sink := readKernel(t, "attention")
	for pos := range int64(rows) {
		g := tensor.NewGraph()
		n := g.Var("length", 1, rows)
		zero := g.Dims(0)[0]
		q := g.Input("q", ir.F32, 1, 1, kv*group, head)
		keys, values := g.Input("k", ir.F32, 1, kv, rows, head), g.Input("v", ir.F32, 1, kv, rows, head)
		positions := g.Input("positions", ir.I32, 1, 1)
		g.Output("o", nn.Attention(q, keys.Slice(2, zero, n), values.Slice(2, zero, n), positions))
		r := newRig(t, g, map[string]int64{"length": pos + 1}, map[string][]int64{"positions": {pos}})
		for _, id := range []int64{1, 2} { // rows past the position are never read
			for i := range r.buffers[id].Data {
				if int64(i/head%rows) > pos {
					r.buffers[id].Data[i].F = math.NaN()
				}
			}
		}
		m, l, o := zeros(kv*group*parts), zeros(kv*group*parts), zeros(kv*group*parts*head)
		args := []*interp.KernelBuffer{m, l, o, r.buffers[0], r.buffers[1], r.buffers[2]}
		if _, err := interp.EvalKernel(context.Background(), sink, args, map[string]int64{"pos": pos}, interp.KernelOptions{}); err != nil {
			t.Fatal(err)
		}
		closeTo(t, combineParts(m, l, o, parts, head), r.reference()[4].Data, 2e-6)
	}
}

// combineParts folds the parts of a split attention.
func combineParts(m, l, o *interp.KernelBuffer, parts, head int) []ir.Scalar {
	var out []ir.Scalar
	for at := 0; at < len(m.Data); at += parts {
		top, sum := math.Inf(-1), 0.0
		for c := range parts {
			top = max(top, m.Data[at+c].F)
		}
		weighted := make([]float64, head)
		for c := range parts {
			w := math.Exp(m.Data[at+c].F - top)
			sum += w * l.Data[at+c].F
			for d := range weighted {
				weighted[d] += w * o.Data[(at+c)*head+d].F
			}
		}
		for _, v := range weighted {
			out = append(out, ir.Scalar{F: v / sum})
		}
	}
	return out
}

// The worked LLaMA layer: each launch's kernels as text. What is evaluated is
// the text, parsed again.
func TestReferenceLayer(t *testing.T) {
	for _, row := range []struct {
		name string
		opt  schedule.Options
	}{{"layer", schedule.DefaultOptions()}, {"split_layer", cacheSplit(true)}} {
		m := llamaTiny()
		m.format, m.width, m.heads, m.kv, m.head, m.ff = "Q6_K", 256, 8, 2, 32, 256
		for _, position := range []int64{0, 5} {
			r := modelRig(t, m, position)
			s := r.plan(row.opt)
			for i, launch := range s.Launches {
				for j, k := range launch.Kernels {
					file := fmt.Sprintf("%s_L%d_%d", row.name, i, j)
					kernelText(t, file, k.AST)
					k.AST = readKernel(t, file)
				}
			}
			r.check(s, interp.KernelOptions{}, 2e-5)
		}
	}
}

// kernelText compares a kernel's text with its golden file.
func kernelText(t *testing.T, name string, sink *ir.UOp) {
	t.Helper()
	path := filepath.Join("testdata", "reference", name+".uop")
	got := ir.Text(sink)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: the kernel changed (-want +got), -update rewrites it:\n%s", path, diff)
	}
}
