package tensor_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/target"
	"tgc/tensor"
)

// pairStep combines each element with its partner along an axis of two: the first of the two in one
// way, the second in another.
type pairStep struct{ axis, first, second int }

// pairWays are how an element and its partner are combined.
var pairWays = []struct {
	tensors func(x, y *tensor.Tensor) *tensor.Tensor
	numbers func(x, y int32) int32
}{
	{(*tensor.Tensor).Minimum, func(x, y int32) int32 { return min(x, y) }},
	{(*tensor.Tensor).Maximum, func(x, y int32) int32 { return max(x, y) }},
	{(*tensor.Tensor).Add, func(x, y int32) int32 { return x + y }},
	{(*tensor.Tensor).Sub, func(x, y int32) int32 { return x - y }},
	{func(x, y *tensor.Tensor) *tensor.Tensor { return x.Not() }, func(x, y int32) int32 { return ^x }},
}

// of is the step of a tensor that has the axis of two in the middle.
func (s pairStep) of(x *tensor.Tensor) *tensor.Tensor {
	y, g := x.Flip(s.axis), x.Graph()
	shape := slices.Repeat([]int{1}, x.Rank())
	shape[s.axis] = 2
	isFirst := g.Iota(ir.I32, x.Dim(s.axis)).Reshape(shape...).Eq(g.Scalar(ir.I32, 0))
	return isFirst.Where(pairWays[s.first].tensors(x, y), pairWays[s.second].tensors(x, y))
}

// numbers is the step of elements of which partners lie so far apart.
func (s pairStep) numbers(x []int32, apart int) []int32 {
	out := make([]int32, len(x))
	for i := range x {
		y, way := x[i^apart], s.second
		if i&apart == 0 {
			way = s.first
		}
		out[i] = pairWays[way].numbers(x[i], y)
	}
	return out
}

// Steps between partners are what they are, however many there are and whatever else the tensor has for axes.
func TestPairs(t *testing.T) {
	everyDevice(t, func(t *testing.T, dev runtime.Device) {
		rapid.Check(t, func(r *rapid.T) {
			digits := rapid.IntRange(1, 10).Draw(r, "digits")
			inner := 1 << rapid.IntRange(0, 5).Draw(r, "inner")
			x := make([]int32, inner<<digits)
			for i := range x {
				x[i] = int32(i * 40503 % 65537)
			}
			g := tensor.NewGraph().On(dev)
			y := tensor.FromSlice(g, x, slices.Concat([]int{1}, slices.Repeat([]int{2}, digits), []int{inner})...)
			for range rapid.IntRange(1, 12).Draw(r, "steps") {
				s := pairStep{rapid.IntRange(1, digits).Draw(r, "axis"), rapid.IntRange(0, len(pairWays)-1).Draw(r, "first"), rapid.IntRange(0, len(pairWays)-1).Draw(r, "second")}
				y, x = s.of(y), s.numbers(x, inner<<(digits-s.axis))
			}
			if rapid.Bool().Draw(r, "summed") {
				y = y.Sum(y.Rank() - 1)
				sums := make([]int32, len(x)/inner)
				for i, v := range x {
					sums[i/inner] += v
				}
				x = sums
			}
			if err := y.Realize(r.Context()); err != nil {
				r.Fatal(err)
			}
			got, err := tensor.Data[int32](y)
			if err != nil || !slices.Equal(got, x) {
				r.Fatalf("got %v, want %v: %v", got, x, err)
			}
		})
	})
}

// All steps along the digits of a tile are one kernel, in which each element is read once and each step is
// made once for each: min and max of the pair.
func TestPairsOfATileAreMadeOnce(t *testing.T) {
	for _, name := range []string{"llvm:x86-64-v4", "ptx:sm_90"} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		const digits, rounds = 4, 3
		g := tensor.NewGraph()
		x := g.Input("x", ir.I32, 8, 2, 2, 2, 2, 64)
		for k := range rounds * digits {
			x = pairStep{1 + k%digits, 0, 1}.of(x)
		}
		g.Output("y", x)
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Kernels) != 1 {
			t.Fatalf("%s: %d kernels, want 1", name, len(c.Kernels))
		}
		count := make(map[ir.Op]int)
		for _, u := range ir.Toposort(c.Kernels[0].AST) {
			count[u.Op]++
		}
		const tile = 1 << digits
		if count[ir.OpLoad] != tile || count[ir.OpMin]+count[ir.OpMax] != rounds*digits*tile {
			t.Errorf("%s: %d loads, %d minima and %d maxima", name, count[ir.OpLoad], count[ir.OpMin], count[ir.OpMax])
		}
	}
}
