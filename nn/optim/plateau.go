package optim

import "math"

// Plateau lowers the learning rate when a value that is watched stops getting better, as
// PyTorch's ReduceLROnPlateau does. It keeps nothing: its factor is a function of all values
// up to now, so that a resumed run has the same.
type Plateau struct {
	Factor    float64 // of each reduction, below 1; 0 for 0.1
	Patience  int     // values in a row that are not better and change nothing; the next one reduces
	Cooldown  int     // values after a reduction that do not count
	Threshold float64 // a value is better if it is by this share of the best; 0 for 1e-4
	Least     float64 // the factor does not fall below this
	Larger    bool    // larger values are better: an accuracy, say
}

// Rate is the factor of the learning rate after these values.
func (p Plateau) Rate(values []float64) float64 {
	step, share := p.Factor, p.Threshold
	if step == 0 {
		step = 0.1
	}
	if share == 0 {
		share = 1e-4
	}
	factor, best, bad, cool := 1.0, math.Inf(1), 0, 0
	if p.Larger {
		best = math.Inf(-1)
	}
	for _, v := range values {
		bad++
		if p.Larger && v > best*(1+share) || !p.Larger && v < best*(1-share) {
			best, bad = v, 0
		}
		if cool > 0 {
			cool, bad = cool-1, 0
		}
		if bad > p.Patience {
			factor, bad, cool = max(factor*step, p.Least), 0, p.Cooldown
		}
	}
	return factor
}
