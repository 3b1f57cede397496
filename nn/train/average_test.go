package train_test

import (
	"math"
	"testing"

	"tgc/ir"
	"tgc/nn"
	"tgc/nn/data"
	"tgc/nn/layer"
	"tgc/nn/optim"
	"tgc/nn/train"
	"tgc/tensor"
)

// near compares the weights of a model.
func near(t *testing.T, what string, got, want nn.Values, tolerance float64) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for name, value := range want {
		for i, w := range value.Float32s() {
			if g := got[name].Float32s()[i]; !(math.Abs(float64(g-w)) <= tolerance) {
				t.Fatalf("%s: %s[%d]: got %v, want %v", what, name, i, g, w)
			}
		}
	}
}

// linear is a model without random draws, with running statistics.
func linear(size int, norm bool) train.Model {
	return func(p *nn.Parameters) *tensor.Tensor {
		x, y := p.Graph().Input("x", ir.F32, size, width), p.Graph().Input("y", ir.I32, size)
		if norm {
			x = layer.NewBatchNorm(p.In("norm"), width).Forward(x)
		}
		return layer.NewLinear(p, width, classes).Forward(x).CrossEntropy(y)
	}
}

// steps trains on batches of a size and hands each step's weights to a visitor.
func steps(t *testing.T, opt train.Options, size, count int, norm bool, visit func(trainer *train.Trainer, step int)) {
	t.Helper()
	dev, _ := device(t)
	trainer, err := train.New(t.Context(), dev, opt, linear(size, norm))
	if err != nil {
		t.Fatal(err)
	}
	defer trainer.Close()
	loader := data.NewLoader(clouds(240, 2), data.Options{Batch: size})
	step := 0
	for b, err := range loader.Batches(t.Context(), 0, count) {
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range b {
			if err := trainer.Function().Write(t.Context(), name, value.Data); err != nil {
				t.Fatal(err)
			}
		}
		if err := trainer.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		step++
		visit(trainer, step)
	}
}

// Three steps whose gradients make one update are one step on a batch three times as large:
// weights, clipping and schedule.
func TestAccumulationIsALargerBatch(t *testing.T) {
	opt := train.Options{Optimizer: optim.NewAdamW(0.01), Rate: optim.Cosine(0.1, 0.01, 2, 5), Clip: 0.5, Seed: 1}
	var large []nn.Values
	steps(t, opt, 24, 5, false, func(trainer *train.Trainer, _ int) { large = append(large, weightsOf(t, trainer)) })
	for name, mixed := range map[string]train.Mixed{"f32": {}, "scaled": {Scale: 1024, Patience: 2}} {
		opt.Accumulate, opt.Mixed = 3, mixed
		steps(t, opt, 8, 15, false, func(trainer *train.Trainer, step int) {
			if step%3 == 0 {
				near(t, name, weightsOf(t, trainer), large[step/3-1], 2e-6)
			}
		})
	}
}

func weightsOf(t *testing.T, trainer *train.Trainer) nn.Values {
	t.Helper()
	v, err := trainer.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Averages are those of the weights after each update, and of running statistics, computed
// on the host in float64.
func TestAverages(t *testing.T) {
	for name, c := range map[string]struct {
		average optim.Average
		share   func(update int) float64
	}{
		"ema": {optim.EMA(0.7), func(update int) float64 {
			if update == 1 {
				return 1
			}
			return 0.3
		}},
		"swa": {optim.SWA(2, 3), func(update int) float64 {
			return map[int]float64{5: 1, 6: 0, 7: 0, 8: 1. / 2, 9: 0, 10: 0, 11: 1. / 3, 12: 0}[max(update, 5)]
		}},
	} {
		want := make(map[string][]float64)
		opt := train.Options{Optimizer: optim.SGD{Momentum: 0.9}, Rate: optim.Constant(0.3), Average: c.average}
		steps(t, opt, 8, 12, true, func(trainer *train.Trainer, step int) {
			expected := make(nn.Values)
			for key, value := range weightsOf(t, trainer) {
				now := value.Float32s()
				if want[key] == nil {
					want[key] = make([]float64, len(now))
				}
				means := make([]float32, len(now))
				for i := range now {
					want[key][i] += (float64(now[i]) - want[key][i]) * c.share(step)
					means[i] = float32(want[key][i])
				}
				expected[key] = nn.Float32s(means, value.Shape...)
			}
			got, err := trainer.Averaged(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			near(t, name, got, expected, 1e-6)
		})
	}
}
