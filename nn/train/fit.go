package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/nn/data"
	"tgc/nn/optim"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/tensor"
)

// FitOptions says how Fit trains. The options of the environment (engine.ReadConfig) hold
// where Config is empty.
type FitOptions struct {
	Options
	Device runtime.Device // nil: devices.Default
	Data   *data.Loader   // batches of one size, each a step
	Valid  *data.Loader   // measured at each record; nil: nothing is
	Epochs int            // passes over Data in all ..
	Steps  int            // .. or steps in all
	Every  int            // steps between records; 0: an epoch

	// Watch is what tells a better record from a worse one; without a name it is
	// "valid.loss", or "loss" without validation data.
	Watch    Watch
	Patience int            // records in a row that are no better end the run; 0: never
	Plateau  *optim.Plateau // lowers the rate by what is watched; nil: nothing does
	Best     string         // file of the weights at the best record; empty: none

	// Checkpoint is a file from which the run goes on where it exists, and which is written
	// at each record and when the context ends; empty: none.
	Checkpoint string
	Callbacks  []Callback // called at each record, in order
	Log        io.Writer  // gets a line at the begin and at each record; may be nil
}

// Callback is called when a record has been added to Run.History. ErrStop ends the run,
// other errors are Fit's.
type Callback func(ctx context.Context, r *Run) error

// ErrStop is what a callback returns to end a run that is good enough.
var ErrStop = errors.New("train: stop")

// Buffers that Fit adds to a step.
const (
	bufferSums   = "train.sums" // f64 [1] each: what was measured since the last record
	bufferRate   = "train.rate" // f32 [1]: of the last step
	bufferFactor = "train.factor"
)

// Run is a training run of Fit.
type Run struct {
	*Trainer
	History History

	options   FitOptions
	metrics   []string // loss and metrics, sorted
	evaluator *evaluator
	began     time.Time // less what earlier runs took
}

// Fit trains a network on batches of data:
//
//	run, err := train.Fit(ctx, train.FitOptions{
//		Options: train.Options{Optimizer: optim.NewAdamW(0.01), Rate: optim.Cosine(3e-3, 1e-4, 20, 1000)},
//		Data:    data.NewLoader(learned, data.Options{Batch: 64, Shuffle: true}),
//		Valid:   data.NewLoader(unseen, data.Options{Batch: 200, KeepLast: true}),
//		Steps:   1000,
//	}, func(p *nn.Parameters, in train.Inputs) train.Outputs {
//		logits := layer.NewLinear(p, 784, 10).Forward(in.Get("x"))
//		return train.Classification(logits, in.Get("y"))
//	})
//
// When the context ends, Fit returns its cause with the run as it stands; after any other
// error there is none. A run that goes on from a checkpoint equals, to the bit, one that was
// never interrupted: weights, optimiser, order of the samples, random draws, history but for
// the seconds, and what is decided by it.
func Fit(ctx context.Context, opt FitOptions, network Network) (*Run, error) {
	r, err := newRun(ctx, opt, network)
	if err != nil {
		return nil, fmt.Errorf("train: fit: %w", err)
	}
	if opt.Log != nil {
		fmt.Fprintf(opt.Log, "%d parameters; compiled for %s in %.1f s\n", r.parameters.Count(), r.options.Device.Name(), time.Since(r.began).Seconds())
	}
	err = r.goOn(ctx)
	if err == nil {
		err = r.learn(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.Close()
		return nil, fmt.Errorf("train: fit: %w", err)
	}
	if err != nil {
		err = errors.Join(context.Cause(ctx), r.checkpoint(context.WithoutCancel(ctx)))
	}
	return r, err
}

// complete checks the options and fills in what they leave out.
func (opt *FitOptions) complete() (err error) {
	switch err := opt.Data.Check(); {
	case err != nil:
		return err
	case opt.Epochs > 0 == (opt.Steps > 0):
		return fmt.Errorf("%d epochs and %d steps, want one of them", opt.Epochs, opt.Steps)
	}
	if opt.Valid != nil {
		if err := opt.Valid.Check(); err != nil {
			return fmt.Errorf("validation: %w", err)
		}
	}
	if opt.Steps == 0 {
		opt.Steps = opt.Epochs * opt.Data.PerEpoch()
	}
	if opt.Every < 1 {
		opt.Every = opt.Data.PerEpoch()
	}
	if opt.Watch.Name == "" {
		opt.Watch.Name = "loss"
		if opt.Valid != nil {
			opt.Watch.Name = "valid.loss"
		}
	}
	if reflect.ValueOf(opt.Config).IsZero() {
		if opt.Config, err = engine.ReadConfig(); err != nil {
			return err
		}
	}
	if opt.Device == nil {
		opt.Device, err = devices.Default()
	}
	return err
}

// newRun compiles the step of a run.
func newRun(ctx context.Context, opt FitOptions, network Network) (*Run, error) {
	if err := opt.complete(); err != nil {
		return nil, err
	}
	if network == nil {
		return nil, errors.New("the network is nil")
	}
	first, err := opt.Data.At(0)
	if err != nil {
		return nil, err
	}
	r := &Run{options: opt, began: time.Now()}
	step := opt.Options
	var factor *tensor.Tensor // registered by the model, which is built before the rate
	if opt.Rate != nil {
		step.Rate = func(count *tensor.Tensor) *tensor.Tensor {
			rate := opt.Rate(count)
			if factor != nil {
				rate = rate.Mul(factor)
			}
			count.Graph().Output(bufferRate, rate)
			return rate
		}
	}
	r.Trainer, err = New(ctx, opt.Device, step, func(p *nn.Parameters) *tensor.Tensor {
		if opt.Plateau != nil {
			factor = p.State(bufferFactor, ir.F32, nn.Ones(), 1)
		}
		return r.sum(p, network(p, newInputs(p.Graph(), first, "")))
	})
	if err != nil {
		return nil, err
	}
	r.evaluator = &evaluator{network: network, device: opt.Device, config: opt.Config, weights: r.function, known: make(map[string]*evaluation)}
	if opt.Average.Every > 0 {
		r.evaluator.scope = averages
	}
	return r, nil
}

// sum adds what the network measures to sums that records read. It returns the loss.
func (r *Run) sum(p *nn.Parameters, out Outputs) *tensor.Tensor {
	if out.Loss == nil {
		return nil
	}
	measured := out.measured()
	r.metrics = slices.Sorted(maps.Keys(measured))
	for _, name := range r.metrics {
		if _, ok := out.Metrics[name]; ok && (name == "loss" || name == "rate" || name == "norm") {
			return p.Graph().Fail("fit", "a metric is named %q, which records have already", name)
		}
		sum := p.In(bufferSums).State(name, ir.F64, nn.Zeros(), 1)
		p.Graph().Store(sum, sum.Add(mean(measured[name], ir.F64)))
	}
	return out.Loss
}

// learn makes the steps that are left.
func (r *Run) learn(ctx context.Context) error {
	report, err := r.Report(ctx)
	if err != nil || r.ended() {
		return err
	}
	made, total := report.Steps, r.options.Steps
	if r.unmeasured() {
		if end, err := r.complete(ctx); end || err != nil {
			return err
		}
	}
	for batch, err := range r.options.Data.Batches(ctx, made, total) {
		if err != nil {
			return err
		}
		if err := feed(ctx, r.function, batch, ""); err != nil {
			return err
		}
		if err := r.Step(ctx); err != nil {
			return err
		}
		if made++; !r.due(made) {
			continue
		}
		if end, err := r.record(ctx, made); end || err != nil {
			return err
		}
	}
	return nil
}

// due reports a step after which there is a record.
func (r *Run) due(made int) bool {
	return made > 0 && (made%r.options.Every == 0 || made == r.options.Steps)
}

// record adds a record after a step, and says whether the run ends. What the step left is read
// whether or not the context has ended, so that a run which goes on lacks nothing.
func (r *Run) record(ctx context.Context, made int) (end bool, err error) {
	if err := r.read(context.WithoutCancel(ctx), made); err != nil {
		return false, err
	}
	return r.complete(ctx)
}

// read adds what was measured in training since the record before, and begins new sums.
func (r *Run) read(ctx context.Context, made int) error {
	values := make(map[string]float64)
	for _, name := range r.metrics {
		buffer := bufferSums + "." + name
		sum, err := tensor.Get[float64](ctx, r.function, buffer)
		if err != nil {
			return err
		}
		values[name] = sum[0] / float64(made-r.History.Last().Step)
		if err := tensor.Set(ctx, r.function, buffer, []float64{0}); err != nil {
			return err
		}
	}
	for name, buffer := range map[string]string{"rate": bufferRate, "norm": bufferNorm} {
		v, err := tensor.Get[float32](ctx, r.function, buffer)
		if err != nil {
			return err
		}
		values[name] = float64(v[0])
	}
	epoch := float64(made) / float64(r.options.Data.PerEpoch())
	r.History = append(r.History, Record{Step: made, Epoch: epoch, Seconds: time.Since(r.began).Seconds(), Values: values})
	return nil
}

// unmeasured reports a last record whose validation was interrupted.
func (r *Run) unmeasured() bool {
	if _, ok := r.History.Last().Values["valid.loss"]; ok || r.options.Valid == nil {
		return false
	}
	return len(r.History) > 0
}

// complete measures the validation data for the last record, does what depends on it and
// says whether the run ends.
func (r *Run) complete(ctx context.Context) (end bool, err error) {
	values := r.History.Last().Values
	if r.options.Valid != nil {
		means, err := r.evaluator.measure(ctx, r.options.Valid)
		if err != nil {
			return false, err
		}
		for name, v := range means {
			values["valid."+name] = v
		}
	}
	if _, ok := values[r.options.Watch.Name]; !ok {
		return false, fmt.Errorf("records have no value %q to watch, only %v", r.options.Watch.Name, slices.Sorted(maps.Keys(values)))
	}
	if err := r.adjust(context.WithoutCancel(ctx)); err != nil {
		return false, err
	}
	if r.options.Log != nil {
		fmt.Fprintln(r.options.Log, r.History.Last())
	}
	for _, call := range r.options.Callbacks {
		err := call(ctx, r)
		if err != nil && !errors.Is(err, ErrStop) {
			return false, err
		}
		end = end || err != nil
	}
	return end || r.ended(), r.checkpoint(ctx)
}

// adjust does what depends on the value that is watched.
func (r *Run) adjust(ctx context.Context) error {
	_, watched := r.History.Series(r.options.Watch.Name)
	if p := r.options.Plateau; p != nil {
		plateau := *p
		plateau.Larger = r.options.Watch.Larger
		if err := tensor.Set(ctx, r.function, bufferFactor, []float32{float32(plateau.Rate(watched))}); err != nil {
			return err
		}
	}
	if r.options.Best == "" || r.options.Watch.best(watched) != len(watched)-1 {
		return nil
	}
	weights, err := r.Averaged(ctx)
	if err != nil {
		return err
	}
	return weights.WriteFile(ctx, r.options.Best, nil)
}

// ended reports that what is watched has not become better for too long.
func (r *Run) ended() bool {
	_, watched := r.History.Series(r.options.Watch.Name)
	best := r.options.Watch.best(watched)
	return r.options.Patience > 0 && len(watched)-1-best >= r.options.Patience
}

// Evaluate gives the loss and the metrics, by name, of one pass over other data, with the
// averaged weights where there are any.
func (r *Run) Evaluate(ctx context.Context, loader *data.Loader) (map[string]float64, error) {
	return r.evaluator.measure(ctx, loader)
}

// Close frees the run's memory.
func (r *Run) Close() {
	if r == nil {
		return
	}
	r.evaluator.close()
	r.Trainer.Close()
}
