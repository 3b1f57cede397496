package layer_test

import (
	"fmt"

	"tgc/nn"
	"tgc/nn/layer"
	"tgc/tensor"
)

// A layer made by its constructor registers its weights; one made as a literal takes
// tensors that there are.
func ExampleLinear() {
	g := tensor.NewGraph()
	p := nn.NewParameters(g)
	layer.NewLinear(p.In("out"), 784, 10)
	for _, v := range p.All() {
		fmt.Println(v.Name, v.Tensor)
	}
	twice := &layer.Linear{Weight: tensor.FromSlice(g, []float32{2, 0, 0, 2}, 2, 2)}
	fmt.Println(tensor.Data[float32](twice.Forward(tensor.FromSlice(g, []float32{1, 3}, 1, 2))))
	// Output:
	// out.weight f32[10 784]
	// out.bias f32[10]
	// [2 6] <nil>
}
