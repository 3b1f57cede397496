package tensor_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/nn"
	"tgc/packed"
	"tgc/runtime"
	"tgc/runtime/cpu"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// recordProgram is a program that reads a packed weight [rows, columns], or several of them.
type recordProgram struct {
	name          string
	rows, columns int
	build         func(g *tensor.Graph, w *tensor.Tensor, columns int)
	matrices      int // 0: one, of rank 2
}

// shape is that of the weight.
func (p recordProgram) shape() []int {
	if p.matrices > 0 {
		return []int{p.matrices, p.rows, p.columns}
	}
	return []int{p.rows, p.columns}
}

// chosenOf sums the products of two matrices that each token chooses, with activations of its own for each
// of them or for both.
func chosenOf(tokens, activations int) func(*tensor.Graph, *tensor.Tensor, int) {
	return func(g *tensor.Graph, w *tensor.Tensor, columns int) {
		chosen, weight := nn.TopK(g.Input("scores", ir.F32, tokens, w.Extent(0)), 2)
		x := g.Input("x", ir.F32, tokens, activations, 1, columns)
		g.Output("y", w.Gather(0, chosen).Mul(x).Sum(-1).Mul(weight.Unsqueeze(-1)).Sum(1))
	}
}

// experts is a layer in int8 of which gate and up are the weight.
func experts(tokens int) func(*tensor.Graph, *tensor.Tensor, int) {
	return func(g *tensor.Graph, w *tensor.Tensor, columns int) {
		layer := nn.Experts{Router: g.Input("router", ir.F32, 3, columns), Gate: w, Up: w, Down: g.Input("down", ir.F32, 3, 32, 48), Used: 2, Numeric: nn.Int8}
		g.Output("y", layer.Apply(g.Input("x", ir.F32, 1, tokens, columns)))
	}
}

// tokens is a product with some rows of activations.
func tokens(n int) func(*tensor.Graph, *tensor.Tensor, int) {
	return func(g *tensor.Graph, w *tensor.Tensor, columns int) {
		g.Output("y", g.Input("x", ir.F32, n, columns).Linear(w))
	}
}

var recordPrograms = []recordProgram{
	{"matvec", 64, 512, tokens(1), 0},
	{"matvec-odd-tiles", 80, 5 * 256, tokens(1), 0},
	{"matvec-9-blocks", 48, 9 * 256, tokens(1), 0},
	{"no-whole-tile", 40, 512, tokens(1), 0},
	{"two-rows", 2, 512, tokens(1), 0},
	{"batch-2", 48, 512, tokens(2), 0},
	{"batch-5", 64, 512, tokens(5), 0},
	{"prompt-11", 112, 512, tokens(11), 0},
	{"prompt-40", 96, 3 * 256, tokens(40), 0},
	{"normalised", 64, 512, func(g *tensor.Graph, w *tensor.Tensor, columns int) {
		x := nn.RMSNorm(g.Input("x", ir.F32, 1, columns), g.Input("gamma", ir.F32, columns), 1e-5)
		g.Output("y", x.Linear(w).Add(g.Input("residual", ir.F32, 1, 64)))
	}, 0},
	{"pairs-turned", 128, 512, func(g *tensor.Graph, w *tensor.Tensor, columns int) {
		y := g.Input("x", ir.F32, 1, columns).Linear(w).Reshape(2, 32, 2)
		a, b := y.SliceInts(2, 0, 1), y.SliceInts(2, 1, 1)
		c, s := g.Input("cos", ir.F32, 2, 32, 1), g.Input("sin", ir.F32, 2, 32, 1)
		g.Output("y", a.Mul(c).Sub(b.Mul(s)).Cat(2, a.Mul(s).Add(b.Mul(c))))
	}, 0},
	{"int8", 64, 512, func(g *tensor.Graph, w *tensor.Tensor, columns int) {
		g.Output("y", nn.Int8.Linear(g.Input("x", ir.F32, 1, columns), w))
	}, 0},
	{"int8-scaled-by-tiles", 512, 512, func(g *tensor.Graph, w *tensor.Tensor, columns int) {
		y := nn.Int8.Linear(g.Input("x", ir.F32, 1, columns), w).Reshape(16, 32)
		g.Output("y", y.Div(y.Abs().Max(1).Reshape(16, 1)))
	}, 0},
	{"tied", 64, 512, func(g *tensor.Graph, w *tensor.Tensor, columns int) {
		g.Output("row", w.SliceInts(0, 21, 1).MulScalar(2))
		g.Output("y", g.Input("x", ir.F32, 1, columns).Linear(w))
	}, 0},
	{"chosen-matrices", 48, 5 * 256, chosenOf(1, 1), 5},
	{"chosen-matrices-apart", 48, 5 * 256, chosenOf(1, 2), 5},
	{"chosen-matrices-5-tokens", 48, 5 * 256, chosenOf(5, 2), 5},
	{"chosen-of-odd-rows", 40, 512, chosenOf(1, 1), 5},
	{"int8-experts", 48, 9 * 256, experts(1), 3},
	{"experts-40-tokens", 48, 512, experts(40), 3},
}

// run compiles a program for a device and gives its results.
func (p recordProgram) run(t *testing.T, dev runtime.Device, format string, blocks []byte, records engine.Records) (*tensor.Function, map[string][]float32) {
	t.Helper()
	g := tensor.NewGraph()
	p.build(g, g.Packed("w", format, p.shape()...), p.columns)
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{Verify: true, Records: records})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	results := make(map[string][]float32)
	for _, b := range f.Buffers() {
		switch b.Name {
		case "y", "row":
			results[b.Name] = nil
		case "w":
			err = f.Write(t.Context(), "w", blocks)
		default:
			r := rand.New(rand.NewPCG(7, uint64(len(b.Name))))
			n := int64(1)
			for _, d := range b.Shape {
				extent, _ := d.Int()
				n *= extent
			}
			values := make([]float32, n)
			for i := range values {
				values[i] = float32(r.NormFloat64())
			}
			err = tensor.Set(t.Context(), f, b.Name, values)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for name := range results {
		if results[name], err = tensor.Get[float32](t.Context(), f, name); err != nil {
			t.Fatal(err)
		}
	}
	return f, results
}

// TestRecordsOfCPU: what programs compute of weights whose rows are interleaved is what the
// interpreter computes of the file's order, and the weights are read back as they were written.
func TestRecordsOfCPU(t *testing.T) {
	dev, err := cpu.New(t.Context(), cpu.Options{NoCache: true, Threads: 2})
	if errors.Is(err, cpu.ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if !dev.Target().CanInterleave() {
		t.Skip("this processor has no registers of 16 words")
	}
	formats := []string{"Q4_0", "Q4_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_0", "TQ2_0", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4"}
	for i, name := range formats {
		for _, p := range recordPrograms {
			if testing.Short() && i%3 != 1 {
				continue
			}
			t.Run(fmt.Sprint(name, " ", p.name), func(t *testing.T) {
				format, _ := packed.Lookup(name)
				blocks := packed.RandomBlocks(format, max(p.matrices, 1)*p.rows*p.columns/format.BlockElems, rand.New(rand.NewPCG(3, uint64(i))))
				_, want := p.run(t, interp.New(interp.Options{}), name, blocks, engine.RecordsByPrice)
				f, got := p.run(t, dev, name, blocks, packed.MostRecordBits)
				for key := range want {
					compareFloats(t, key, got[key], want[key])
				}
				if strings.HasPrefix(p.name, "int8") {
					checkDots(t, f.Step().Compiled)
				}
				if p.wantsLanes() && !takesInterleaved(f.Step().Compiled) {
					t.Error("no kernel has lanes of interleaved rows")
				}
				if f.Step().Compiled.Target.Records == 0 {
					t.Error("the weights lie as in the file")
				}
				if back, err := f.Read(t.Context(), "w"); err != nil || !bytes.Equal(back, blocks) {
					t.Errorf("the weights came back changed (%v)", err)
				}
			})
		}
	}
}

// wantsLanes reports programs that choose matrices of which lanes are rows.
func (p recordProgram) wantsLanes() bool {
	return p.name == "int8-experts" || strings.HasPrefix(p.name, "chosen-matrices")
}

// takesInterleaved reports a kernel whose lanes are rows of a record.
func takesInterleaved(compiled *engine.Compiled) bool {
	return slices.ContainsFunc(compiled.Kernels, func(k *engine.Kernel) bool { return strings.Contains(k.Why, "interleaved rows") })
}

// checkDots finds products of integers that are no dots: the bytes that a dot sums were no
// neighbours; dots of two signed sides, which take two instructions but where signs are moved; and shifts of many bytes (of no constant, as a power of two is made) by what
// is no constant: points that share bytes were not taken together.
func checkDots(t *testing.T, compiled *engine.Compiled) {
	t.Helper()
	dots := 0
	for _, p := range compiled.Programs() {
		constant := make(map[*program.Value]bool)
		p.Body.Each(func(in *program.Instr) {
			switch {
			case in.Op == program.Const || in.Op == program.ConstLanes || in.Op == program.Broadcast && constant[in.Args[0]]:
				constant[in.Result] = true
			case in.Op == program.Dot4 && in.Args[1].Type.Elem == ir.I8 && in.Args[2].Type.Elem == ir.I8 && !constant[in.Args[1]] && !constant[in.Args[2]] && !compiled.Target.BytePairs():
				t.Errorf("%s has a dot of signed bytes", p.Name)
			case in.Op == program.Dot4:
				dots++
			case in.Op == program.Alu && (in.Ir == ir.OpShr || in.Ir == ir.OpShl) && in.Result.Type.Bytes() == 4*packed.RecordRows && !constant[in.Args[0]] && !constant[in.Args[1]]:
				t.Errorf("%s shifts %d lanes by what is no constant", p.Name, in.Result.Type.Lanes)
			case in.Op == program.Alu && in.Ir == ir.OpMul && in.Result.Type.Elem == ir.I32 && in.Result.Type.Lanes > packed.RecordRows:
				t.Errorf("%s multiplies %d integers at once", p.Name, in.Result.Type.Lanes)
			}
		})
	}
	if dots == 0 {
		t.Error("no kernel has a dot")
	}
}

func compareFloats(t *testing.T, name string, got, want []float32) {
	t.Helper()
	most := 0.0
	for _, x := range want {
		most = max(most, math.Abs(float64(x)))
	}
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 2e-5*most) {
			t.Fatalf("%s: element %d is %g, want %g (largest %g)", name, i, got[i], want[i], most)
		}
	}
}
