// Clouds learns to tell four clouds of points apart, with validation and early stop.
package main

import (
	"context"
	"fmt"
	"log"

	"tgc/nn"
	"tgc/nn/data"
	"tgc/nn/layer"
	"tgc/nn/optim"
	"tgc/nn/train"
)

func main() {
	x, y := nn.Normal(0.1).Fill(1, "x", []int{400, 2}), make([]int32, 400)
	for i := range y {
		y[i] = int32(i % 4)
		x[2*i] += float32(y[i] % 2)
		x[2*i+1] += float32(y[i] / 2)
	}
	learned, unseen := data.Split(data.Table{data.Of("x", x, 2), data.Of("y", y)}, 0.8, 1)
	run, err := train.Fit(context.Background(), train.FitOptions{
		Options: train.Options{Optimizer: optim.NewAdamW(0.01), Rate: optim.Constant(0.02)},
		Data:    data.NewLoader(learned, data.Options{Batch: 32, Shuffle: true}),
		Valid:   data.NewLoader(unseen, data.Options{Batch: 40}),
		Epochs:  20, Patience: 10,
	}, func(p *nn.Parameters, in train.Inputs) train.Outputs {
		h := layer.NewPRelu(p.In("prelu"), 1).Forward(layer.NewLinear(p.In("hidden"), 2, 16).Forward(in.Get("x")))
		return train.Classification(layer.NewLinear(p.In("out"), 16, 4).Forward(h), in.Get("y"))
	})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	fmt.Println(run.History.Last().Values["valid.accuracy"] > 0.95)
}

// Output:
// true
