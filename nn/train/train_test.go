package train_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	_ "tgc/internal/rarecollection"
	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/nn"
	"tgc/nn/layer"
	"tgc/nn/optim"
	"tgc/nn/train"
	"tgc/runtime"
	"tgc/runtime/cpu"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(killedRun); path != "" {
		runUntilKilled(path)
	}
	os.Exit(m.Run())
}

// open starts the CPU device, or the interpreter where there is no libLLVM.
func open(ctx context.Context) (dev runtime.Device, fast bool, err error) {
	d, err := cpu.New(ctx, cpu.Options{Threads: 1})
	if errors.Is(err, cpu.ErrNoLLVM) {
		return interp.New(interp.Options{}), false, nil
	}
	return d, err == nil, err
}

func device(t *testing.T) (dev runtime.Device, fast bool) {
	t.Helper()
	dev, fast, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev, fast
}

const batch, width, classes = 16, 12, 4

// network is a small classifier with a norm and dropout.
func network(p *nn.Parameters) *tensor.Tensor {
	g := p.Graph()
	x, y := g.Input("x", ir.F32, batch, width), g.Input("y", ir.I32, batch)
	h := layer.NewLinear(p.In("first"), width, 24).Forward(x)
	h = layer.NewLayerNorm(p.In("norm"), 24).Forward(h).Gelu()
	h = layer.NewDropout(p, 0.1).Forward(h)
	logits := layer.NewLinear(p.In("second"), 24, classes).Forward(h)
	shifted := logits.Sub(logits.MaxKeep(-1))
	hit := y.Unsqueeze(1).Eq(g.Iota(ir.I32, g.Dims(classes)[0]))
	own := hit.Where(shifted, g.Scalar(ir.F32, 0)).Sum(-1)
	return shifted.Exp().Sum(-1).Log().Sub(own).Sum().MulScalar(1.0 / batch)
}

func options() train.Options {
	return train.Options{
		Optimizer: optim.NewAdamW(0.01), Rate: optim.Cosine(0.02, 0.002, 10, 200), Clip: 1, Seed: 42,
		Config: engine.Config{Verify: true},
	}
}

// feed sets batch n: four clouds around drawn centres.
func feed(ctx context.Context, t *train.Trainer, n int) error {
	centres := nn.Normal(1).Fill(1, "centres", []int{classes, width})
	x := nn.Normal(0.7).Fill(uint32(n), "x", []int{batch, width})
	y := make([]int32, batch)
	for i := range y {
		y[i] = int32((i*7 + n) % classes)
		for k := range width {
			x[i*width+k] += centres[int(y[i])*width+k]
		}
	}
	if err := tensor.Set(ctx, t.Function(), "x", x); err != nil {
		return err
	}
	return tensor.Set(ctx, t.Function(), "y", y)
}

// advance makes steps from..to-1 and returns their losses.
func advance(ctx context.Context, t *train.Trainer, from, to int) ([]float64, error) {
	var losses []float64
	for n := from; n < to; n++ {
		if err := feed(ctx, t, n); err != nil {
			return nil, err
		}
		if err := t.Step(ctx); err != nil {
			return nil, err
		}
		report, err := t.Report(ctx)
		if err != nil {
			return nil, err
		}
		if report.Steps != n+1 {
			return nil, fmt.Errorf("%d steps counted after step %d", report.Steps, n)
		}
		losses = append(losses, report.Loss)
	}
	return losses, nil
}

func newTrainer(t *testing.T, dev runtime.Device, opt train.Options) *train.Trainer {
	t.Helper()
	trainer, err := train.New(t.Context(), dev, opt, network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(trainer.Close)
	return trainer
}

func mustAdvance(t *testing.T, trainer *train.Trainer, from, to int) []float64 {
	t.Helper()
	losses, err := advance(t.Context(), trainer, from, to)
	if err != nil {
		t.Fatal(err)
	}
	return losses
}

func TestTrainingLearns(t *testing.T) {
	dev, _ := device(t)
	losses := mustAdvance(t, newTrainer(t, dev, options()), 0, 100)
	first, last := mean(losses[:5]), mean(losses[95:])
	if first < 1.2 || last > 0.3 {
		t.Errorf("loss went from %.3f to %.3f, want from about ln 4 to below 0.3", first, last)
	}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// Fusion changes the order of float sums and nothing else: with all rules off
// the losses of 60 steps are equal to 1e-5 of the first loss. One step's
// rounding is 1e-7, and steps multiply what differs.
func TestLossCurvesWithRulesOnAndOff(t *testing.T) {
	dev, _ := device(t)
	on := mustAdvance(t, newTrainer(t, dev, options()), 0, 60)
	opt := options()
	opt.Config.Rules = schedule.AllRules()
	off := mustAdvance(t, newTrainer(t, dev, opt), 0, 60)
	worst := 0.0
	for i := range on {
		worst = max(worst, math.Abs(on[i]-off[i]))
		if i == 0 && worst > 1e-6 {
			t.Errorf("the first loss differs by %g, want at most 1e-6", worst)
		}
	}
	t.Logf("largest difference %g", worst)
	if worst > 1e-5*on[0] {
		t.Errorf("losses differ by %g, want at most 1e-5 of %g", worst, on[0])
	}
}

// Two thousand steps allocate nothing that stays: neither on Go's heap nor in
// the process.
func TestMemoryDoesNotGrow(t *testing.T) {
	dev, fast := device(t)
	trainer := newTrainer(t, dev, options())
	if err := feed(t.Context(), trainer, 0); err != nil {
		t.Fatal(err)
	}
	steps := 2000
	if !fast {
		steps = 200
	}
	run := func(n int) {
		for range n {
			if err := trainer.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(50)
	heap, resident := testkit.MemoryInUse(t)
	run(steps)
	heapAfter, residentAfter := testkit.MemoryInUse(t)
	if grown := heapAfter - heap; grown > 256<<10 {
		t.Errorf("the heap grew by %d bytes in %d steps", grown, steps)
	}
	if grown := residentAfter - resident; grown > 4<<20 {
		t.Errorf("the process grew by %d bytes in %d steps", grown, steps)
	}
}

// sameValues reports the first difference of two sets of values.
func sameValues(a, b nn.Values) error {
	if x, y := slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)); !slices.Equal(x, y) {
		return fmt.Errorf("names %v and %v", x, y)
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !slices.Equal(a[name].Data, b[name].Data) {
			return fmt.Errorf("value %q differs", name)
		}
	}
	return nil
}

func values(t *testing.T, trainer *train.Trainer) nn.Values {
	t.Helper()
	v, err := trainer.Values(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A run that resumes, in a trainer that drew other values, goes on to the bit.
func TestResumedRunEqualsTheUninterrupted(t *testing.T) {
	for name, mixed := range map[string]train.Mixed{"f32": {}, "f16": {Compute: ir.F16, Scale: 1 << 15, Patience: 4}} {
		t.Run(name, func(t *testing.T) {
			dev, _ := device(t)
			opt := options()
			opt.Mixed = mixed
			path := filepath.Join(t.TempDir(), "run.safetensors")
			whole := newTrainer(t, dev, opt)
			mustAdvance(t, whole, 0, 9)
			if err := whole.Save(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			mustAdvance(t, whole, 9, 20)

			opt.Seed = 7
			resumed := newTrainer(t, dev, opt)
			mustAdvance(t, resumed, 0, 3)
			if err := resumed.Resume(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			mustAdvance(t, resumed, 9, 20)
			if err := sameValues(values(t, whole), values(t, resumed)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestResumeRefusesOtherFiles(t *testing.T) {
	dev := interp.New(interp.Options{})
	trainer := newTrainer(t, dev, options())
	folder := t.TempDir()
	write := func(name string, v nn.Values, metadata map[string]string) string {
		path := filepath.Join(folder, name)
		if err := v.WriteFile(t.Context(), path, metadata); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := values(t, trainer)
	part := maps.Clone(whole)
	delete(part, "train.first.weight.mean")
	checkpoint := map[string]string{"tgc.kind": "training checkpoint 1"}
	for path, want := range map[string]string{
		filepath.Join(folder, "absent"): "no such file",
		write("weights", whole, nil):    `tgc.kind is ""`,
		write("part", part, checkpoint): `parameter "train.first.weight.mean" has no value`,
	} {
		if err := trainer.Resume(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", filepath.Base(path), err, want)
		}
	}
}

func TestOptionsAndLossAreChecked(t *testing.T) {
	dev := interp.New(interp.Options{})
	if _, err := train.New(t.Context(), dev, train.Options{}, network); err == nil {
		t.Error("no optimiser: no error")
	}
	vector := func(p *nn.Parameters) *tensor.Tensor { return p.Weight("w", nn.Ones(), 3) }
	if _, err := train.New(t.Context(), dev, options(), vector); err == nil || !strings.Contains(err.Error(), "want a scalar") {
		t.Errorf("a loss of three elements: %v", err)
	}
	for want, model := range map[string]train.Model{
		"the model is nil":                   nil,
		"returns nil, want the loss":         func(*nn.Parameters) *tensor.Tensor { return nil },
		"of another graph":                   func(*nn.Parameters) *tensor.Tensor { return tensor.NewGraph().Scalar(ir.F32, 1) },
		"the model has no trained parameter": func(p *nn.Parameters) *tensor.Tensor { return p.Graph().Scalar(ir.F32, 1) },
		"a.w\" is registered twice": func(p *nn.Parameters) *tensor.Tensor {
			p.In("a").Weight("w", nn.Ones())
			return p.In("a").Weight("w", nn.Ones())
		},
	} {
		if _, err := train.New(t.Context(), dev, options(), model); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := train.New(t.Context(), nil, options(), network); err == nil || !strings.Contains(err.Error(), "the device is nil") {
		t.Errorf("a nil device: %v", err)
	}
}

// A loss scale that overflows f16 changes no weight and halves until gradients
// are finite; then training learns.
func TestLossScaleFindsItsWay(t *testing.T) {
	dev, _ := device(t)
	opt := options()
	opt.Mixed = train.Mixed{Compute: ir.F16, Scale: 1 << 24, Patience: 1000}
	trainer := newTrainer(t, dev, opt)
	before := values(t, trainer)
	mustAdvance(t, trainer, 0, 1)
	after := values(t, trainer)
	scale := func(v nn.Values) float32 { return v["train.scale"].Float32s()[0] }
	if scale(after) != 1<<23 || after["train.updates"].Float32s()[0] != 0 {
		t.Errorf("after an overflow: scale %g, %g updates, want %d and none", scale(after), after["train.updates"].Float32s()[0], 1<<23)
	}
	for _, name := range []string{"first.weight", "second.bias", "train.first.weight.mean"} {
		if !slices.Equal(before[name].Data, after[name].Data) {
			t.Errorf("an overflow changed %s", name)
		}
	}
	losses := mustAdvance(t, trainer, 1, 100)
	end := values(t, trainer)
	if made := end["train.updates"].Float32s()[0]; made < 80 || scale(end) > 1<<20 {
		t.Errorf("%g updates at scale %g, want at least 80 at no more than %d", made, scale(end), 1<<20)
	}
	if last := mean(losses[90:]); last > 0.3 {
		t.Errorf("loss is %.3f, want below 0.3", last)
	}
}

// Weights of a file go to the model's own parameters, whatever the optimiser keeps.
func TestLoadWeights(t *testing.T) {
	dev, _ := device(t)
	trainer := newTrainer(t, dev, options())
	mustAdvance(t, trainer, 0, 2)
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	weights, err := trainer.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := weights.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	opt := options()
	opt.Seed = 9
	other := newTrainer(t, dev, opt)
	if unused, err := other.LoadWeights(t.Context(), path, nil); err != nil || len(unused) > 0 {
		t.Fatal(unused, err)
	}
	got, err := other.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := sameValues(got, weights); err != nil {
		t.Error(err)
	}
}
