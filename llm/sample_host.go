package llm

import (
	"cmp"
	"context"
	"math"
	"slices"

	"tgc/ir"
)

// Draws on the host: what the compiled samplers do not know (a bias, a penalty for
// repetition, min-p) takes the logits there, a row of the vocabulary a token.

// onHost tells whether a draw needs the host.
func (s Sampling) onHost() bool {
	return s.MinP > 0 || s.RepeatPenalty != 0 && s.RepeatPenalty != 1 || len(s.Bias) > 0
}

// repeatWindow is how many of the last tokens a penalty looks at, llama.cpp's default.
const repeatWindow = 64

// adjust applies bias and penalty to logits in place. A token that occurs among recent
// becomes less likely once, however often it occurs (Keskar et al. 2019).
func (s Sampling) adjust(logits []float32, recent []int32) {
	for id, bias := range s.Bias {
		if int(id) < len(logits) {
			logits[id] += bias
		}
	}
	if s.RepeatPenalty == 0 || s.RepeatPenalty == 1 {
		return
	}
	penalty := float32(s.RepeatPenalty)
	seen := make(map[int32]bool)
	for _, id := range recent[max(len(recent)-repeatWindow, 0):] {
		if seen[id] || id < 0 || int(id) >= len(logits) {
			continue
		}
		seen[id] = true
		if logits[id] > 0 {
			logits[id] /= penalty
		} else {
			logits[id] *= penalty
		}
	}
}

// pick draws a token from logits, which it changes: as drawToken does, with the same
// noise, and min-p last. draw counts the draws before this one.
func (s Sampling) pick(logits []float32, recent []int32, draw uint32) int32 {
	s.adjust(logits, recent)
	if s.Temperature == 0 {
		return argmax(logits)
	}
	vocabulary := uint32(len(logits))
	for i := range logits {
		logits[i] *= float32(1 / s.Temperature)
	}
	lowest := s.lowestKept(logits)
	best, choice := float32(math.Inf(-1)), int32(0)
	for i, v := range logits {
		if !(v >= lowest) {
			continue
		}
		word := ir.Threefry(s.Seed, draw*vocabulary+uint32(i))
		u := (float32(word>>9) + 0.5) / (1 << 23)
		noisy := v - float32(math.Log(float64(-float32(math.Log(float64(u))))))
		if noisy > best {
			best, choice = noisy, int32(i)
		}
	}
	return choice
}

func argmax(values []float32) int32 {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return int32(best)
}

// lowestKept is the smallest logit that top-k, then top-p, then min-p keep.
func (s Sampling) lowestKept(logits []float32) float32 {
	sorted := s.candidates(logits)
	weights := make([]float64, len(sorted))
	total := 0.0
	for i, v := range sorted {
		weights[i] = math.Exp(float64(v - sorted[0]))
		total += weights[i]
	}
	lowest, mass := sorted[len(sorted)-1], 0.0
	for i, w := range weights {
		if mass += w; mass >= s.TopP*total {
			lowest = sorted[i]
			break
		}
	}
	for i, w := range weights { // relative to that of the likeliest one, which is 1
		if w < s.MinP {
			return max(lowest, sorted[i-1])
		}
	}
	return lowest
}

// candidates are the logits that top-k keeps, the largest first.
func (s Sampling) candidates(logits []float32) []float32 {
	descending := func(a, b float32) int { return cmp.Compare(b, a) }
	if s.TopK == 0 || s.TopK >= len(logits) {
		sorted := slices.Clone(logits)
		slices.SortFunc(sorted, descending)
		return sorted
	}
	top := make([]float32, 0, s.TopK+1)
	equals := 0 // of the last one, beyond the k
	for _, v := range logits {
		full := len(top) == s.TopK
		if full && v == top[s.TopK-1] {
			equals++
		}
		if full && !(v > top[s.TopK-1]) {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, v, descending)
		top = slices.Insert(top, at, v)
		if full {
			out := top[s.TopK]
			top = top[:s.TopK]
			if equals++; top[s.TopK-1] != out {
				equals = 0
			}
		}
	}
	return append(top, slices.Repeat([]float32{top[len(top)-1]}, equals)...)
}

// next draws the token after the last one fed, on the device or the host. recent are
// the tokens so far.
func (s *Session) next(ctx context.Context, opt Sampling, recent []int32) (int32, error) {
	if !opt.onHost() {
		return s.Sample(ctx, opt)
	}
	logits, err := s.logits(ctx)
	if err != nil {
		return 0, err
	}
	draw := s.hostDraws
	s.hostDraws++
	return opt.pick(logits[len(logits)-s.model.Config.Vocabulary:], recent, draw), nil
}
