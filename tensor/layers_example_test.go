package tensor_test

import (
	"context"
	"fmt"

	"tgc/tensor"
)

// print realises a tensor and prints its shape and values.
func printFloats(t *tensor.Tensor) {
	if err := t.Realize(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	v, err := tensor.Data[float32](t)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t, v)
}

// counting is 0, 1, 2, .. in a shape.
func counting(g *tensor.Graph, shape ...int) *tensor.Tensor {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i)
	}
	return tensor.FromSlice(g, values, shape...)
}

// Spans are Python's slices: a step may be negative.
func ExampleTensor_Cut() {
	g := tensor.NewGraph()
	x := counting(g, 3, 4)
	printFloats(x.Cut(tensor.From(1), tensor.Whole().By(-2)))
	// Output: f32[2 2] [7 5 11 9]
}

func ExampleTensor_PadAll() {
	g := tensor.NewGraph()
	x := counting(g, 4)
	printFloats(x.PadAll([][2]int{{2, 1}}, tensor.PadOptions{Value: 9}))
	printFloats(x.PadAll([][2]int{{2, 1}}, tensor.PadOptions{Mode: tensor.PadReflect}))
	// Output:
	// f32[7] [9 9 0 1 2 3 9]
	// f32[7] [2 1 0 1 2 3 2]
}

// Windows overlap without being copied.
func ExampleTensor_Unfold() {
	g := tensor.NewGraph()
	printFloats(counting(g, 5).Unfold(0, 3, 1))
	printFloats(counting(g, 5).Unfold(0, 3, 1).Mean(-1)) // a moving average
	// Output:
	// f32[3 3] [0 1 2 1 2 3 2 3 4]
	// f32[3] [1 2 3]
}

func ExampleTensor_GatherElements() {
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, []float32{10, 11, 12, 20, 21, 22}, 2, 3)
	index := tensor.FromSlice(g, []int32{2, 0, 1, 1}, 2, 2)
	printFloats(x.GatherElements(1, index))
	// Output: f32[2 2] [12 10 21 21]
}

func ExampleTensor_ScatterElementsAdd() {
	g := tensor.NewGraph()
	bins := tensor.FromSlice(g, []int32{0, 2, 2, 1, 2}, 5)
	ones := tensor.FromSlice(g, []float32{1, 1, 1, 1, 1}, 5)
	printFloats(tensor.FromSlice(g, []float32{0, 0, 0}, 3).ScatterElementsAdd(0, bins, ones)) // a histogram
	// Output: f32[3] [1 1 3]
}

func ExampleTensor_TopK() {
	g := tensor.NewGraph()
	values, indices := tensor.FromSlice(g, []float32{3, 9, 4, 9}, 4).TopK(3, 0, true)
	if err := tensor.Realize(context.Background(), values, indices); err != nil {
		fmt.Println(err)
		return
	}
	v, _ := tensor.Data[float32](values)
	i, err := tensor.Data[int32](indices)
	fmt.Println(v, i, err)
	// Output: [9 9 4] [1 3 2] <nil>
}

// Letters name axes; those that the result does not name are summed.
func ExampleEinsum() {
	g := tensor.NewGraph()
	x := counting(g, 2, 2)
	printFloats(tensor.Einsum("ij,jk->ik", x, x)) // the matrix product
	printFloats(tensor.Einsum("ii->", x))         // the trace
	// Output:
	// f32[2 2] [2 3 6 11]
	// f32[] [3]
}

func ExampleTensor_Conv() {
	g := tensor.NewGraph()
	image := counting(g, 1, 1, 3, 3)
	edge := tensor.FromSlice(g, []float32{-1, 1}, 1, 1, 1, 2)
	printFloats(image.Conv(edge, nil, tensor.ConvOptions{Stride: []int{2, 1}}))
	// Output: f32[1 1 2 2] [1 1 1 1]
}

func ExampleTensor_MaxPool() {
	g := tensor.NewGraph()
	printFloats(counting(g, 1, 1, 4, 4).MaxPool([]int{2, 2}, tensor.PoolOptions{}))
	// Output: f32[1 1 2 2] [5 7 13 15]
}

// One query looks up the value of the key that it is most like.
func ExampleTensor_Attention() {
	g := tensor.NewGraph()
	query := tensor.FromSlice(g, []float32{0, 20}, 1, 2)
	keys := tensor.FromSlice(g, []float32{20, 0, 0, 20}, 2, 2)
	values := tensor.FromSlice(g, []float32{1, 2, 3, 4}, 2, 2)
	printFloats(query.Attention(keys, values, tensor.AttentionOptions{}))
	// Output: f32[1 2] [3 4]
}

func ExampleTensor_CrossEntropy() {
	g := tensor.NewGraph()
	logits := tensor.FromSlice(g, []float32{0, 0, 0, 0}, 2, 2)
	classes := tensor.FromSlice(g, []int32{1, 0}, 2)
	printFloats(logits.CrossEntropy(classes, tensor.CrossEntropyOptions{})) // log 2
	// Output: f32[] [0.6931472]
}
