package train_test

import (
	"context"
	"fmt"

	"tgc/ir"
	"tgc/nn"
	"tgc/nn/layer"
	"tgc/nn/optim"
	"tgc/nn/train"
	"tgc/runtime/devices"
	"tgc/tensor"
)

// A line through points: forward pass, backward pass and update are one compiled step.
func ExampleNew() {
	ctx := context.Background()
	dev, err := devices.Default()
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := train.New(ctx, dev, train.Options{Optimizer: optim.NewAdam(), Rate: optim.Constant(0.1)},
		func(p *nn.Parameters) *tensor.Tensor {
			x, y := p.Graph().Input("x", ir.F32, 4, 1), p.Graph().Input("y", ir.F32, 4, 1)
			return layer.NewLinear(p, 1, 1).Forward(x).MSELoss(y)
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	points := map[string][]float32{"x": {0, 1, 2, 3}, "y": {1, 3, 5, 7}} // y = 2x + 1
	for name, values := range points {
		if err := tensor.Set(ctx, t.Function(), name, values); err != nil {
			fmt.Println(err)
			return
		}
	}
	for range 300 {
		if err := t.Step(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	w, err := tensor.Get[float32](ctx, t.Function(), "weight")
	report, err2 := t.Report(ctx)
	fmt.Printf("%d steps, weight %.2f, loss below 1e-4: %v, %v %v\n", report.Steps, w, report.Loss < 1e-4, err, err2)
	// Output: 300 steps, weight [2.00], loss below 1e-4: true, <nil> <nil>
}
