package engine_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// A transposed convolution of planes of h x w: input channels, output channels a group.
type upCase struct {
	h, w, in, out, groups          int
	kernel, stride, padding, extra [2]int
}

// Kernels that a stride divides, that it does not, and that are shorter than it.
func TestTransposedConvolutions(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []upCase{
		{7, 5, 4, 3, 1, [2]int{4, 4}, [2]int{2, 2}, [2]int{1, 1}, [2]int{}},
		{7, 5, 4, 16, 1, [2]int{3, 3}, [2]int{2, 2}, [2]int{1, 1}, [2]int{1, 1}},
		{5, 6, 2, 3, 1, [2]int{2, 5}, [2]int{3, 2}, [2]int{0, 2}, [2]int{2, 0}},
		{5, 6, 6, 2, 2, [2]int{5, 3}, [2]int{3, 1}, [2]int{1, 0}, [2]int{0, 0}},
		{1, 3, 1, 1, 1, [2]int{1, 2}, [2]int{2, 4}, [2]int{}, [2]int{}},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			g := tensor.NewGraph()
			x, w := g.Input("x", ir.F32, 1, c.in, c.h, c.w), g.Input("w", ir.F32, c.in, c.out, c.kernel[0], c.kernel[1])
			g.Output("y", x.ConvTranspose(w, nil, tensor.ConvOptions{Stride: c.stride[:], Padding: c.padding[:], OutputPadding: c.extra[:], Groups: c.groups}))
			f, err := tensor.Compile(t.Context(), g, interp.New(interp.Options{Target: desc}), engine.Config{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			values, weights := nn.Normal(1).Fill(1, "x", []int{c.in * c.h * c.w}), nn.Normal(1).Fill(1, "w", []int{c.in * c.out * c.kernel[0] * c.kernel[1]})
			if err := errors.Join(tensor.Set(t.Context(), f, "x", values), tensor.Set(t.Context(), f, "w", weights), f.Run(t.Context(), nil)); err != nil {
				t.Fatal(err)
			}
			got, err := tensor.Get[float32](t.Context(), f, "y")
			if err != nil {
				t.Fatal(err)
			}
			want := c.scattered(values, weights)
			if len(got) != len(want) {
				t.Fatalf("%d elements, want %d", len(got), len(want))
			}
			for i := range want {
				if math.Abs(float64(got[i])-want[i]) > 1e-5*(1+math.Abs(want[i])) {
					t.Fatalf("element %d is %g, want %g", i, got[i], want[i])
				}
			}
		})
	}
}

// scattered adds the kernel, times each element of the input, where it belongs.
func (c upCase) scattered(x, w []float32) []float64 {
	extent := func(n, i int) int { return (n-1)*c.stride[i] - 2*c.padding[i] + c.kernel[i] + c.extra[i] }
	height, width := extent(c.h, 0), extent(c.w, 1)
	y := make([]float64, c.groups*c.out*height*width)
	for at, v := range x {
		channel, row, column := at/(c.h*c.w), at/c.w%c.h, at%c.w
		for k := range c.out * c.kernel[0] * c.kernel[1] {
			out, i, j := k/(c.kernel[0]*c.kernel[1]), k/c.kernel[1]%c.kernel[0], k%c.kernel[1]
			i, j = row*c.stride[0]+i-c.padding[0], column*c.stride[1]+j-c.padding[1]
			if i < 0 || i >= height || j < 0 || j >= width {
				continue
			}
			out += channel / (c.in / c.groups) * c.out
			y[(out*height+i)*width+j] += float64(v) * float64(w[channel*c.out*c.kernel[0]*c.kernel[1]+k])
		}
	}
	return y
}
