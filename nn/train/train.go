package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tgc/engine"
	"tgc/grad"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/nn"
	"tgc/nn/optim"
	"tgc/runtime"
	"tgc/tensor"
)

// Options says how a model is trained.
type Options struct {
	Optimizer optim.Optimizer
	Rate      optim.Schedule
	Clip      float64 // largest global norm of the gradients; 0 does not clip
	// Accumulate is the number of steps whose mean gradient makes an update, 0 for 1: a large
	// batch in parts. Schedules and averages count updates.
	Accumulate int
	Average    optim.Average // of what is trained and of what layers keep, see Averaged
	Mixed      Mixed
	Seed       uint32 // of initial values and of random draws
	Config     engine.Config
}

// Model registers its parameters in p, declares its inputs on p.Graph(), and
// returns the loss, a scalar.
type Model func(p *nn.Parameters) *tensor.Tensor

// Names of the buffers that are not the model's own. Scopes of the model must not start
// with "train".
const (
	bufferSeed  = "train.seed"  // u32 [1]: of random draws
	bufferSteps = "train.steps" // u32 [1]: steps made
	bufferLoss  = "train.loss"  // f32 [1]: of the last step
	bufferNorm  = "train.norm"  // f32 [1]: global norm of the gradients before clipping
)

// Trainer is a compiled training step with its state on a device. It is not safe
// for concurrent use.
type Trainer struct {
	parameters *nn.Parameters
	function   *tensor.Function
}

// New builds, compiles and captures the step, and draws the initial values.
func New(ctx context.Context, dev runtime.Device, opt Options, model Model) (*Trainer, error) {
	switch {
	case opt.Optimizer == nil || opt.Rate == nil:
		return nil, errors.New("train: options without an optimiser or a rate")
	case model == nil:
		return nil, errors.New("train: new: the model is nil")
	}
	p, err := build(opt, model)
	if err != nil {
		return nil, err
	}
	f, err := tensor.Compile(ctx, p.Graph(), dev, opt.Config)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	t := &Trainer{parameters: p, function: f}
	if err := t.Restore(ctx, seeded(p, opt.Seed)); err != nil {
		f.Close()
		return nil, err
	}
	return t, nil
}

// build makes the graph of a step.
func build(opt Options, model Model) (*nn.Parameters, error) {
	g := tensor.NewGraph()
	p := nn.NewParameters(g)
	state := p.In("train")
	steps := state.State("steps", ir.U32, nn.Zeros(), 1)
	g.Store(steps, steps.Add(g.Scalar(ir.U32, 1)))
	// A step's draws depend on the seed and on how many steps were made before.
	p.Train(state.State("seed", ir.U32, nn.Zeros(), 1).Rng(steps))
	p.Compute(opt.Mixed.Compute)

	loss := model(p)
	if err := g.Err(); err != nil {
		return nil, err
	}
	switch {
	case loss == nil:
		return nil, errors.New("train: new: the model returns nil, want the loss")
	case loss.Graph() != g:
		return nil, fmt.Errorf("train: new: the loss is %s of another graph, want one of Parameters.Graph", loss)
	case loss.Rank() > 0:
		g.Fail("train", "loss is %s, want a scalar", loss)
		return nil, g.Err()
	case len(p.Trained()) == 0:
		return nil, errors.New("train: new: the model has no trained parameter")
	}
	g.Output(bufferLoss, loss.Reshape(1))
	update(opt, p, p.Trained(), loss.Reshape(1), steps)
	return p, g.Err()
}

// update adds the backward pass and the optimiser.
func update(opt Options, p *nn.Parameters, parameters []nn.Parameter, loss, steps *tensor.Tensor) {
	g, state := p.Graph(), p.In("train")
	inputs := lists.Map(parameters, func(w nn.Parameter) *tensor.Tensor { return w.Tensor })
	scaling := newScaling(opt.Mixed, state)
	gradients := grad.Of([]*tensor.Tensor{loss}, []*tensor.Tensor{scaling.scale}, inputs)
	gradients = scaling.undo(gradients)
	parts := accumulation{count: max(opt.Accumulate, 1)}
	gradients = parts.add(state, parameters, gradients, steps)

	// Stored, or each parameter's update would finish the sum over all gradients itself.
	norm := optim.GlobalNorm(g, gradients).Contiguous()
	g.Output(bufferNorm, norm)
	updates := parts.updates(steps)
	now := optim.Moment{Rate: opt.Rate(updates), Count: updates.AddScalar(1), Skip: parts.unfinished}
	if scaling.scale != nil {
		now.Count, now.Skip = scaling.follow(norm, parts.unfinished)
	}
	if opt.Clip > 0 {
		gradients = optim.ClipNorm(gradients, norm, opt.Clip)
	}
	optim.Apply(opt.Optimizer, state, parameters, gradients, now)
	if opt.Average.Every > 0 {
		average(opt.Average, p, updates.AddScalar(1), parts.unfinished)
	}
}

// Function gives access to the compiled step: inputs are set on it, and an
// evaluation compiled with it in share works on the same weights.
func (t *Trainer) Function() *tensor.Function { return t.function }

// Parameters is the tree of everything that training changes.
func (t *Trainer) Parameters() *nn.Parameters { return t.parameters }

// Step makes one training step on what the inputs hold. A step that has begun is finished
// even if the context ends: after half of one, weights and moments would be of different steps,
// and a checkpoint of them would go on to something else.
func (t *Trainer) Step(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return t.function.Run(context.WithoutCancel(ctx), nil)
}

// Report is what a step leaves to read.
type Report struct {
	Steps int     // made so far, over all runs
	Loss  float64 // of the last one; NaN before this trainer has made one
	Norm  float64 // global norm of its gradients, before clipping; NaN as Loss is
}

// Report reads the state of the last step.
func (t *Trainer) Report(ctx context.Context) (Report, error) {
	steps, err := tensor.Get[uint32](ctx, t.function, bufferSteps)
	if err != nil {
		return Report{}, err
	}
	report := Report{Steps: int(steps[0]), Loss: math.NaN(), Norm: math.NaN()}
	if _, ran := t.function.Step().Last(); !ran {
		return report, nil
	}
	loss, err := tensor.Get[float32](ctx, t.function, bufferLoss)
	if err != nil {
		return Report{}, err
	}
	norm, err := tensor.Get[float32](ctx, t.function, bufferNorm)
	if err != nil {
		return Report{}, err
	}
	report.Loss, report.Norm = float64(loss[0]), float64(norm[0])
	return report, nil
}

// Close frees the step and its memory.
func (t *Trainer) Close() { t.function.Close() }
