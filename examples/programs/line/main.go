// Line learns y = 2x + 1 in a loop of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"tgc/ir"
	"tgc/nn"
	"tgc/nn/layer"
	"tgc/nn/optim"
	"tgc/nn/train"
	"tgc/runtime/devices"
	"tgc/tensor"
)

func main() {
	ctx := context.Background()
	dev, err := devices.Default()
	if err != nil {
		log.Fatal(err)
	}
	t, err := train.New(ctx, dev, train.Options{Optimizer: optim.NewAdam(), Rate: optim.Constant(0.1)}, func(p *nn.Parameters) *tensor.Tensor {
		x, y := p.Graph().Input("x", ir.F32, 4, 1), p.Graph().Input("y", ir.F32, 4, 1)
		return layer.NewLinear(p, 1, 1).Forward(x).MSELoss(y)
	})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	err = errors.Join(tensor.Set(ctx, t.Function(), "x", []float32{0, 1, 2, 3}), tensor.Set(ctx, t.Function(), "y", []float32{1, 3, 5, 7}))
	for i := 0; i < 300 && err == nil; i++ {
		err = t.Step(ctx)
	}
	report, e := t.Report(ctx)
	fmt.Println(report.Loss < 1e-3, errors.Join(err, e))
}

// Output:
// true <nil>
