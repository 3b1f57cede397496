package synth

import (
	"fmt"
	"math"
	"slices"

	"tgc/gguf"
	"tgc/internal/lists"
)

// Tensor is one tensor of a model, without its numbers.
type Tensor struct {
	Name string
	Type gguf.Type
	Dims []int // row length first, as gguf has it

	mean, std float64   // of the values
	values    []float32 // if they are not random
}

// The spreads below are for inputs of unit variance, which norms see to, and are
// given as the spread of a matrix's output: a weight's is that over the square
// root of the row length.
const (
	queryGain  = 1.22 // attention scores of spread 1.5 after scaling
	valueGain  = 1.2
	joinGain   = 0.7 // attention's addition to the residual stream
	gateGain   = 1.2
	downGain   = 0.8
	expertGain = 1.2 // down projection of one of several experts
	routerGain = 2
	logitGain  = 3 // logits of spread 3: sampling has something to choose
	embedStd   = 0.5
	biasStd    = 0.05
)

// layout collects the tensors of a model in the order of published files.
type layout struct {
	shape   *Shape
	tensors []Tensor
}

// Tensors returns all tensors of the model.
func (s Shape) Tensors() []Tensor {
	l := &layout{shape: &s}
	if families[s.Architecture].learned {
		l.gpt2()
	} else {
		l.llama()
	}
	return l.tensors
}

// matrix adds a quantised matrix; experts, if not 0, is its slowest dimension.
func (l *layout) matrix(name string, r role, layer, columns, rows, experts int, gain float64) {
	dims := []int{columns, rows}
	if experts > 0 {
		dims = append(dims, experts)
	}
	t := l.shape.typeOf(r, layer, columns)
	if mixed := l.shape.mixture.experts; experts > 0 && mixed != gguf.F32 && columns%mixed.Info().Elements == 0 {
		t = mixed
	}
	l.tensors = append(l.tensors, Tensor{
		Name: name + ".weight",
		Type: t,
		Dims: dims,
		std:  gain / math.Sqrt(float64(columns)),
	})
}

// biased adds a matrix with a bias for each of its rows.
func (l *layout) biased(name string, r role, layer, columns, rows, experts int, gain float64) {
	l.matrix(name, r, layer, columns, rows, experts, gain)
	l.bias(name, rows, experts)
}

// bias adds the bias of a matrix.
func (l *layout) bias(name string, rows, experts int) {
	dims := []int{rows}
	if experts > 0 {
		dims = append(dims, experts)
	}
	l.floats(name+".bias", 0, biasStd, dims...)
}

// part adds a matrix of a block, with its bias if the family has one.
func (l *layout) part(block, name string, r role, layer, columns, rows, experts int, gain float64) {
	l.matrix(block+name, r, layer, columns, rows, experts, gain)
	if slices.Contains(l.family().biases, name) {
		l.bias(block+name, rows, experts)
	}
}

func (l *layout) family() *family { return families[l.shape.Architecture] }

// floats adds an F32 tensor: norms, biases, small matrices.
func (l *layout) floats(name string, mean, std float64, dims ...int) {
	l.tensors = append(l.tensors, Tensor{Name: name, Type: gguf.F32, Dims: dims, mean: mean, std: std})
}

// norm adds the weights of a norm over n values.
func (l *layout) norm(name string, n int) { l.floats(name+".weight", 1, 0.1, n) }

// embedding adds the token embedding, which may serve as output matrix too.
func (l *layout) embedding() {
	s := l.shape
	r, gain := embedRole, embedStd*math.Sqrt(float64(s.Width))
	if s.Tied {
		r, gain = outputRole, logitGain
	}
	l.matrix("token_embd", r, 0, s.Width, s.Vocabulary, 0, gain)
}

// llama lays out the families of Llama: attention with rotary positions and a gated
// feed-forward part, dense or by experts, with norms before or after.
func (l *layout) llama() {
	s, f := l.shape, l.family()
	l.embedding()
	l.ropeFactors()
	for i := range s.Layers {
		block := fmt.Sprintf("blk.%d.", i)
		l.attention(block, i)
		if f.normAfter {
			l.norm(block+"post_attention_norm", s.Width)
		}
		switch {
		case f.normBeforeFeed != "":
			l.norm(block+f.normBeforeFeed, s.Width)
		case !f.noNormBefore:
			l.norm(block+"ffn_norm", s.Width)
		}
		l.feedForward(block, i)
		if f.normAfter {
			l.norm(block+"post_ffw_norm", s.Width)
		}
	}
	l.norm("output_norm", s.Width)
	if !s.Tied {
		l.matrix("output", outputRole, 0, s.Width, s.Vocabulary, 0, logitGain)
	}
}

// ropeFactors adds what rotary frequencies are divided by, where a model has that.
func (l *layout) ropeFactors() {
	s := l.shape
	add := func(name string, values []float32) {
		l.tensors = append(l.tensors, Tensor{Name: name + ".weight", Type: gguf.F32, Dims: []int{len(values)}, values: values})
	}
	if s.ropeScaling != nil {
		add("rope_freqs", s.ropeScaling.factors(s.HeadSize, s.RopeBase))
	}
	if l.family().longFactors { // both rise along the head; those for long contexts further
		half := s.HeadSize / 2
		rise := func(to float64) []float32 {
			return lists.Make(half, func(i int) float32 { return float32(math.Pow(to, float64(i)/float64(half))) })
		}
		add("rope_factors_long", rise(60))
		add("rope_factors_short", rise(2))
	}
}

func (l *layout) attention(block string, layer int) {
	s, f := l.shape, l.family()
	queries, keys := s.Heads*s.HeadSize, s.KVHeads*s.HeadSize
	if !f.noNormBefore {
		l.norm(block+"attn_norm", s.Width)
	}
	if f.fused {
		l.part(block, "attn_qkv", valueRole, layer, s.Width, queries+2*keys, 0, valueGain)
	} else {
		l.part(block, "attn_q", plainRole, layer, s.Width, queries, 0, queryGain)
		l.part(block, "attn_k", keyRole, layer, s.Width, keys, 0, queryGain)
		l.part(block, "attn_v", valueRole, layer, s.Width, keys, 0, valueGain)
	}
	l.part(block, "attn_output", joinRole, layer, queries, s.Width, 0, joinGain)
	const normMean, normStd = 1.2, 0.2
	switch f.headNorm {
	case eachHead:
		l.floats(block+"attn_q_norm.weight", normMean, normStd, s.HeadSize)
		l.floats(block+"attn_k_norm.weight", normMean, normStd, s.HeadSize)
	case allHeads:
		l.floats(block+"attn_q_norm.weight", normMean, normStd, queries)
		l.floats(block+"attn_k_norm.weight", normMean, normStd, keys)
	}
	if f.sinks {
		l.floats(block+"attn_sinks.weight", 0, 1, s.Heads)
	}
}

func (l *layout) feedForward(block string, layer int) {
	s, f := l.shape, l.family()
	if s.Experts > 0 {
		l.experts(block, layer)
		return
	}
	if f.fused {
		l.part(block, "ffn_up", plainRole, layer, s.Width, 2*s.FeedForward, 0, gateGain)
	} else {
		l.part(block, "ffn_gate", plainRole, layer, s.Width, s.FeedForward, 0, gateGain)
		l.part(block, "ffn_up", plainRole, layer, s.Width, s.FeedForward, 0, gateGain)
	}
	l.part(block, "ffn_down", downRole, layer, s.FeedForward, s.Width, 0, downGain)
}

func (l *layout) experts(block string, layer int) {
	s := l.shape
	l.floats(block+"ffn_gate_inp.weight", 0, routerGain/math.Sqrt(float64(s.Width)), s.Width, s.Experts)
	if slices.Contains(l.family().biases, "ffn_gate_inp") {
		l.floats(block+"ffn_gate_inp.bias", 0, biasStd, s.Experts)
	}
	l.part(block, "ffn_gate_exps", plainRole, layer, s.Width, s.FeedForward, s.Experts, gateGain)
	l.part(block, "ffn_up_exps", plainRole, layer, s.Width, s.FeedForward, s.Experts, gateGain)
	l.part(block, "ffn_down_exps", downRole, layer, s.FeedForward, s.Width, s.Experts, expertGain)
}

// gpt2 lays out GPT-2: learned positions, norms with mean and bias, one matrix
// for query, key and value, biases everywhere.
func (l *layout) gpt2() {
	s := l.shape
	const positionStd = 0.02
	l.embedding()
	// The converter keeps position embeddings in F32 whatever the mixture.
	l.floats("position_embd.weight", 0, positionStd, s.Width, s.Context)
	norm := func(name string) {
		l.norm(name, s.Width)
		l.floats(name+".bias", 0, biasStd, s.Width)
	}
	for i := range s.Layers {
		block := fmt.Sprintf("blk.%d.", i)
		norm(block + "attn_norm")
		l.biased(block+"attn_qkv", valueRole, i, s.Width, 3*s.Width, 0, valueGain)
		l.biased(block+"attn_output", joinRole, i, s.Width, s.Width, 0, joinGain)
		norm(block + "ffn_norm")
		l.biased(block+"ffn_up", plainRole, i, s.Width, s.FeedForward, 0, gateGain)
		l.biased(block+"ffn_down", downRole, i, s.FeedForward, s.Width, 0, downGain)
	}
	norm("output_norm")
}

// factors returns what each rotary frequency of a head is divided by.
func (r *ropeScaling) factors(headSize int, base float64) []float32 {
	list := make([]float32, headSize/2)
	for i := range list {
		wavelength := 2 * math.Pi * math.Pow(base, 2*float64(i)/float64(headSize))
		switch {
		case wavelength < r.context/r.high:
			list[i] = 1
		case wavelength > r.context/r.low:
			list[i] = float32(r.factor)
		default:
			smooth := (r.context/wavelength - r.low) / (r.high - r.low)
			list[i] = float32(1 / ((1-smooth)/r.factor + smooth))
		}
	}
	return list
}
