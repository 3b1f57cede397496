package optim_test

import (
	"fmt"
	"math"
	"testing"

	"tgc/engine"
	_ "tgc/internal/rarecollection"
	"tgc/ir"
	"tgc/nn"
	"tgc/nn/optim"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// weight is one parameter of the reference, in float64.
type weight struct{ w, velocity, mean, square []float64 }

// reference is an optimiser written out in float64: it changes s.w by gradient g
// at update t (from 1) with a learning rate.
type reference func(s *weight, g []float64, t int, rate float64)

// sgd follows the documentation of torch.optim.SGD (dampening 0).
func sgd(momentum float64, nesterov bool, decay float64) reference {
	return func(s *weight, g []float64, t int, rate float64) {
		for i := range s.w {
			d := g[i] + decay*s.w[i]
			if momentum != 0 {
				if t == 1 {
					s.velocity[i] = d
				} else {
					s.velocity[i] = momentum*s.velocity[i] + d
				}
				if nesterov {
					d += momentum * s.velocity[i]
				} else {
					d = s.velocity[i]
				}
			}
			s.w[i] -= rate * d
		}
	}
}

// adam follows the documentation of torch.optim.Adam and AdamW.
func adam(b1, b2, epsilon, decay float64, decoupled bool) reference {
	return func(s *weight, g []float64, t int, rate float64) {
		for i := range s.w {
			d := g[i]
			if decoupled {
				s.w[i] -= rate * decay * s.w[i]
			} else {
				d += decay * s.w[i]
			}
			s.mean[i] = b1*s.mean[i] + (1-b1)*d
			s.square[i] = b2*s.square[i] + (1-b2)*d*d
			mean := s.mean[i] / (1 - math.Pow(b1, float64(t)))
			square := s.square[i] / (1 - math.Pow(b2, float64(t)))
			s.w[i] -= rate * mean / (math.Sqrt(square) + epsilon)
		}
	}
}

// rmsprop follows the documentation of torch.optim.RMSprop.
func rmsprop(momentum float64, centered bool, decay float64) reference {
	return func(s *weight, g []float64, t int, rate float64) {
		for i := range s.w {
			d := g[i] + decay*s.w[i]
			s.square[i] = 0.99*s.square[i] + 0.01*d*d
			s.mean[i] = 0.99*s.mean[i] + 0.01*d
			square := s.square[i]
			if centered {
				square -= s.mean[i] * s.mean[i]
			}
			s.velocity[i] = momentum*s.velocity[i] + d/(math.Sqrt(square)+1e-8)
			s.w[i] -= rate * s.velocity[i]
		}
	}
}

// adagrad follows the documentation of torch.optim.Adagrad.
func adagrad(rateDecay, initial, decay float64) reference {
	return func(s *weight, g []float64, t int, rate float64) {
		for i := range s.w {
			if t == 1 {
				s.square[i] = initial
			}
			d := g[i] + decay*s.w[i]
			s.square[i] += d * d
			s.w[i] -= rate / (1 + float64(t-1)*rateDecay) * d / (math.Sqrt(s.square[i]) + 1e-10)
		}
	}
}

// lion follows algorithm 2 of its paper.
func lion(decay float64) reference {
	return func(s *weight, g []float64, t int, rate float64) {
		for i := range s.w {
			direction := 1.0
			if 0.9*s.mean[i]+0.1*g[i] < 0 {
				direction = -1
			}
			s.mean[i] = 0.99*s.mean[i] + 0.01*g[i]
			s.w[i] -= rate * (direction + decay*s.w[i])
		}
	}
}

// Fifty updates of a matrix, a vector and a scalar by drawn gradients.
func TestOptimisersFollowTheirReference(t *testing.T) {
	adamL2 := optim.NewAdam()
	adamL2.WeightDecay, adamL2.Decay = 0.1, optim.DecayAll
	adamW := optim.NewAdamW(0.1)
	adamW.Decay = optim.DecayAll
	for name, c := range map[string]struct {
		optimizer optim.Optimizer
		want      reference
	}{
		"sgd":      {optim.SGD{}, sgd(0, false, 0)},
		"momentum": {optim.SGD{Momentum: 0.9, WeightDecay: 0.01, Decay: optim.DecayAll}, sgd(0.9, false, 0.01)},
		"nesterov": {optim.SGD{Momentum: 0.8, Nesterov: true}, sgd(0.8, true, 0)},
		"adam":     {optim.NewAdam(), adam(0.9, 0.999, 1e-8, 0, false)},
		"adam, l2": {adamL2, adam(0.9, 0.999, 1e-8, 0.1, false)},
		"adamw":    {adamW, adam(0.9, 0.999, 1e-8, 0.1, true)},
		"rmsprop":  {optim.NewRMSprop(), rmsprop(0, false, 0)},
		"rmsprop, centered": {
			optim.RMSprop{Alpha: 0.99, Epsilon: 1e-8, Momentum: 0.9, Centered: true, WeightDecay: 0.1, Decay: optim.DecayAll},
			rmsprop(0.9, true, 0.1),
		},
		"adagrad":        {optim.NewAdagrad(), adagrad(0, 0, 0)},
		"adagrad, decay": {optim.Adagrad{RateDecay: 0.1, Initial: 0.5, Epsilon: 1e-10, WeightDecay: 0.1, Decay: optim.DecayAll}, adagrad(0.1, 0.5, 0.1)},
		"lion":           {optim.Lion{Beta1: 0.9, Beta2: 0.99, WeightDecay: 0.3, Decay: optim.DecayAll}, lion(0.3)},
		"groups": {optim.Groups{{Optimizer: optim.NewAdam(), Rate: 0.5}}, func(s *weight, g []float64, t int, rate float64) {
			adam(0.9, 0.999, 1e-8, 0, false)(s, g, t, rate/2)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			shapes := [][]int{{3, 4}, {5}, {}}
			f, p := compile(t, shapes, c.optimizer, nil)
			want := make([]*weight, len(shapes))
			initial := p.Initial(1)
			for k, shape := range shapes {
				want[k] = start(initial[fmt.Sprint("w", k)], shape)
			}
			const steps = 50
			for step := 1; step <= steps; step++ {
				for k := range shapes {
					c.want(want[k], feed(t, f, k, step, len(want[k].w), 1), step, 0.01)
				}
				if err := f.Run(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			for k := range shapes {
				compare(t, f, k, want[k].w, 2e-6) // 50 roundings to f32 of values of order 1
			}
		})
	}
}

// compile makes a graph whose gradients are inputs. With a limit they are
// clipped.
func compile(t *testing.T, shapes [][]int, o optim.Optimizer, limit *float64) (*tensor.Function, *nn.Parameters) {
	t.Helper()
	ctx, g := t.Context(), tensor.NewGraph()
	p := nn.NewParameters(g)
	var gradients []*tensor.Tensor
	for k, shape := range shapes {
		p.Weight(fmt.Sprint("w", k), nn.Normal(1), shape...)
		gradients = append(gradients, g.State(fmt.Sprint("g", k), ir.F32, shape...))
	}
	trained := p.Trained()
	count := p.State("count", ir.F32, nn.Zeros(), 1)
	next := count.AddScalar(1)
	g.Store(count, next)
	if limit != nil {
		norm := optim.GlobalNorm(g, gradients)
		g.Output("norm", norm)
		gradients = optim.ClipNorm(gradients, norm, *limit)
	}
	now := optim.Moment{Rate: optim.Constant(0.01)(count), Count: next}
	optim.Apply(o, p.In("state"), trained, gradients, now)
	f, err := tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if err := p.Load(ctx, f, p.Initial(1)); err != nil {
		t.Fatal(err)
	}
	return f, p
}

func start(value nn.Value, shape []int) *weight {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	s := &weight{velocity: make([]float64, n), mean: make([]float64, n), square: make([]float64, n)}
	for _, v := range value.Float32s() {
		s.w = append(s.w, float64(v))
	}
	return s
}

// feed draws the gradient of weight k for a step and sets it.
func feed(t *testing.T, f *tensor.Function, k, step, n int, scale float64) []float64 {
	t.Helper()
	values := nn.Normal(scale).Fill(uint32(step), fmt.Sprint("g", k), []int{n})
	if err := tensor.Set(t.Context(), f, fmt.Sprint("g", k), values); err != nil {
		t.Fatal(err)
	}
	wide := make([]float64, n)
	for i, v := range values {
		wide[i] = float64(v)
	}
	return wide
}

func compare(t *testing.T, f *tensor.Function, k int, want []float64, tolerance float64) {
	t.Helper()
	got, err := tensor.Get[float32](t.Context(), f, fmt.Sprint("w", k))
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Abs(float64(got[i])-want[i]) > tolerance*math.Max(1, math.Abs(want[i])) {
			t.Errorf("w%d[%d]: got %v, want %v", k, i, got[i], want[i])
		}
	}
}

func TestDecayLeavesVectorsAlone(t *testing.T) {
	f, p := compile(t, [][]int{{2, 2}, {4}}, optim.NewAdamW(0.5), nil)
	initial := p.Initial(1)
	if err := f.Run(t.Context(), nil); err != nil { // gradients are zero
		t.Fatal(err)
	}
	for k, factor := range []float64{1 - 0.01*0.5, 1} {
		want := start(initial[fmt.Sprint("w", k)], []int{4}).w
		for i := range want {
			want[i] *= factor
		}
		compare(t, f, k, want, 1e-7)
	}
}

// Small gradients pass, large ones shrink to the limit together.
func TestClipNorm(t *testing.T) {
	limit := 2.0
	shapes := [][]int{{3, 4}, {5}, {}}
	for _, scale := range []float64{0.1, 10} {
		f, p := compile(t, shapes, optim.SGD{}, &limit)
		initial := p.Initial(1)
		squares := 0.0
		var gradients [][]float64
		for k, n := range []int{12, 5, 1} {
			gradients = append(gradients, feed(t, f, k, 1, n, scale))
			for _, v := range gradients[k] {
				squares += v * v
			}
		}
		if err := f.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		norm, err := tensor.Get[float32](t.Context(), f, "norm")
		if err != nil || math.Abs(float64(norm[0])-math.Sqrt(squares)) > 1e-6*math.Sqrt(squares) {
			t.Errorf("norm: got %v, %v, want %v", norm, err, math.Sqrt(squares))
		}
		factor := math.Min(1, limit/math.Sqrt(squares))
		for k := range shapes {
			want := start(initial[fmt.Sprint("w", k)], []int{len(gradients[k])}).w
			for i := range want {
				want[i] -= 0.01 * factor * gradients[k][i]
			}
			compare(t, f, k, want, 1e-6)
		}
	}
}

func TestSchedules(t *testing.T) {
	steps := []float64{0, 1, 9, 10, 11, 19, 20, 30, 60, 109, 110, 200, 1000}
	for name, c := range map[string]struct {
		schedule optim.Schedule
		want     func(step float64) float64
	}{
		"constant": {optim.Constant(0.3), func(float64) float64 { return 0.3 }},
		"cosine": {optim.Cosine(2, 0.5, 10, 110), func(step float64) float64 {
			if step < 10 {
				return 2 * (step + 1) / 10
			}
			return 0.5 + 0.75*(1+math.Cos(math.Pi*math.Min((step-10)/100, 1)))
		}},
		"linear": {optim.Linear(2, 0.5, 10, 110), func(step float64) float64 {
			if step < 10 {
				return 2 * (step + 1) / 10
			}
			return 2 - 1.5*math.Min((step-10)/100, 1)
		}},
		"one cycle":  {optim.OneCycle(2, 200), oneCycle},
		"no warm-up": {optim.Cosine(1, 0, 0, 100), func(step float64) float64 { return 0.5 * (1 + math.Cos(math.Pi*math.Min(step/100, 1))) }},
		"stairs":     {optim.Stairs(0.8, 0.5, 10), func(step float64) float64 { return 0.8 * math.Pow(0.5, math.Floor(step/10)) }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, g := t.Context(), tensor.NewGraph()
			g.Output("rate", c.schedule(g.Input("step", ir.F32, 1)).AddScalar(0))
			f, err := tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, step := range steps {
				if err := tensor.Set(ctx, f, "step", []float32{float32(step)}); err != nil && name != "constant" {
					t.Fatal(err)
				}
				if err := f.Run(ctx, nil); err != nil {
					t.Fatal(err)
				}
				got, err := tensor.Get[float32](ctx, f, "rate")
				if want := c.want(step); err != nil || math.Abs(float64(got[0])-want) > 1e-6 {
					t.Errorf("step %v: got %v, %v, want %v", step, got, err, want)
				}
			}
		})
	}
}

// oneCycle follows torch.optim.lr_scheduler.OneCycleLR(max_lr=2, total_steps=200).
func oneCycle(step float64) float64 {
	anneal := func(start, end, done float64) float64 { return end + (start-end)/2*(1+math.Cos(math.Pi*done)) }
	if turn := 0.3*200 - 1; step <= turn {
		return anneal(2./25, 2, step/turn)
	}
	return anneal(2, 2./25/1e4, math.Min((step-59)/(199-59), 1))
}

// What an update stores of one parameter is one kernel, one pass over it.
func TestUpdateIsOneKernel(t *testing.T) {
	for name, o := range map[string]optim.Optimizer{
		"sgd": optim.SGD{Momentum: 0.9}, "nesterov": optim.SGD{Momentum: 0.9, Nesterov: true, WeightDecay: 0.01},
		"adam": optim.NewAdam(), "adamw": optim.NewAdamW(0.01), "rmsprop": optim.NewRMSprop(),
		"adagrad": optim.NewAdagrad(),
	} {
		kernels := func(shapes ...[]int) (n int) {
			f, _ := compile(t, shapes, o, nil)
			for _, launch := range f.Step().Compiled.Launches {
				n += len(launch)
			}
			return n
		}
		one, three := kernels([]int{8, 16}), kernels([]int{8, 16}, []int{16}, []int{2, 3, 5})
		if three != one+2 {
			t.Errorf("%s: %d kernels with one parameter, %d with three, want 2 more", name, one, three)
		}
	}
}
