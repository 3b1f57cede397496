package tensor_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/tensor"
)

// Shapes that do not fit are an error at the call, which names the op, both
// operands with their shapes, and the line.
func TestShapeErrors(t *testing.T) {
	type T = tensor.Tensor
	type G = tensor.Graph
	f := func(g *G, shape ...int) *T { return g.Input("f", ir.F32, shape...) }
	n := func(g *G, shape ...int) *T { return g.Input("n", ir.I64, shape...) }
	for name, c := range map[string]struct {
		build func(g *G, x *T) *T // x is f32[2 3 4]
		want  string
	}{
		"reshape":     {func(_ *G, x *T) *T { return x.Reshape(5, 5) }, "reshape: f32[2 3 4] to [5 5]"},
		"flatten":     {func(_ *G, x *T) *T { return x.Flatten(2, 1) }, "flatten: axes 2 to 1 of f32[2 3 4]"},
		"unflatten":   {func(_ *G, x *T) *T { return x.Unflatten(2, 3, -1) }, "unflatten: axis 2 of f32[2 3 4] into [3 -1]"},
		"expand":      {func(_ *G, x *T) *T { return x.Expand(2, 3, 5) }, "expand: f32[2 3 4] to [2 3 5]"},
		"expand hole": {func(_ *G, x *T) *T { return x.Expand(-1, 2, 3, 4) }, "expand: f32[2 3 4] to [-1 2 3 4]"},
		"squeeze":     {func(_ *G, x *T) *T { return x.Squeeze(3) }, "squeeze: axis 3 of f32[2 3 4]"},
		"pad":         {func(_ *G, x *T) *T { return x.PadAll([][2]int{{1, 1}}, tensor.PadOptions{}) }, "pad: f32[2 3 4] by [[1 1]]"},
		"pad crop":    {func(_ *G, x *T) *T { return x.PadAll([][2]int{{-1, -2}, {}, {}}, tensor.PadOptions{}) }, "crops more than axis 0 has"},
		"pad reflect": {func(_ *G, x *T) *T {
			return x.PadAll([][2]int{{}, {}, {4, 0}}, tensor.PadOptions{Mode: tensor.PadReflect})
		}, "pad: f32[2 3 4] by 4 and 0 on axis 2, mode reflect"},
		"pad circular": {func(_ *G, x *T) *T {
			return x.PadAll([][2]int{{3, 0}, {}, {}}, tensor.PadOptions{Mode: tensor.PadCircular})
		}, "on axis 0, mode circular"},
		"cut":                  {func(_ *G, x *T) *T { return x.Cut(tensor.Whole(), tensor.Whole(), tensor.Whole(), tensor.From(1)) }, "cut: 4 spans of f32[2 3 4]"},
		"stack":                {func(g *G, x *T) *T { return x.Stack(0, f(g, 2, 3)) }, "stack: f32[2 3] beside f32[2 3 4]"},
		"cat":                  {func(g *G, x *T) *T { return x.Cat(0, f(g, 2, 3, 5)) }, "cat: f32[2 3 5] beside f32[2 3 4] along axis 0"},
		"split":                {func(_ *G, x *T) *T { return x.Split(2, 3, 2)[0] }, "split: axis 2 of f32[2 3 4] into [3 2]"},
		"chunk":                {func(_ *G, x *T) *T { return x.Chunk(3, 2)[0] }, "chunk: axis 3 of f32[2 3 4] into 2"},
		"repeat":               {func(_ *G, x *T) *T { return x.Repeat(-1) }, "repeat: f32[2 3 4] by [-1]"},
		"roll":                 {func(_ *G, x *T) *T { return x.Roll([]int{1, 2}, []int{0}) }, "roll: f32[2 3 4] by [1 2] along [0]"},
		"move axis":            {func(_ *G, x *T) *T { return x.MoveAxis(0, 3) }, "move_axis: axis 0 of f32[2 3 4] to 3"},
		"tril":                 {func(g *G, _ *T) *T { return f(g, 3).Tril(0) }, "tril: f32[3], want a matrix"},
		"diagonal":             {func(_ *G, x *T) *T { return x.Diagonal(0, 1, -2) }, "diagonal: axes 1 and -2 of f32[2 3 4]"},
		"diag":                 {func(_ *G, x *T) *T { return x.Diag() }, "diag: f32[2 3 4], want a vector"},
		"unfold":               {func(_ *G, x *T) *T { return x.Unfold(2, 5, 1) }, "unfold: axis 2 of f32[2 3 4] into windows of 5, step 1"},
		"gather":               {func(g *G, x *T) *T { return x.GatherElements(0, n(g, 2, 3)) }, "gather_elements: f32[2 3 4] along axis 0 at i64[2 3]"},
		"gather long":          {func(g *G, x *T) *T { return x.GatherElements(0, n(g, 9, 3, 5)) }, "axis 2 of the index is longer"},
		"take along":           {func(g *G, x *T) *T { return x.TakeAlong(0, n(g, 9, 3, 5)) }, "take_along: shapes of f32[2 3 4] and i64[9 3 5] do not broadcast off axis 0"},
		"gather nd":            {func(g *G, x *T) *T { return x.GatherND(n(g, 2), n(g, 3)) }, "gather_nd: coordinate 1 of f32[2 3 4] is i64[3]; want integers that broadcast to [2]"},
		"one hot":              {func(_ *G, x *T) *T { return x.OneHot(3, ir.I64) }, "one_hot: f32[2 3 4] with 3 classes; want integers"},
		"masked fill":          {func(g *G, x *T) *T { return x.MaskedFill(g.Input("m", ir.Bool, 3), 0) }, "where: shapes of bool[3], f32[] and f32[2 3 4] do not broadcast"},
		"scatter":              {func(g *G, x *T) *T { return x.ScatterElements(0, n(g, 1, 3, 4), f(g, 3, 4)) }, "scatter: f32[2 3 4] at i64[1 3 4] along axis 0 from f32[3 4]"},
		"scatter long":         {func(g *G, x *T) *T { return x.ScatterElementsAdd(0, n(g, 1, 3, 5), f(g, 1, 3, 5)) }, "scatter_reduce: index i64[1 3 5] is longer on axis 2 than f32[2 3 4]"},
		"index add":            {func(g *G, x *T) *T { return x.IndexAdd(1, n(g, 5), f(g, 2, 5, 3)) }, "index_add: values f32[2 5 3], want [2 5 4] for f32[2 3 4] along axis 1"},
		"sort":                 {func(_ *G, x *T) *T { v, _ := x.Sort(3, false); return v }, "sort: axis 3 of f32[2 3 4]"},
		"topk":                 {func(_ *G, x *T) *T { v, _ := x.TopK(5, 2, true); return v }, "topk: 5 of axis 2 of f32[2 3 4]"},
		"matmul":               {func(g *G, x *T) *T { return x.MatMul(f(g, 3, 5)) }, "matmul: f32[2 3 4] times f32[3 5]"},
		"matmul scalar":        {func(g *G, x *T) *T { return x.MatMul(f(g)) }, "matmul: f32[2 3 4] times f32[]"},
		"matmul batch":         {func(g *G, x *T) *T { return x.MatMul(f(g, 5, 4, 6)) }, "do not broadcast"},
		"matmul dtypes":        {func(g *G, x *T) *T { return x.MatMul(n(g, 4, 5)) }, "matmul: dtypes differ"},
		"linear":               {func(g *G, x *T) *T { return x.Linear(f(g, 5, 3)) }, "linear: input f32[2 3 4], weight f32[5 3]"},
		"einsum rank":          {func(_ *G, x *T) *T { return tensor.Einsum("ij->i", x) }, `einsum: "ij->i": term ij does not fit f32[2 3 4]`},
		"einsum result":        {func(_ *G, x *T) *T { return tensor.Einsum("ijk->im", x) }, "the result im does not fit the operands"},
		"einsum extent":        {func(g *G, x *T) *T { return tensor.Einsum("ijk,kl->ijl", x, f(g, 5, 2)) }, "do not broadcast"},
		"einsum letter":        {func(_ *G, x *T) *T { return tensor.Einsum("iik->k", x) }, "f32[2 3 4] has one letter for axes 0 and 1"},
		"rms norm":             {func(g *G, x *T) *T { return x.RMSNorm(f(g, 3), 1e-5) }, "rms_norm: f32[2 3 4] with weight f32[3]"},
		"layer norm":           {func(g *G, x *T) *T { return x.LayerNorm(2, f(g, 4), nil, 1e-5) }, "layer_norm: f32[2 3 4] over the last 2 axes with weight f32[4]"},
		"batch norm":           {func(g *G, x *T) *T { return x.BatchNorm(f(g, 4), f(g, 3), nil, nil, 1e-5) }, "batch_norm: f32[2 3 4] with f32[4] for its channels"},
		"group norm":           {func(_ *G, x *T) *T { return x.GroupNorm(2, nil, nil, 1e-5) }, "group_norm: f32[2 3 4] in 2 groups"},
		"conv":                 {func(g *G, x *T) *T { return x.Conv(f(g, 5, 2, 3), nil, tensor.ConvOptions{}) }, "conv: input f32[2 3 4], weight f32[5 2 3], 1 groups"},
		"conv options":         {func(g *G, x *T) *T { return x.Conv(f(g, 5, 3, 3), nil, tensor.ConvOptions{Stride: []int{0}}) }, "strides and dilations at least 1"},
		"conv bias":            {func(g *G, x *T) *T { return x.Conv(f(g, 5, 3, 2), f(g, 1), tensor.ConvOptions{}) }, "bias f32[1]; want a number for each of 5 outputs"},
		"transposed conv bias": {func(g *G, x *T) *T { return x.ConvTranspose(f(g, 3, 5, 2), f(g, 3), tensor.ConvOptions{}) }, "want a number for each of 5 outputs"},
		"transposed conv of nothing": {func(g *G, x *T) *T {
			return x.ConvTranspose(f(g, 3, 5, 2), nil, tensor.ConvOptions{Padding: []int{3}})
		}, "axis 2 of the result would have -1 elements"},
		"ctc lengths":      {func(g *G, x *T) *T { return x.CTCLoss(n(g, 3, 1), n(g, 4), n(g, 3)) }, "want an integer for each of 3"},
		"cast to nothing":  {func(_ *G, x *T) *T { return x.Cast(ir.Void) }, "Cast: f32[2 3 4] to void"},
		"cast to an index": {func(_ *G, x *T) *T { return x.Cast(ir.Idx) }, "Cast: f32[2 3 4] to idx"},
		"complex parts":    {func(g *G, x *T) *T { return tensor.Complex{Real: x, Imag: f(g, 2, 3, 5)}.FFT(0).Real }, "imaginary part f32[2 3 5]; want one shape"},
		"probability":      {func(g *G, _ *T) *T { return g.Random(1).Bernoulli(1.5, 3) }, "Bernoulli: probability 1.5; want 0 to 1"},
		"deviation":        {func(g *G, _ *T) *T { return g.Random(1).Normal(0, -1, 3) }, "Normal: deviation -1; want at least 0"},
		"no derivative":    {func(_ *G, x *T) *T { return x.WithGradient([]*T{x}, nil) }, "WithGradient: the function that says the derivative of f32[2 3 4] is nil"},
		"loop of nothing":  {func(_ *G, x *T) *T { return tensor.Loop(2, nil, x)[0] }, "Loop: the step is nil"},
		"loop that loses":  {func(_ *G, x *T) *T { return tensor.Loop(2, func([]*T) []*T { return nil }, x)[0] }, "Loop: step 0 returns 0 tensors; want 1"},
		"loop backward":    {func(_ *G, x *T) *T { return tensor.Loop(-1, func(s []*T) []*T { return s }, x)[0] }, "Loop: -1 times; want at least 0"},
		"conv kernel":      {func(g *G, x *T) *T { return x.Conv(f(g, 5, 3, 9), nil, tensor.ConvOptions{}) }, "the kernel is larger than the input"},
		"transposed":       {func(g *G, x *T) *T { return x.ConvTranspose(f(g, 2, 3, 3), nil, tensor.ConvOptions{}) }, "conv_transpose: input f32[2 3 4], weight f32[2 3 3]"},
		"max pool":         {func(_ *G, x *T) *T { return x.MaxPool([]int{5}, tensor.PoolOptions{}) }, "max_pool: f32[2 3 4], kernel [5]"},
		"avg pool":         {func(_ *G, x *T) *T { return x.AvgPool([]int{2}, tensor.PoolOptions{Padding: []int{2}}) }, "want padding of at most half the kernel"},
		"interpolate":      {func(_ *G, x *T) *T { return x.Interpolate(tensor.Nearest, 3, 3) }, "interpolate: f32[2 3 4] to [3 3]"},
		"glu":              {func(_ *G, x *T) *T { return x.Glu(1) }, "glu: axis 1 of f32[2 3 4], want an even extent"},
		"shuffle":          {func(_ *G, x *T) *T { return x.PixelShuffle(2) }, "pixel_shuffle: f32[2 3 4] by 2"},
		"cross entropy":    {func(g *G, x *T) *T { return x.CrossEntropy(n(g, 2, 3), tensor.CrossEntropyOptions{}) }, "cross_entropy: scores f32[2 3 4], target i64[2 3]"},
		"probabilities":    {func(g *G, x *T) *T { return x.CrossEntropy(f(g, 2, 3), tensor.CrossEntropyOptions{}) }, "cross_entropy: logits f32[2 3 4], target f32[2 3]"},
		"nll":              {func(g *G, x *T) *T { return x.NLLLoss(n(g, 2), tensor.CrossEntropyOptions{}) }, "nll_loss: scores f32[2 3 4], target i64[2]"},
		"mse":              {func(g *G, x *T) *T { return x.MSELoss(f(g, 3, 4), tensor.ReduceMean) }, "mse_loss: f32[2 3 4] and f32[3 4], want floats of one shape"},
		"attention":        {func(g *G, x *T) *T { return x.Attention(f(g, 2, 5, 3), f(g, 2, 5, 3), tensor.AttentionOptions{}) }, "attention: queries f32[2 3 4], keys f32[2 5 3], values f32[2 5 3]"},
		"grouped": {func(g *G, x *T) *T {
			return x.Attention(f(g, 3, 5, 4), f(g, 3, 5, 4), tensor.AttentionOptions{Grouped: true})
		}, "query heads are no multiple of key heads"},
		"rotary":       {func(_ *G, x *T) *T { return x.Rotary(tensor.RotaryOptions{Dims: 6}) }, "rotary: 6 elements of f32[2 3 4]"},
		"rotate pairs": {func(g *G, x *T) *T { return x.RotatePairs(f(g, 3), f(g, 3), tensor.PairHalves) }, "rotate_pairs: f32[2 3 4] by cosines f32[3]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			y := c.build(g, g.Input("x", ir.F32, 2, 3, 4))
			err := g.Err()
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "shape_errors_test.go:") {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if y.Node() != nil {
				t.Errorf("the result is %s, want a bad tensor", y)
			}
		})
	}
}
