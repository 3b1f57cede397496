package engine_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"tgc/engine"
	"tgc/grad"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// Shapes of the kernels below: large enough that the input counts as a weight.
const (
	winBatch, winIn, winOut = 8, 3, 16
	winSize                 = 28
)

// windowCase is a kernel over sliding windows: its plan for AVX-512 and its
// values, from a reference in float64. The padded input of a product is a kernel of
// its own before it.
type windowCase struct {
	name, plan string
	kernels    int
	build      func(x, w, dy *tensor.Tensor) *tensor.Tensor
	want       func(x, w, dy []float64) []float64
}

var windowCases = []windowCase{
	{
		name: "forward", kernels: 2, plan: "VECTOR s1 16; STAGE s1; UPCAST s3 14; UNROLL r2 3; UNROLL r1 3; ROLL s3; ROLL s0; FMA",
		build: func(x, w, _ *tensor.Tensor) *tensor.Tensor { return x.Conv(w, nil, same) },
		want: func(x, w, _ []float64) []float64 {
			y := make([]float64, winBatch*winOut*winSize*winSize)
			eachTap(func(out, in, weight int) { y[out] += x[in] * w[weight] })
			return y
		},
	},
	{
		name: "pooled", kernels: 2, plan: "VECTOR s1 16; STAGE s1; UNROLL r0 2; UNROLL r1 2; UPCAST s3 4; UNROLL r4 3; UNROLL r3 3; ROLL s3; FMA",
		build: func(x, w, _ *tensor.Tensor) *tensor.Tensor {
			return x.Conv(w, nil, same).MaxPool([]int{2, 2}, tensor.PoolOptions{})
		},
		want: func(x, w, _ []float64) []float64 {
			y := make([]float64, winBatch*winOut*winSize*winSize)
			eachTap(func(out, in, weight int) { y[out] += x[in] * w[weight] })
			return pooled(y, winBatch*winOut)
		},
	},
	{
		name: "weight gradient", kernels: 4, plan: "STAGE s3; VECTOR s3 16; UPCAST s2 3; UPCAST s1 3; ROLL s0; FMA",
		build: func(x, w, dy *tensor.Tensor) *tensor.Tensor {
			return grad.Of([]*tensor.Tensor{x.Conv(w, nil, same)}, []*tensor.Tensor{dy}, []*tensor.Tensor{w})[0]
		},
		want: func(x, w, dy []float64) []float64 {
			dw := make([]float64, len(w))
			eachTap(func(out, in, weight int) { dw[weight] += dy[out] * x[in] })
			return dw
		},
	},
	{
		name: "pool", kernels: 1, plan: "VECTOR s3 14; UNROLL r0 2; UNROLL r1 2; ROLL s2 2; ROLL s0 2; FMA",
		build: func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.MaxPool([]int{2, 2}, tensor.PoolOptions{}) },
		want:  func(x, _, _ []float64) []float64 { return pooled(x, winBatch*winIn) },
	},
}

var same = tensor.ConvOptions{Padding: []int{1}}

// eachTap visits every product of a convolution of 3 x 3 with padding 1.
func eachTap(visit func(out, in, weight int)) {
	for b := range winBatch {
		for o := range winOut {
			for c := range winIn {
				for i := range winSize {
					for j := range winSize {
						for ki := range 3 {
							for kj := range 3 {
								if y, x := i+ki-1, j+kj-1; y >= 0 && y < winSize && x >= 0 && x < winSize {
									visit(((b*winOut+o)*winSize+i)*winSize+j, ((b*winIn+c)*winSize+y)*winSize+x, ((o*winIn+c)*3+ki)*3+kj)
								}
							}
						}
					}
				}
			}
		}
	}
}

// pooled is the largest of 2 x 2.
func pooled(x []float64, planes int) []float64 {
	const half = winSize / 2
	y := make([]float64, planes*half*half)
	for k := range y {
		at := k/(half*half)*winSize*winSize + k/half%half*2*winSize + k%half*2
		y[k] = max(x[at], x[at+1], x[at+winSize], x[at+winSize+1])
	}
	return y
}

// lastFold is the last kernel that sums.
func lastFold(kernels []*engine.Kernel) *engine.Kernel {
	return lists.Last(kernels, func(k *engine.Kernel) bool { return strings.HasPrefix(k.Name, "reduce") }, nil)
}

// Convolutions, their derivatives and pools have lanes along their results.
func TestWindowKernels(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range windowCases {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			g := tensor.NewGraph()
			shapes := map[string][]int{"x": {winBatch, winIn, winSize, winSize}, "w": {winOut, winIn, 3, 3}, "dy": {winBatch, winOut, winSize, winSize}}
			input := func(name string) *tensor.Tensor { return g.Input(name, ir.F32, shapes[name]...) }
			g.Output("y", c.build(input("x"), input("w"), input("dy")))
			f, err := tensor.Compile(ctx, g, interp.New(interp.Options{Target: desc}), engine.Config{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if kernels := f.Step().Compiled.Kernels; len(kernels) != c.kernels {
				t.Errorf("%d kernels, want %d", len(kernels), c.kernels)
			} else if got := lastFold(kernels).Plan.String(); got != c.plan {
				t.Errorf("plan %s, want %s", got, c.plan)
			}
			values := make(map[string][]float64)
			for name, shape := range shapes {
				drawn := nn.Normal(1).Fill(3, name, shape)
				if err := tensor.Set(ctx, f, name, drawn); err != nil && !strings.Contains(err.Error(), "no buffer") {
					t.Fatal(err)
				}
				for _, v := range drawn {
					values[name] = append(values[name], float64(v))
				}
			}
			if err := f.Run(ctx, nil); err != nil {
				t.Fatal(err)
			}
			got, err := tensor.Get[float32](ctx, f, "y")
			if err != nil {
				t.Fatal(err)
			}
			if err := closeTo(got, c.want(values["x"], values["w"], values["dy"])); err != nil {
				t.Error(err)
			}
		})
	}
}

// convolution is a drawn shape: kernel x kernel windows over size x size.
type convolution struct{ batch, in, out, size, kernel, stride, padding int }

func (c convolution) outSize() int { return (c.size+2*c.padding-c.kernel)/c.stride + 1 }

// eachTap visits every product.
func (c convolution) eachTap(visit func(out, in, weight int)) {
	n := c.outSize()
	for b := range c.batch {
		for o := range c.out {
			for ch := range c.in {
				for at := range n * n * c.kernel * c.kernel {
					kj, ki := at%c.kernel, at/c.kernel%c.kernel
					j, i := at/(c.kernel*c.kernel)%n, at/(c.kernel*c.kernel*n)
					y, x := i*c.stride+ki-c.padding, j*c.stride+kj-c.padding
					if y >= 0 && y < c.size && x >= 0 && x < c.size {
						visit(((b*c.out+o)*n+i)*n+j, ((b*c.in+ch)*c.size+y)*c.size+x, ((o*c.in+ch)*c.kernel+ki)*c.kernel+kj)
					}
				}
			}
		}
	}
}

// Drawn convolutions and their derivatives on CPUs of three widths.
func TestWindowKernelsOfAnyShape(t *testing.T) {
	names := []string{"llvm:x86-64-v4", "llvm:x86-64-v3", "llvm:x86-64"}
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		if tried++; tried > 8 && !testing.Verbose() {
			return
		}
		desc, err := target.Parse(rapid.SampledFrom(names).Draw(t, "target"))
		if err != nil {
			t.Fatal(err)
		}
		c := convolution{
			in: rapid.IntRange(1, 4).Draw(t, "in"), out: rapid.SampledFrom([]int{5, 8, 10, 12, 16, 24}).Draw(t, "out"),
			size: rapid.IntRange(6, 17).Draw(t, "size"), kernel: rapid.IntRange(1, 4).Draw(t, "kernel"),
			stride: rapid.IntRange(1, 2).Draw(t, "stride"), padding: rapid.IntRange(0, 2).Draw(t, "padding"),
		}
		c.batch = 16384/(c.size*c.size*c.in) + 1 // the input is a weight from 64 KB on
		n := c.outSize()
		g := tensor.NewGraph()
		x, w := g.Input("x", ir.F32, c.batch, c.in, c.size, c.size), g.Input("w", ir.F32, c.out, c.in, c.kernel, c.kernel)
		dy := g.Input("dy", ir.F32, c.batch, c.out, n, n)
		y := x.Conv(w, nil, tensor.ConvOptions{Stride: []int{c.stride}, Padding: []int{c.padding}})
		g.Output("y", y)
		for i, d := range grad.Of([]*tensor.Tensor{y}, []*tensor.Tensor{dy}, []*tensor.Tensor{x, w}) {
			g.Output([]string{"dx", "dw"}[i], d)
		}
		ctx := context.Background()
		f, err := tensor.Compile(ctx, g, interp.New(interp.Options{Target: desc}), engine.Config{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		values := make(map[string][]float64)
		for _, b := range f.Buffers() {
			if b.Output {
				continue
			}
			var shape []int
			for _, dim := range b.Shape {
				extent, _ := dim.Int()
				shape = append(shape, int(extent))
			}
			drawn := nn.Normal(1).Fill(3, b.Name, shape)
			if err := tensor.Set(ctx, f, b.Name, drawn); err != nil {
				t.Fatal(err)
			}
			for _, v := range drawn {
				values[b.Name] = append(values[b.Name], float64(v))
			}
		}
		if err := f.Run(ctx, nil); err != nil {
			t.Fatal(err)
		}
		zeros := func(name string) []float64 { return make([]float64, len(values[name])) }
		want := map[string][]float64{"y": zeros("dy"), "dx": zeros("x"), "dw": zeros("w")}
		sizes := map[string][]float64{"y": zeros("dy"), "dx": zeros("x"), "dw": zeros("w")} // sums of absolute terms
		add := func(name string, at int, term float64) {
			want[name][at] += term
			sizes[name][at] += math.Abs(term)
		}
		c.eachTap(func(out, in, weight int) {
			add("y", out, values["x"][in]*values["w"][weight])
			add("dx", in, values["dy"][out]*values["w"][weight])
			add("dw", weight, values["dy"][out]*values["x"][in])
		})
		for name, expected := range want {
			got, err := tensor.Get[float32](ctx, f, name)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range expected {
				if !(math.Abs(float64(got[i])-v) <= 1e-6*sizes[name][i]) {
					t.Fatalf("%+v on %s: %s[%d]: got %v, want %v", c, desc.Name, name, i, got[i], v)
				}
			}
		}
	})
}

func closeTo(got []float32, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	scale := 0.0
	for _, v := range want {
		scale = max(scale, math.Abs(v))
	}
	for i, v := range want {
		if !(math.Abs(float64(got[i])-v) <= 2e-6*scale) {
			return fmt.Errorf("element %d: got %v, want %v", i, got[i], v)
		}
	}
	return nil
}

// Lanes of a CPU are positions where a convolution makes fewer planes than a register has lanes; tiles of matrix instructions
// run along axes that fill them, though others lie further in: heads, which both factors have, and elements of a window.
func TestAxesOfTiles(t *testing.T) {
	type T = tensor.Tensor
	for name, c := range map[string]struct {
		target, plan string
		build        func(g *tensor.Graph) *T
	}{
		"a few planes": {"llvm:x86-64-v4", "VECTOR s2 ", func(g *tensor.Graph) *T {
			return g.Input("x", ir.F32, 1, 64, 56, 56).Conv(g.Input("w", ir.F32, 3, 64, 3, 3), nil, same)
		}},
		"heads within": {"ptx:sm_90", "MMA r0", func(g *tensor.Graph) *T {
			return tensor.Einsum("bhqk,bkhd->bqhd", g.Input("x", ir.F32, 2, 16, 128, 128), g.Input("y", ir.F32, 2, 128, 16, 64))
		}},
		"a window within": {"ptx:sm_90", "MMA r0", func(g *tensor.Graph) *T {
			x, w, dy := g.Input("x", ir.F32, 1, 64, 20, 20), g.Input("w", ir.F32, 64, 64, 3, 3), g.Input("dy", ir.F32, 1, 64, 20, 20)
			return grad.Of([]*T{x.Conv(w, nil, same)}, []*T{dy}, []*T{w})[0]
		}},
	} {
		desc, err := target.Parse(c.target)
		if err != nil {
			t.Fatal(err)
		}
		g := tensor.NewGraph()
		g.Output("y", c.build(g))
		compiled, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		product := slices.IndexFunc(compiled.Kernels, func(k *engine.Kernel) bool { return strings.HasPrefix(k.Why, "matmul") })
		if product < 0 || !strings.Contains(compiled.Kernels[product].Plan.String(), c.plan) {
			t.Errorf("%s: kernels %v, want a product with %s", name, lists.Map(compiled.Kernels, func(k *engine.Kernel) string { return k.Name + ": " + k.Plan.String() }), c.plan)
		}
	}
}
