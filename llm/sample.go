package llm

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/target"
	"tgc/tensor"
)

// Sampling says how the next token is drawn from logits. The order is
// temperature, then top-k, then top-p.
type Sampling struct {
	Temperature float64 // 0 is greedy
	TopK        int     // keep the k largest (and equals of the last); 0 keeps all
	TopP        float64 // keep the fewest largest whose probabilities reach p; 1 keeps all
	Seed        uint32
}

// Check reports an option out of range.
func (s Sampling) Check() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 0):
		return fmt.Errorf("temperature is %v, want 0 or more", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("top-k is %d, want 0 or more", s.TopK)
	case !(s.TopP > 0 && s.TopP <= 1):
		return fmt.Errorf("top-p is %v, want above 0 and up to 1", s.TopP)
	}
	return nil
}

// BuildGreedy makes the graph that picks the largest of logits [B, V]: i32 [B].
func BuildGreedy(batch, vocabulary int) *tensor.Graph {
	g := tensor.NewGraph()
	g.Output("token", g.Input(BufferLogits, ir.F32, batch, vocabulary).Argmax(-1))
	return g
}

// BuildSampler makes the graph that draws a token from logits [1, V]: i32 [1].
// "floats" is f32 [2]: 1/temperature and top-p; "words" is u32 [3]: top-k, seed
// and the counter of the draw. Sums over the vocabulary are made in so many
// parts, a divisor of it.
func BuildSampler(vocabulary, parts int) *tensor.Graph {
	g := tensor.NewGraph()
	logits := g.Input(BufferLogits, ir.F32, 1, vocabulary)
	floats, words := g.Input(bufferFloats, ir.F32, 2), g.Input(bufferWords, ir.U32, 3)
	g.Output("token", drawToken(logits, floats, words, parts))
	return g
}

// Options of a draw in device buffers.
const (
	bufferFloats = "floats"
	bufferWords  = "words"
)

// drawToken draws from logits [1, V] as floats and words say: i32 [1].
//
// No sort: thresholds are found digit by digit over the order-preserving
// integer image of the logits, and the draw is the largest of logit + Gumbel
// noise (Gumbel 1954), which picks each token with its softmax probability.
func drawToken(logits, floats, words *tensor.Tensor, parts int) *tensor.Tensor {
	g, vocabulary := logits.Graph(), logits.Extent(1)
	scaled := logits.Reshape(vocabulary).Mul(floats.SliceInts(0, 0, 1)).Contiguous()
	key := orderedKey(scaled)

	one, none := g.Scalar(ir.F32, 1), g.Scalar(ir.F32, 0)
	k := words.SliceInts(0, 0, 1).Cast(ir.F32)
	least := threshold(key, parts, func(kept *tensor.Tensor) *tensor.Tensor {
		return kept.Where(one, none)
	}, k)
	inK := least.Le(key)

	weight := inK.Where(scaled.Sub(scaled.MaxKeep(0)).Exp(), none).Contiguous()
	goal := weight.SumKeep(0).Mul(floats.SliceInts(0, 1, 1))
	least = least.Maximum(threshold(key, parts, func(kept *tensor.Tensor) *tensor.Tensor {
		return kept.Where(weight, none)
	}, goal))

	seed, draw := words.SliceInts(0, 1, 1), words.SliceInts(0, 2, 1)
	counter := draw.Mul(g.Scalar(ir.U32, float64(vocabulary))).Add(g.Iota(ir.U32, g.Dims(vocabulary)[0]))
	noisy := scaled.Add(gumbel(seed.Rng(counter)))
	lowest := g.Scalar(ir.F32, math.Inf(-1))
	choice := least.Le(key).Where(noisy, lowest)
	return choice.Argmax(0).Reshape(1)
}

// orderedKey maps floats to u32 so that order is kept.
func orderedKey(x *tensor.Tensor) *tensor.Tensor {
	g := x.Graph()
	bits := x.Bitcast(ir.U32)
	sign := g.Scalar(ir.U32, 1<<31)
	return bits.Lt(sign).Where(bits.Or(sign), bits.Not())
}

// threshold finds the largest u32 c such that the weights of keys at or above c
// sum to at least goal [1], four bits at a time: [1].
func threshold(key *tensor.Tensor, parts int, weigh func(kept *tensor.Tensor) *tensor.Tensor, goal *tensor.Tensor) *tensor.Tensor {
	g := key.Graph()
	const bits = 4
	digits := g.Iota(ir.U32, g.Dims(1<<bits - 1)[0]).AddScalar(1) // 1..15
	found := g.Scalar(ir.U32, 0).Add(g.Iota(ir.U32, g.Dims(1)[0]))
	yes, no := g.Scalar(ir.U32, 1), g.Scalar(ir.U32, 0)
	for shift := 32 - bits; shift >= 0; shift -= bits {
		step := g.Scalar(ir.U32, float64(uint32(1)<<shift))
		candidates := found.Add(digits.Mul(step)) // [15]
		kept := weigh(candidates.Unsqueeze(1).Le(key))
		if parts > 1 {
			kept = kept.Reshape(1<<bits-1, parts, -1).Sum(2).Contiguous()
		}
		sums := kept.Sum(1)
		digit := goal.Le(sums).Where(yes, no).SumKeep(0)
		found = found.Add(digit.Mul(step)).Contiguous()
	}
	return found
}

// SumParts is in how many parts a target sums over n logits. On a CPU all sums
// of a digit are made in one pass; a GPU needs work for all of it, and takes the
// largest divisor of n up to 128.
func SumParts(n int, desc *target.Desc) int {
	parts := 1
	for d := 2; desc.Kind == target.GPU && d <= 128; d++ {
		if n%d == 0 {
			parts = d
		}
	}
	return parts
}

// gumbel turns uniform u32 words into Gumbel noise: -ln(-ln(u)), u in (0, 1).
func gumbel(words *tensor.Tensor) *tensor.Tensor {
	// 23 bits and a half step keep u off both ends.
	u := words.Shr(words.Graph().Scalar(ir.U32, 9)).Cast(ir.F32).AddScalar(0.5).MulScalar(1.0 / (1 << 23))
	return u.Log().Neg().Log().Neg()
}

// sampler is a compiled sampling graph with its own small buffers, bound to
// the logits of one step.
type sampler struct {
	step   *engine.Step
	memory map[string]runtime.Memory
	draws  uint32
}

// newSampler compiles a sampling graph for logits that lie in memory.
func newSampler(ctx context.Context, dev runtime.Device, config engine.Config, g *tensor.Graph, logits runtime.Memory) (*sampler, error) {
	sink, err := g.Sink()
	if err != nil {
		return nil, err
	}
	compiled, err := engine.Compile(ctx, sink, dev.Target(), config)
	if err != nil {
		return nil, fmt.Errorf("compiling the sampler: %w", err)
	}
	s := &sampler{memory: make(map[string]runtime.Memory)}
	buffers := make(map[int64]runtime.Memory)
	for _, b := range g.Buffers() {
		if b.Name == BufferLogits {
			buffers[b.ID] = logits
			continue
		}
		m, err := dev.Alloc(ctx, bytesOf(b))
		if err != nil {
			s.close()
			return nil, err
		}
		buffers[b.ID], s.memory[b.Name] = m, m
	}
	if s.step, err = engine.Capture(ctx, dev, compiled, buffers); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *sampler) close() {
	if s.step != nil {
		s.step.Free()
	}
	for _, m := range s.memory {
		m.Free()
	}
}

// draw picks the next token.
func (s *sampler) draw(ctx context.Context, opt Sampling, vocabulary int) (int32, error) {
	if words, ok := s.memory[bufferWords]; ok {
		if err := writeSampling(ctx, s.memory[bufferFloats], words, opt, s.draws, vocabulary); err != nil {
			return 0, err
		}
		s.draws++
	}
	if err := s.step.Run(ctx, nil); err != nil {
		return 0, err
	}
	raw := make([]byte, 4)
	if err := s.memory["token"].Read(ctx, 0, raw); err != nil {
		return 0, err
	}
	return int32(binary.LittleEndian.Uint32(raw)), nil
}

// writeSampling fills the buffers of a draw: floats and words of drawToken.
func writeSampling(ctx context.Context, floats, words runtime.Memory, opt Sampling, draws uint32, vocabulary int) error {
	k := opt.TopK
	if k == 0 || k > vocabulary {
		k = vocabulary
	}
	raw := binary.LittleEndian.AppendUint32(nil, uint32(k))
	raw = binary.LittleEndian.AppendUint32(raw, opt.Seed)
	raw = binary.LittleEndian.AppendUint32(raw, draws)
	if err := words.Write(ctx, 0, raw); err != nil {
		return err
	}
	raw = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(1/opt.Temperature)))
	raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(opt.TopP)))
	return floats.Write(ctx, 0, raw)
}
