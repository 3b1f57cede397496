package llm

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/tensor"
)

// Sampling says how the next token is drawn from logits. The order is bias, penalty,
// temperature, top-k, top-p, min-p.
type Sampling struct {
	Temperature float64 // 0 is greedy
	TopK        int     // keep the k largest (and equals of the last); 0 keeps all
	TopP        float64 // keep the fewest largest whose probabilities reach p; 1 keeps all, and greedy takes 0 too
	Seed        uint32

	// These take the logits to the host (sample_host.go), and a Batch has not got them.
	MinP          float64           // keep what has at least this part of the largest probability; 0 keeps all
	RepeatPenalty float64           // divides (or, below 0, multiplies) logits of recent tokens; 0 and 1 do nothing
	Bias          map[int32]float32 // is added to logits of tokens
}

// Check reports an option out of range.
func (s Sampling) Check() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 0):
		return fmt.Errorf("temperature is %v, want 0 or more", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("top-k is %d, want 0 or more", s.TopK)
	case !(s.TopP > 0 && s.TopP <= 1) && !(s.TopP == 0 && s.Temperature == 0): // the zero value is greedy
		return fmt.Errorf("top-p is %v, want above 0 and up to 1", s.TopP)
	case !(s.MinP >= 0 && s.MinP <= 1):
		return fmt.Errorf("min-p is %v, want 0 to 1", s.MinP)
	case !(s.RepeatPenalty >= 0) || math.IsInf(s.RepeatPenalty, 0):
		return fmt.Errorf("the repeat penalty is %v, want above 0 (1 does nothing)", s.RepeatPenalty)
	}
	for id, bias := range s.Bias {
		if id < 0 || bias != bias {
			return fmt.Errorf("the bias of token %d is %v, want a number for a token of the vocabulary", id, bias)
		}
	}
	return nil
}

// BuildGreedy makes the graph that picks the largest of logits [B, V]: i32 [B].
func BuildGreedy(batch, vocabulary int) *tensor.Graph {
	g := tensor.NewGraph()
	g.Output("token", g.Input(BufferLogits, ir.F32, batch, vocabulary).Argmax(-1))
	return g
}

// BuildSampler makes the graph that draws a token from each of logits [B, V]:
// i32 [B]. "floats" is f32 [B, 2]: 1/temperature and top-p; "words" is u32 [B, 3]:
// top-k, seed and the counter of the draw.
func BuildSampler(batch, vocabulary int) *tensor.Graph {
	g := tensor.NewGraph()
	logits := g.Input(BufferLogits, ir.F32, batch, vocabulary)
	floats, words := g.Input(bufferFloats, ir.F32, batch, 2), g.Input(bufferWords, ir.U32, batch, 3)
	g.Output("token", drawToken(logits, floats, words))
	return g
}

// Options of a draw in device buffers.
const (
	bufferFloats = "floats"
	bufferWords  = "words"
)

// drawToken draws from logits [B, V] as floats [B, 2] and words [B, 3] say: i32
// [B].
//
// No sort: thresholds are found digit by digit over the order-preserving
// integer image of the logits, and the draw is the largest of logit + Gumbel
// noise (Gumbel 1954), which picks each token with its softmax probability.
func drawToken(logits, floats, words *tensor.Tensor) *tensor.Tensor {
	g, vocabulary := logits.Graph(), logits.Extent(1)
	scaled := logits.Mul(floats.SliceInts(1, 0, 1))
	key := orderedKey(scaled)

	one, zero := g.Scalar(ir.F32, 1), g.Scalar(ir.F32, 0)
	k := words.SliceInts(1, 0, 1).Cast(ir.F32)
	lowest := threshold(key, func(atLeast *tensor.Tensor) *tensor.Tensor {
		return atLeast.Where(one, zero)
	}, k)
	inK := lowest.Le(key) // [B, V]

	weight := inK.Where(scaled.Sub(scaled.MaxKeep(1)).Exp(), zero)
	mass := weight.SumKeep(1).Mul(floats.SliceInts(1, 1, 1)) // [B, 1]: what is to be kept, of all weights
	lowest = lowest.Maximum(threshold(key, func(atLeast *tensor.Tensor) *tensor.Tensor {
		return atLeast.Where(weight.Unsqueeze(1), zero)
	}, mass))

	seed, draw := words.SliceInts(1, 1, 1), words.SliceInts(1, 2, 1)
	counter := draw.Mul(g.Scalar(ir.U32, float64(vocabulary))).Add(g.Iota(ir.U32, g.Dims(vocabulary)[0]))
	noisy := scaled.Add(gumbel(seed.Rng(counter)))
	choice := lowest.Le(key).Where(noisy, g.Scalar(ir.F32, math.Inf(-1)))
	return choice.Argmax(1)
}

// orderedKey maps floats to u32 so that order is kept.
func orderedKey(x *tensor.Tensor) *tensor.Tensor {
	g := x.Graph()
	bits := x.Bitcast(ir.U32)
	sign := g.Scalar(ir.U32, 1<<31)
	return bits.Lt(sign).Where(bits.Or(sign), bits.Not())
}

// threshold finds for each row of key [B, V] the largest u32 c such that the
// weights of keys at or above c sum to at least want [B, 1], four bits at a time:
// u32 [B, 1]. weigh gets for each of 15 candidates whether each key is at or above it,
// bool [B, 15, V], and returns f32 weights of that shape, 0 where it is not.
func threshold(key *tensor.Tensor, weigh func(atLeast *tensor.Tensor) *tensor.Tensor, want *tensor.Tensor) *tensor.Tensor {
	g, batch := key.Graph(), key.Extent(0)
	const bits = 4
	digits := g.Iota(ir.U32, g.Dims(1<<bits - 1)[0]).AddScalar(1) // 1..15
	found := g.Scalar(ir.U32, 0).Reshape(1, 1).Expand(batch, 1)
	yes, no := g.Scalar(ir.U32, 1), g.Scalar(ir.U32, 0)
	for shift := 32 - bits; shift >= 0; shift -= bits {
		step := g.Scalar(ir.U32, float64(uint32(1)<<shift))
		candidates := found.Add(digits.Mul(step)) // [B, 15]
		atLeast := candidates.Unsqueeze(2).Le(key.Unsqueeze(1))
		sums := weigh(atLeast).SumInParts(2) // [B, 15]
		digit := want.Le(sums).Where(yes, no).SumKeep(1)
		// A buffer of its own: a digit alone is light work, but without one all blocks of a round
		// would repeat the digits of all rounds before (of 32,000 logits of four sequences, 31
		// times the instructions, sm_90).
		found = found.Add(digit.Mul(step)).Contiguous()
	}
	return found
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
	draws  []uint32 // of each sequence
}

// newSampler compiles a sampling graph for logits that lie in memory.
func (s *Session) newSampler(ctx context.Context, greedy bool, logits runtime.Memory) (p *sampler, err error) {
	done, err := s.compile(ctx, s.samplerJob(greedy))
	if err != nil {
		return nil, err
	}
	p = &sampler{memory: make(map[string]runtime.Memory), draws: make([]uint32, s.sequences)}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	buffers := make(map[int64]runtime.Memory)
	for _, b := range done.graph.Buffers() {
		if b.Name == BufferLogits {
			buffers[b.ID] = logits
			continue
		}
		m, err := s.device.Alloc(ctx, bytesOf(b))
		if err != nil {
			return p, err
		}
		buffers[b.ID], p.memory[b.Name] = m, m
	}
	return p, s.loading(func() error {
		p.step, err = engine.Capture(ctx, s.device, done.compiled, buffers)
		return err
	})
}

func (s *sampler) close() {
	if s.step != nil {
		s.step.Free()
	}
	for _, m := range s.memory {
		m.Free()
	}
}

// draw picks the next token of every sequence, as its own options say.
func (s *sampler) draw(ctx context.Context, opts []Sampling, vocabulary int) ([]int32, error) {
	if words, ok := s.memory[bufferWords]; ok {
		if err := writeSampling(ctx, s.memory[bufferFloats], words, opts, s.draws, vocabulary); err != nil {
			return nil, err
		}
		for i := range s.draws {
			s.draws[i]++
		}
	}
	if err := s.step.Run(ctx, nil); err != nil {
		return nil, err
	}
	raw := make([]byte, 4*len(opts))
	if err := s.memory["token"].Read(ctx, 0, raw); err != nil {
		return nil, err
	}
	return int32s(raw), nil
}

// writeSampling fills the buffers of a draw: floats and words of drawToken.
func writeSampling(ctx context.Context, floats, words runtime.Memory, opts []Sampling, draws []uint32, vocabulary int) error {
	var f, w []byte
	for i, opt := range opts {
		k := opt.TopK
		if k == 0 || k > vocabulary {
			k = vocabulary
		}
		for _, word := range []uint32{uint32(k), opt.Seed, draws[i]} {
			w = binary.LittleEndian.AppendUint32(w, word)
		}
		for _, v := range []float64{1 / opt.Temperature, opt.TopP} {
			f = binary.LittleEndian.AppendUint32(f, math.Float32bits(float32(v)))
		}
	}
	if err := words.Write(ctx, 0, w); err != nil {
		return err
	}
	return floats.Write(ctx, 0, f)
}
