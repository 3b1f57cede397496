// Classifier trains a network of two layers to tell ten clouds of points apart. The same in
// PyTorch stands beside it in classifier.py.
package main

import (
	"context"
	"log"
	"os"

	"tgc/nn"
	"tgc/nn/data"
	"tgc/nn/layer"
	"tgc/nn/optim"
	"tgc/nn/train"
)

// clouds draws points around ten centres.
func clouds(samples int, seed uint32) data.Dataset {
	centres := nn.Normal(1).Fill(0, "centres", []int{10, 64})
	x, y := nn.Normal(1.5).Fill(seed, "x", []int{samples, 64}), make([]int32, samples)
	for i := range x {
		cloud := i / 64 % 10
		x[i] += centres[cloud*64+i%64]
		y[i/64] = int32(cloud)
	}
	return data.Table{data.Of("x", x, 64), data.Of("y", y)}
}

func network(p *nn.Parameters, in train.Inputs) train.Outputs {
	h := layer.NewLinear(p.In("hidden"), 64, 128).Forward(in.Get("x")).Relu()
	h = layer.NewDropout(p, 0.1).Forward(h)
	return train.Classification(layer.NewLinear(p.In("out"), 128, 10).Forward(h), in.Get("y"))
}

func main() {
	run, err := train.Fit(context.Background(), train.FitOptions{
		Options: train.Options{Optimizer: optim.NewAdamW(0.01), Rate: optim.Cosine(3e-3, 0, 0, 500)},
		Data:    data.NewLoader(clouds(12800, 1), data.Options{Batch: 128, Shuffle: true}),
		Valid:   data.NewLoader(clouds(2560, 2), data.Options{Batch: 256}),
		Epochs:  5, Log: os.Stdout,
	}, network)
	if err != nil {
		log.Fatal(err)
	}
	run.Close()
}
