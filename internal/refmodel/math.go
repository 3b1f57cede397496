package refmodel

import "math"

// times is the matrix-vector product.
func (m matrix) times(x []float64) []float64 {
	y := make([]float64, m.rows)
	for i := range y {
		sum := 0.0
		for k, w := range m.row(i) {
			sum += float64(w) * x[k]
		}
		y[i] = sum
	}
	return y
}

// apply is the product plus the bias.
func (l linear) apply(x []float64) []float64 {
	y := l.times(x)
	for i := range l.bias {
		y[i] += float64(l.bias[i])
	}
	return y
}

// rmsNorm is x / sqrt(mean(x^2) + epsilon) * weight.
func rmsNorm(x []float64, weight []float32, epsilon float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	r := 1 / math.Sqrt(sum/float64(len(x))+epsilon)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * r * float64(weight[i])
	}
	return y
}

// layerNorm is (x - mean) / sqrt(variance + epsilon) * weight + bias.
func layerNorm(x []float64, n norm, epsilon float64) []float64 {
	mean := 0.0
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	r := 1 / math.Sqrt(variance/float64(len(x))+epsilon)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v - mean) * r * float64(n.weight[i])
		if n.bias != nil {
			y[i] += float64(n.bias[i])
		}
	}
	return y
}

// softmax replaces x by exp(x)/sum(exp(x)).
func softmax(x []float64) {
	largest := math.Inf(-1)
	for _, v := range x {
		largest = max(largest, v)
	}
	sum := 0.0
	for i, v := range x {
		x[i] = math.Exp(v - largest)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

// softCap is limit*tanh(x/limit) (Gemma 2); a limit of 0 is none.
func softCap(x, limit float64) float64 {
	if limit == 0 {
		return x
	}
	return limit * math.Tanh(x/limit)
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

// gelu is the tanh approximation, the one that GPT-2 was trained with. llama.cpp
// rounds its argument and its value to f16 on most CPUs (a table of 65,536
// values); the reference does not.
func gelu(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// largest returns the places of the n largest values, largest first; of equal
// ones the earlier comes first.
func largest(x []float64, n int) []int {
	var chosen []int
	taken := make([]bool, len(x))
	for range n {
		best := -1
		for i, v := range x {
			if !taken[i] && (best < 0 || v > x[best]) {
				best = i
			}
		}
		taken[best] = true
		chosen = append(chosen, best)
	}
	return chosen
}
