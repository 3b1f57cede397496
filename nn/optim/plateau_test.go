package optim_test

import (
	"math"
	"testing"

	"tgc/nn"
	"tgc/nn/optim"
)

// reducer is torch.optim.lr_scheduler.ReduceLROnPlateau (threshold_mode "rel"), with its state.
type reducer struct {
	factor, threshold, least      float64
	patience, cooldown, bad, cool int
	best, rate                    float64
	larger                        bool
}

func (r *reducer) step(v float64) {
	better := v < r.best*(1-r.threshold)
	if r.larger {
		better = v > r.best*(1+r.threshold)
	}
	if better {
		r.best, r.bad = v, 0
	} else {
		r.bad++
	}
	if r.cool > 0 {
		r.cool--
		r.bad = 0
	}
	if r.bad > r.patience {
		r.rate = math.Max(r.rate*r.factor, r.least)
		r.cool, r.bad = r.cooldown, 0
	}
}

// Values that fall with noise, and rising ones.
func TestPlateau(t *testing.T) {
	noise := nn.Normal(0.05).Fill(5, "noise", []int{80})
	for name, larger := range map[string]bool{"smaller": false, "larger": true} {
		p := optim.Plateau{Factor: 0.5, Patience: 2, Cooldown: 3, Threshold: 0.01, Least: 0.01, Larger: larger}
		want := reducer{factor: 0.5, threshold: 0.01, least: 0.01, patience: 2, cooldown: 3, best: math.Inf(1), rate: 1, larger: larger}
		if larger {
			want.best = math.Inf(-1)
		}
		var values []float64
		reduced := 0
		for i, x := range noise {
			v := 1 + math.Exp(-float64(i)/10) + float64(x)
			if larger {
				v = 4 - v
			}
			before := want.rate
			want.step(v)
			if want.rate != before {
				reduced++
			}
			if values = append(values, v); p.Rate(values) != want.rate {
				t.Fatalf("%s: after %d values the factor is %v, want %v", name, len(values), p.Rate(values), want.rate)
			}
		}
		if reduced < 4 {
			t.Errorf("%s: reduced %d times only", name, reduced)
		}
	}
	if f := (optim.Plateau{}).Rate([]float64{1, 1, 1}); math.Abs(f-0.01) > 1e-15 {
		t.Errorf("without options the factor is %v, want 0.01", f)
	}
}
