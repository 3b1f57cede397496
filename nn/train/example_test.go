package train_test

import (
	"context"
	"fmt"

	"tgc/ir"
	"tgc/nn"
	"tgc/nn/data"
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

// A classifier: clouds of points around four corners.
func ExampleFit() {
	x, y := nn.Normal(0.3).Fill(1, "x", []int{400, 2}), make([]int32, 400)
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
		Epochs:  20, Patience: 5,
	}, func(p *nn.Parameters, in train.Inputs) train.Outputs {
		h := layer.NewLinear(p.In("hidden"), 2, 16).Forward(in.Get("x")).Relu()
		return train.Classification(layer.NewLinear(p.In("out"), 16, 4).Forward(h), in.Get("y"))
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer run.Close()
	best, _ := run.History.Best(train.Watch{Name: "valid.accuracy", Larger: true})
	fmt.Println("accuracy above 0.8:", best.Values["valid.accuracy"] > 0.8)
	// Output: accuracy above 0.8: true
}

// A transformer that continues a repeating text: it predicts each token from those before it.
func ExampleFit_transformer() {
	tokens := make([]int32, 400)
	for i := range tokens {
		tokens[i] = []int32{0, 1, 2, 1, 3, 1}[i%6] // what follows a 1 depends on what came before
	}
	const length, width = 12, 16
	text := data.Windows{Name: "text", Tokens: tokens, Length: length + 1, Stride: 1}
	run, err := train.Fit(context.Background(), train.FitOptions{
		Options: train.Options{Optimizer: optim.NewAdamW(0.01), Rate: optim.OneCycle(0.02, 60), Clip: 1},
		Data:    data.NewLoader(text, data.Options{Batch: 8, Shuffle: true}),
		Steps:   60, Every: 10,
	}, func(p *nn.Parameters, in train.Inputs) train.Outputs {
		ids := in.Get("text")
		x := layer.NewEmbedding(p.In("tokens"), 4, width, 0.1).Forward(ids.SliceInts(1, 0, length))
		x = layer.NewPositions(p.In("positions"), length, width).Forward(x)
		block := layer.BlockOptions{AttentionOptions: layer.AttentionOptions{Width: width, Heads: 2, Causal: true}}
		x = layer.NewEncoder(p.In("encoder"), 1, block).Forward(x, nil)
		return train.Classification(layer.NewLinear(p.In("out"), width, 4).Forward(x), ids.SliceInts(1, 1, length))
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer run.Close()
	fmt.Println("accuracy above 0.9:", run.History.Last().Values["accuracy"] > 0.9)
	// Output: accuracy above 0.9: true
}
