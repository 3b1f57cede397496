// Package train runs training: forward pass, backward pass, gradient clipping
// and optimiser become one graph, compiled and captured once; a step replays it.
//
// Fit does all of a run: batches of a loader, metrics, validation, history, checkpoints.
// For a loop of one's own there is the step alone:
//
//	t, err := train.New(ctx, dev, train.Options{
//		Optimizer: optim.NewAdamW(0.01),
//		Rate:      optim.Cosine(3e-3, 3e-4, 100, 2000),
//	}, func(p *nn.Parameters) *tensor.Tensor {
//		g := p.Graph()
//		x, y := g.Input("x", ir.F32, 64, 784), g.Input("y", ir.I32, 64)
//		logits := layer.NewLinear(p.In("out"), 784, 10).Forward(x)
//		return logits.CrossEntropy(y, tensor.CrossEntropyOptions{})
//	})
//	for each batch {
//		err = tensor.Set(ctx, t.Function(), "x", pictures) // and "y"
//		err = t.Step(ctx)
//	}
//	report, err := t.Report(ctx) // steps, loss, norm of the gradients
//
// Everything that changes lives in device buffers: parameters, optimiser state,
// the count of steps, the scale of the loss. A checkpoint is their contents, so
// a run that resumes from one goes on exactly as it would have.
package train
