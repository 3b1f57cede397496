package tensor_test

import (
	"slices"
	"testing"

	"tgc/grad"
	"tgc/tensor"
)

// Tensors without elements go through every kind of op, and what is folded over
// none of them is the fold's identity.
func TestEmptyTensors(t *testing.T) {
	type T = tensor.Tensor
	for name, c := range map[string]struct {
		build func(g *tensor.Graph, x *T) *T // x is f32[2 0 3]
		shape []int
		want  []float32
	}{
		"cut": {func(_ *tensor.Graph, x *T) *T { return x.Cut(tensor.Whole().By(-1), tensor.Whole().By(2)) }, []int{2, 0, 3}, nil},
		"pad": {func(_ *tensor.Graph, x *T) *T {
			return x.Cut(tensor.Until(1)).PadAll([][2]int{{}, {1, 0}, {}}, tensor.PadOptions{Value: 2})
		}, []int{1, 1, 3}, []float32{2, 2, 2}},
		"roll":           {func(_ *tensor.Graph, x *T) *T { return x.Roll([]int{1, 1}, []int{1, 2}) }, []int{2, 0, 3}, nil},
		"repeat":         {func(_ *tensor.Graph, x *T) *T { return x.Repeat(2, 3, 0) }, []int{4, 0, 0}, nil},
		"stack":          {func(_ *tensor.Graph, x *T) *T { return x.Stack(1, x) }, []int{2, 2, 0, 3}, nil},
		"chunk":          {func(_ *tensor.Graph, x *T) *T { return x.Chunk(1, 2)[1] }, []int{2, 0, 3}, nil},
		"diagonal":       {func(_ *tensor.Graph, x *T) *T { return x.Diagonal(0, 0, 1) }, []int{3, 0}, nil},
		"sort":           {func(_ *tensor.Graph, x *T) *T { v, _ := x.Sort(2, true); return v }, []int{2, 0, 3}, nil},
		"running":        {func(_ *tensor.Graph, x *T) *T { return x.LogCumSumExp(1).Add(x.Cumprod(1)) }, []int{2, 0, 3}, nil},
		"running beside": {func(_ *tensor.Graph, x *T) *T { return x.LogCumSumExp(2).Add(x.Cumprod(2)) }, []int{2, 0, 3}, nil},
		"of running": {func(_ *tensor.Graph, x *T) *T {
			largest, _ := x.Cummax(1)
			least, _ := x.Cummin(2)
			return grad.Gradients(x.Cumprod(1).Add(x.Cumprod(2)).Add(x.LogCumSumExp(2)).Add(largest).Add(least).Sum(), x)[0]
		}, []int{2, 0, 3}, nil},
		"sort none":         {func(_ *tensor.Graph, x *T) *T { v, _ := x.Sort(1, true); return v }, []int{2, 0, 3}, nil},
		"topk":              {func(_ *tensor.Graph, x *T) *T { v, _ := x.TopK(2, 2, true); return v }, []int{2, 0, 2}, nil},
		"topk of none":      {func(_ *tensor.Graph, x *T) *T { v, _ := x.Pad(1, 0, 1).TopK(0, 1, true); return v }, []int{2, 0, 3}, nil},
		"reshape":           {func(_ *tensor.Graph, x *T) *T { return x.Reshape(0, 0) }, []int{0, 0}, nil},
		"repeat interleave": {func(_ *tensor.Graph, x *T) *T { return x.RepeatInterleave(0, 2) }, []int{4, 0, 3}, nil},
		"gather":            {func(g *tensor.Graph, x *T) *T { return x.GatherElements(2, tensor.FromSlice[int32](g, nil, 2, 0, 1)) }, []int{2, 0, 1}, nil},
		"scatter": {func(g *tensor.Graph, _ *T) *T {
			y := tensor.FromSlice(g, []float32{5, 6}, 2)
			return y.ScatterElements(0, tensor.FromSlice[int32](g, nil, 0), tensor.FromSlice[float32](g, nil, 0))
		}, []int{2}, []float32{5, 6}},
		"scatter add": {func(g *tensor.Graph, _ *T) *T {
			y := tensor.FromSlice(g, []float32{5, 6}, 2)
			return y.ScatterElementsAdd(0, tensor.FromSlice[int32](g, nil, 0), tensor.FromSlice[float32](g, nil, 0))
		}, []int{2}, []float32{5, 6}},
		"matmul":     {func(_ *tensor.Graph, x *T) *T { return x.Transpose(1, 2).MatMul(x) }, []int{2, 3, 3}, make([]float32, 18)},
		"einsum":     {func(_ *tensor.Graph, x *T) *T { return tensor.Einsum("bij,bij->b", x, x) }, []int{2}, []float32{0, 0}},
		"layer norm": {func(_ *tensor.Graph, x *T) *T { return x.LayerNorm(1, nil, nil, 1e-5) }, []int{2, 0, 3}, nil},
		"convolution": {func(g *tensor.Graph, x *T) *T {
			return x.Permute(1, 0, 2).Conv(tensor.FromSlice(g, make([]float32, 16), 4, 2, 2), nil, tensor.ConvOptions{})
		}, []int{0, 4, 2}, nil},
		"pool":      {func(_ *tensor.Graph, x *T) *T { return x.MaxPool([]int{2}, tensor.PoolOptions{}) }, []int{2, 0, 1}, nil},
		"resize":    {func(_ *tensor.Graph, x *T) *T { return x.Interpolate(tensor.Linear, 5) }, []int{2, 0, 5}, nil},
		"attention": {func(_ *tensor.Graph, x *T) *T { return x.Attention(x, x, tensor.AttentionOptions{Causal: true}) }, []int{2, 0, 3}, nil},
		"rotary":    {func(_ *tensor.Graph, x *T) *T { return x.Rotary(tensor.RotaryOptions{Dims: 2}) }, []int{2, 0, 3}, nil},
		"mean loss": {func(_ *tensor.Graph, x *T) *T { return x.MSELoss(x, tensor.ReduceSum) }, []int{}, []float32{0}},
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			y := c.build(g, tensor.FromSlice[float32](g, nil, 2, 0, 3))
			if err := y.Realize(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := extents(y); !slices.Equal(got, c.shape) {
				t.Fatalf("shape %v, want %v", got, c.shape)
			}
			if got, err := tensor.Data[float32](y); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}
