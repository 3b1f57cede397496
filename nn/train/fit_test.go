package train_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tgc/ir"
	"tgc/nn"
	"tgc/nn/data"
	"tgc/nn/layer"
	"tgc/nn/optim"
	"tgc/nn/train"
	"tgc/runtime"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// clouds are samples around drawn centres.
func clouds(samples int, seed uint32) data.Table {
	centres := nn.Normal(1).Fill(1, "centres", []int{classes, width})
	x := nn.Normal(0.7).Fill(seed, "x", []int{samples, width})
	y := make([]int32, samples)
	for i := range y {
		y[i] = int32(i % classes)
		for k := range width {
			x[i*width+k] += centres[int(y[i])*width+k]
		}
	}
	return data.Table{data.Of("x", x, width), data.Of("y", y)}
}

func classify(p *nn.Parameters, in train.Inputs) train.Outputs {
	h := layer.NewLinear(p.In("first"), width, 24).Forward(in.Get("x")).Gelu()
	h = layer.NewDropout(p, 0.1).Forward(h)
	return train.Classification(layer.NewLinear(p.In("second"), 24, classes).Forward(h), in.Get("y"))
}

// plan trains five epochs of ten steps with a record after every four.
func plan(dev runtime.Device) train.FitOptions {
	return train.FitOptions{
		Options: train.Options{
			Optimizer: optim.NewAdamW(0.01), Rate: optim.Cosine(0.02, 0.002, 5, 50), Clip: 1, Seed: 3,
			Average: optim.EMA(0.8),
		},
		Device: dev, Epochs: 5, Every: 4,
		Data:  data.NewLoader(clouds(167, 2), data.Options{Batch: batch, Shuffle: true, Seed: 5}),
		Valid: data.NewLoader(clouds(50, 3), data.Options{Batch: 20, KeepLast: true}),
	}
}

func fit(t *testing.T, opt train.FitOptions) *train.Run {
	t.Helper()
	r, err := train.Fit(t.Context(), opt, classify)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestFitLearns(t *testing.T) {
	dev, _ := device(t)
	var log bytes.Buffer
	opt := plan(dev)
	opt.Log = &log
	r := fit(t, opt)
	if len(r.History) != 13 || strings.Count(log.String(), "\n") != 14 {
		t.Errorf("%d records, log:\n%s", len(r.History), log.String())
	}
	first, last := r.History[0].Values, r.History.Last().Values
	if r.History.Last().Step != 50 || r.History.Last().Epoch != 5 {
		t.Errorf("the last record is %v", r.History.Last())
	}
	if first["loss"] < 0.9 || last["loss"] > 0.5 || last["valid.loss"] > 0.5 || last["accuracy"] < 0.85 || last["valid.accuracy"] < 0.85 {
		t.Errorf("from %v to %v", first, last)
	}
	if math.Abs(last["rate"]-0.002) > 1e-4 || !(last["norm"] > 0) {
		t.Errorf("the last rate is %v, the norm %v", last["rate"], last["norm"])
	}
}

// softmaxOf is the network outside training, in float64: the loss and the hit of each sample.
func softmaxOf(w nn.Values, x []float32, class int) (loss float64, hit bool) {
	affine := func(name string, in []float64) []float64 {
		weight, bias := w[name+".weight"].Float32s(), w[name+".bias"].Float32s()
		out := make([]float64, len(bias))
		for i := range out {
			out[i] = float64(bias[i])
			for k, v := range in {
				out[i] += float64(weight[i*len(in)+k]) * v
			}
		}
		return out
	}
	in := make([]float64, len(x))
	for i, v := range x {
		in[i] = float64(v)
	}
	h := affine("first", in)
	for i, v := range h {
		h[i] = v / 2 * (1 + math.Erf(v/math.Sqrt2))
	}
	logits := affine("second", h)
	total, best := 0.0, 0
	for i, v := range logits {
		total += math.Exp(v)
		if v > logits[best] {
			best = i
		}
	}
	return math.Log(total) - logits[class], best == class
}

// The validation values are those of all samples, a smaller last batch among them, with the
// averaged weights, computed again in float64.
func TestEvaluationIsExact(t *testing.T) {
	dev, _ := device(t)
	r := fit(t, plan(dev))
	weights, err := r.Averaged(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	samples, err := clouds(50, 3).Batch(slices.Collect(func(yield func(int) bool) {
		for i := 0; i < 50 && yield(i); i++ {
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	loss, hits := 0.0, 0
	for i := range 50 {
		own, hit := softmaxOf(weights, samples["x"].Float32s()[i*width:][:width], i%classes)
		loss += own / 50
		if hit {
			hits++
		}
	}
	got := r.History.Last().Values
	if math.Abs(got["valid.loss"]-loss) > 1e-5 || math.Abs(got["valid.accuracy"]-float64(hits)/50) > 1e-6 {
		t.Errorf("got %v, want loss %v and %d hits of 50", got, loss, hits)
	}
	again, err := r.Evaluate(t.Context(), data.NewLoader(clouds(50, 3), data.Options{Batch: 50}))
	if err != nil || math.Abs(again["loss"]-loss) > 1e-5 {
		t.Errorf("in one batch: %v, %v, want loss %v", again, err, loss)
	}
}

// same compares runs to the bit, histories but for the seconds.
func same(t *testing.T, a, b *train.Run) {
	t.Helper()
	if err := sameValues(values(t, a.Trainer), values(t, b.Trainer)); err != nil {
		t.Error(err)
	}
	if x, y := timeless(t, a.History), timeless(t, b.History); x != y {
		t.Errorf("histories differ:\n%s\n%s", x, y)
	}
}

func timeless(t *testing.T, h train.History) string {
	t.Helper()
	h = slices.Clone(h)
	for i := range h {
		h[i].Seconds = 0
	}
	var text strings.Builder
	if err := h.WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// stopping is a dataset that calls stop when some batches have been asked for.
func stopping(samples int, seed uint32, after int, stop func()) data.Dataset {
	var asked atomic.Int32
	return data.Func{Samples: samples, Make: func(list []int) (nn.Values, error) {
		if asked.Add(1) == int32(after) {
			stop()
		}
		return clouds(samples, seed).Batch(list)
	}}
}

// A run that is interrupted between records or while it measures goes on to the bit: weights,
// moments, sums of gradients, averages, history, rate and end.
func TestInterruptedFitGoesOnToTheBit(t *testing.T) {
	dev, _ := device(t)
	base := func() train.FitOptions {
		opt := plan(dev)
		opt.Plateau, opt.Accumulate = &optim.Plateau{Factor: 0.5, Threshold: 0.05}, 2
		return opt
	}
	whole := fit(t, base())
	for name, at := range map[string]struct{ batch, validation int }{
		"in the middle": {batch: 30}, "while it measures": {validation: 11}, "while it measures first": {validation: 1},
	} {
		opt := base()
		opt.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
		ctx, cancel := context.WithCancel(t.Context())
		opt.Data = data.NewLoader(stopping(167, 2, at.batch, cancel), data.Options{Batch: batch, Shuffle: true, Seed: 5})
		opt.Valid = data.NewLoader(stopping(50, 3, at.validation, cancel), data.Options{Batch: 20, KeepLast: true})
		r, err := train.Fit(ctx, opt, classify)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted %s: %v", name, err)
		}
		if n := len(r.History); n == 0 || n == 13 {
			t.Errorf("interrupted %s: %d records", name, n)
		}
		r.Close()
		opt.Data, opt.Valid = base().Data, base().Valid
		same(t, whole, fit(t, opt))
	}
}

// fading is a context that ends when it has been looked at so many times: wherever that is.
type fading struct {
	context.Context
	looks atomic.Int64
}

func (f *fading) Err() error {
	if f.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A context that ends in the middle of a step leaves a whole step.
func TestFitInterruptedWithinAStepGoesOnToTheBit(t *testing.T) {
	dev := interp.New(interp.Options{})
	defer dev.Close()
	plan := func() train.FitOptions {
		opt := plan(dev)
		opt.Epochs, opt.Steps, opt.Every, opt.Valid = 0, 4, 2, nil
		return opt
	}
	whole := fit(t, plan())
	for looks := int64(60); looks < 360; looks += 30 {
		opt := plan()
		opt.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
		ctx := &fading{Context: t.Context()}
		ctx.looks.Store(math.MaxInt64)
		opt.Callbacks = []train.Callback{func(context.Context, *train.Run) error {
			ctx.looks.Store(looks)
			return nil
		}}
		r, err := train.Fit(ctx, opt, classify)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		r.Close()
		opt.Callbacks = nil
		same(t, whole, fit(t, opt))
	}
}

// A run that is killed, not asked to end, goes on from its last record.
func TestFitGoesOnFromARecord(t *testing.T) {
	dev, _ := device(t)
	whole := fit(t, plan(dev))
	opt := plan(dev)
	opt.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
	broken := errors.New("broken")
	opt.Callbacks = []train.Callback{func(_ context.Context, r *train.Run) error {
		if r.History.Last().Step == 20 {
			return broken // before the checkpoint of this record
		}
		return nil
	}}
	if r, err := train.Fit(t.Context(), opt, classify); r != nil || !errors.Is(err, broken) {
		t.Fatalf("%v, %v", r, err)
	}
	opt.Callbacks = nil
	went := fit(t, opt)
	if !slices.IsSortedFunc(went.History, func(a, b train.Record) int { return cmp.Compare(a.Seconds, b.Seconds) }) {
		t.Errorf("times of records do not go on: %v", went.History)
	}
	same(t, whole, went)
	same(t, whole, fit(t, opt)) // a run at its end makes no step
	opt.Data = data.NewLoader(clouds(167, 2), data.Options{Batch: batch})
	if _, err := train.Fit(t.Context(), opt, classify); err == nil || !strings.Contains(err.Error(), "in order") {
		t.Errorf("another order of the samples: %v", err)
	}
}

// A callback ends a run, and so does a value that gets no better.
func TestFitEnds(t *testing.T) {
	dev, _ := device(t)
	opt := plan(dev)
	opt.Callbacks = []train.Callback{func(_ context.Context, r *train.Run) error {
		if len(r.History) == 2 {
			return train.ErrStop
		}
		return nil
	}}
	if r := fit(t, opt); len(r.History) != 2 {
		t.Errorf("%d records, want 2", len(r.History))
	}
	opt = plan(dev)
	opt.Rate, opt.Watch, opt.Patience = optim.Constant(0), train.Watch{Name: "valid.accuracy", Larger: true}, 3
	opt.Checkpoint, opt.Best = filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "best")
	r := fit(t, opt)
	if len(r.History) != 4 {
		t.Errorf("%d records without progress, want the first and 3", len(r.History))
	}
	if r = fit(t, opt); len(r.History) != 4 {
		t.Errorf("%d records after the end was resumed", len(r.History))
	}
	best, _, err := nn.ReadValues(opt.Best)
	if err != nil || len(best) != 4 {
		t.Errorf("%d values in the file of the best weights, %v", len(best), err)
	}
}

// The factor of a plateau stands in the rate.
func TestPlateauLowersTheRate(t *testing.T) {
	dev, _ := device(t)
	opt := plan(dev)
	opt.Rate, opt.Plateau = optim.Constant(1e-9), &optim.Plateau{Factor: 0.5, Patience: 1, Threshold: 0.5}
	_, rates := fit(t, opt).History.Series("rate")
	for i, want := range []float64{1, 1, 1, 0.5, 0.5, 0.25} {
		if math.Abs(rates[i]/1e-9-want) > 1e-6 {
			t.Fatalf("rates %v, want 1e-9 times 1 1 1 1/2 1/2 1/4", rates)
		}
	}
}

func TestFitRefusesMistakes(t *testing.T) {
	dev, _ := device(t)
	for want, change := range map[string]func(o *train.FitOptions){
		"the loader has no dataset":        func(o *train.FitOptions) { o.Data = nil },
		"5 epochs and 3 steps":             func(o *train.FitOptions) { o.Steps = 3 },
		"0 epochs and 0 steps":             func(o *train.FitOptions) { o.Epochs = 0 },
		"without an optimiser or a rate":   func(o *train.FitOptions) { o.Rate = nil },
		`no value "valid.accurcy"`:         func(o *train.FitOptions) { o.Watch.Name = "valid.accurcy" },
		"validation: data: a dataset of 4": func(o *train.FitOptions) { o.Valid = data.NewLoader(clouds(4, 1), data.Options{Batch: 5}) },
		`the batches have no "y", only x`: func(o *train.FitOptions) {
			o.Data = data.NewLoader(clouds(64, 1)[:1], data.Options{Batch: batch})
		},
	} {
		opt := plan(dev)
		change(&opt)
		if _, err := train.Fit(t.Context(), opt, classify); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, network := range map[string]train.Network{
		"the network is nil":    nil,
		"the model returns nil": func(*nn.Parameters, train.Inputs) train.Outputs { return train.Outputs{} },
		`a metric is named "norm"`: func(p *nn.Parameters, in train.Inputs) train.Outputs {
			out := classify(p, in)
			out.Metrics["norm"] = out.Loss
			return out
		},
	} {
		if _, err := train.Fit(t.Context(), plan(dev), network); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	opt := plan(dev)
	opt.Checkpoint = filepath.Join(t.TempDir(), "weights")
	if err := (nn.Values{}).WriteFile(t.Context(), opt.Checkpoint, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := train.Fit(t.Context(), opt, classify); err == nil || !strings.Contains(err.Error(), "tgc.kind") {
		t.Errorf("weights as a checkpoint: %v", err)
	}
	if _, err := os.Stat(opt.Checkpoint); err != nil {
		t.Error(err)
	}
}

func TestRegression(t *testing.T) {
	dev, _ := device(t)
	x := nn.Uniform(-1, 1).Fill(1, "x", []int{64})
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = 3*v - 1
	}
	opt := plan(dev)
	opt.Valid, opt.Epochs, opt.Rate = nil, 50, optim.Constant(0.05)
	opt.Data = data.NewLoader(data.Table{data.Of("x", x, 1), data.Of("y", y, 1)}, data.Options{Batch: 16, Shuffle: true})
	r, err := train.Fit(t.Context(), opt, func(p *nn.Parameters, in train.Inputs) train.Outputs {
		return train.Regression(layer.NewLinear(p, 1, 1).Forward(in.Get("x")), in.Get("y"))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if last := r.History.Last().Values; last["loss"] > 1e-3 || last["error"] > 0.03 {
		t.Errorf("%v", last)
	}
}

// Metrics of sequences count every token.
func TestClassificationOfSequences(t *testing.T) {
	g := tensor.NewGraph()
	logits := tensor.FromSlice(g, []float32{2, 0, 0, 5, 1, 0}, 1, 3, 2)
	out := train.Classification(logits, tensor.FromSlice(g, []int32{0, 1, 1}, 1, 3))
	loss, err := tensor.Data[float32](out.Loss)
	hits, err2 := tensor.Data[float32](out.Metrics["accuracy"].Cast(ir.F32))
	want := (math.Log1p(math.Exp(-2)) + math.Log1p(math.Exp(-5)) + math.Log1p(math.Exp(1))) / 3
	if err != nil || err2 != nil || math.Abs(float64(loss[0])-want) > 1e-6 || !slices.Equal(hits, []float32{1, 1, 0}) {
		t.Errorf("loss %v, hits %v, %v %v; want %v and 1 1 0", loss, hits, err, err2, want)
	}
}
