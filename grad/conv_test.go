package grad_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"tgc/engine"
	"tgc/grad"
	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// convShape is a convolution along one axis beside one whose kernel is 2 elements.
type convShape struct {
	batch, groups, in, out, side, kernel, stride, dilation, padding int // in and out: of a group
}

func (c convShape) positions() int {
	return (c.side+2*c.padding-c.dilation*(c.kernel-1)-1)/c.stride + 1
}

// each visits the products of a convolution.
func (c convShape) each(visit func(out, in, weight int)) {
	n := c.positions()
	for b := range c.batch {
		for o := range c.groups * c.out {
			for i := range c.in {
				for p := range n {
					for k := range c.kernel {
						at := p*c.stride + k*c.dilation - c.padding
						if at < 0 || at >= c.side {
							continue
						}
						for q := range 3 { // of 4 columns by 2
							for l := range 2 {
								channel := o/c.out*c.in + i
								visit(((b*c.groups*c.out+o)*n+p)*3+q, ((b*c.groups*c.in+channel)*c.side+at)*4+q+l, ((o*c.in+i)*c.kernel+k)*2+l)
							}
						}
					}
				}
			}
		}
	}
}

// The derivatives of a convolution by its input and its weights are those of its products, whatever the target, with
// any stride, dilation, padding and number of groups and channels.
func TestConvolutionsAreDerived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
		c := convShape{batch: draw("batch", 1, 2), groups: draw("groups", 1, 2), in: draw("in", 1, 9), out: draw("out", 1, 17),
			kernel: draw("kernel", 1, 4), stride: draw("stride", 1, 3), dilation: draw("dilation", 1, 2), padding: draw("padding", 0, 2)}
		c.side = draw("side", max(c.dilation*(c.kernel-1)+1-2*c.padding, 1), 12)
		desc, err := target.Parse(rapid.SampledFrom([]string{"llvm:x86-64-v4", "ptx:sm_90"}).Draw(t, "target"))
		if err != nil {
			t.Fatal(err)
		}
		g := tensor.NewGraph()
		x, w := g.Input("x", ir.F32, c.batch, c.groups*c.in, c.side, 4), g.Input("w", ir.F32, c.groups*c.out, c.in, c.kernel, 2)
		y := x.Conv(w, nil, tensor.ConvOptions{Stride: []int{c.stride, 1}, Dilation: []int{c.dilation, 1}, Padding: []int{c.padding, 0}, Groups: c.groups})
		dy := g.Input("dy", ir.F32, c.batch, c.groups*c.out, c.positions(), 3)
		for i, d := range grad.Of([]*tensor.Tensor{y}, []*tensor.Tensor{dy}, []*tensor.Tensor{x, w}) {
			g.Output([]string{"dx", "dw"}[i], d)
		}
		ctx := t.Context()
		f, err := tensor.Compile(ctx, g, interp.New(interp.Options{Target: desc}), engine.Config{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		values := make(map[string][]float32)
		for name, shape := range map[string][]int{"x": {c.batch, c.groups * c.in, c.side, 4}, "w": {c.groups * c.out, c.in, c.kernel, 2}, "dy": {c.batch, c.groups * c.out, c.positions(), 3}} {
			values[name] = nn.Normal(1).Fill(5, name, shape)
			if err := tensor.Set(ctx, f, name, values[name]); err != nil && !strings.Contains(err.Error(), "no buffer") { // none where all is padding
				t.Fatal(err)
			}
		}
		if err := f.Run(ctx, nil); err != nil {
			t.Fatal(err)
		}
		want := map[string][]float64{"dx": make([]float64, len(values["x"])), "dw": make([]float64, len(values["w"]))}
		c.each(func(out, in, weight int) {
			want["dx"][in] += float64(values["dy"][out]) * float64(values["w"][weight])
			want["dw"][weight] += float64(values["dy"][out]) * float64(values["x"][in])
		})
		for name, list := range want {
			got, err := tensor.Get[float32](ctx, f, name)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range list {
				if math.Abs(float64(got[i])-v) > 1e-4*(1+math.Abs(v)) {
					t.Fatalf("%s[%d] is %g, want %g", name, i, got[i], v)
				}
			}
		}
	})
}
