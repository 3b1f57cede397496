package refmodel

import (
	"fmt"

	"tgc/gguf"
	"tgc/internal/lists"
)

// matrix is a weight of rows x columns, dequantised; nil data is an absent one.
type matrix struct {
	data       []float32
	rows, cols int
}

func (m matrix) present() bool { return m.data != nil }

func (m matrix) row(i int) []float32 { return m.data[i*m.cols : (i+1)*m.cols] }

// norm is the weight and, for LayerNorm, the bias of a normalisation.
type norm struct{ weight, bias []float32 }

// linear is a matrix with an optional bias.
type linear struct {
	matrix
	bias []float32
}

// layer holds the weights of one block. Fields that an architecture lacks are
// empty.
type layer struct {
	attnNorm, ffnNorm norm
	q, k, v, qkv, o   linear
	qNorm, kNorm      []float32
	gate, up, down    linear
	router            linear
	gates, ups, downs []linear // per expert
	sinks             []float32
	attnAfter         norm // of attention's output
	ffnAfter          norm // of the feed-forward part's
}

// Model is a loaded model. It is not changed by use.
type Model struct {
	Config Config

	arch       architecture
	local      []bool      // layers with a window
	turns      [2][2]turns // of layers without and with a window, in short and in long contexts
	original   int         // the longest short context
	embedding  matrix
	positions  matrix // gpt2
	layers     []layer
	outputNorm norm
	output     matrix
}

// loader reads tensors and keeps the first error.
type loader struct {
	f   *gguf.File
	err error
}

func (l *loader) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// tensor returns the values of a tensor with this many elements, or nil.
func (l *loader) tensor(name string, elements int, optional bool) []float32 {
	t, ok := l.f.Tensor(name)
	if !ok {
		if !optional {
			l.fail(fmt.Errorf("refmodel: %s: tensor %q is missing", l.f.Name(), name))
		}
		return nil
	}
	if t.Elements() != elements {
		l.fail(l.f.Errorf(t, "shape is %v, want %d elements", t.Shape(), elements))
		return nil
	}
	values, err := Dequantise(l.f, t)
	if err != nil {
		l.fail(err)
	}
	return values
}

func (l *loader) matrix(name string, rows, cols int) matrix {
	return matrix{l.tensor(name, rows*cols, false), rows, cols}
}

func (l *loader) linear(name string, rows, cols int) linear {
	return linear{l.matrix(name+".weight", rows, cols), l.tensor(name+".bias", rows, true)}
}

func (l *loader) norm(name string, width int) norm {
	return norm{l.tensor(name+".weight", width, false), l.tensor(name+".bias", width, true)}
}

// experts reads a stack of matrices with their biases.
func (l *loader) experts(name string, n, rows, cols int) []linear {
	all, biases := l.tensor(name+".weight", n*rows*cols, false), l.tensor(name+".bias", n*rows, true)
	if all == nil {
		return nil
	}
	return lists.Make(n, func(i int) linear {
		x := linear{matrix: matrix{all[i*rows*cols : (i+1)*rows*cols], rows, cols}}
		if biases != nil {
			x.bias = biases[i*rows : (i+1)*rows]
		}
		return x
	})
}

// Load reads a whole model into memory, dequantised. The file may be closed
// afterwards.
func Load(f *gguf.File) (*Model, error) {
	c, arch, err := readConfig(f)
	if err != nil {
		return nil, err
	}
	embedding, ok := f.Tensor("token_embd.weight")
	if !ok {
		return nil, fmt.Errorf("refmodel: %s: tensor %q is missing", f.Name(), "token_embd.weight")
	}
	c.Vocabulary = embedding.Rows()
	m := &Model{Config: c, arch: arch}
	l := &loader{f: f}
	m.embedding = l.matrix("token_embd.weight", c.Vocabulary, c.Width)
	m.outputNorm = l.norm("output_norm", c.Width)
	m.output = m.embedding
	if _, untied := f.Tensor("output.weight"); untied {
		m.output = l.matrix("output.weight", c.Vocabulary, c.Width)
	}
	if arch.gpt2 {
		m.positions = l.matrix("position_embd.weight", c.Context, c.Width)
	}
	m.local = localLayers(f, c, arch)
	factors := map[string][]float32{}
	for _, name := range []string{"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"} {
		factors[name] = l.tensor(name, c.Rotated/2, true)
	}
	m.original = originalContext(f, c)
	for i := range m.turns {
		for far, context := range []int{m.original, m.original + 1} {
			m.turns[i][far] = readTurns(f, c, arch, factors, i == 1, context)
		}
	}
	for i := range c.Layers {
		m.layers = append(m.layers, l.layer(c, arch, fmt.Sprintf("blk.%d.", i)))
	}
	if l.err != nil {
		return nil, l.err
	}
	return m, nil
}

// layer reads one block.
func (l *loader) layer(c Config, arch architecture, at string) layer {
	queries, keys, values := c.Heads*c.KeyLength, c.HeadsKV*c.KeyLength, c.HeadsKV*c.ValueLength
	b := layer{o: l.linear(at+"attn_output", c.Width, c.Heads*c.ValueLength)}
	if !arch.noInputNorms {
		name := "ffn_norm"
		if arch.ffnNorm != "" {
			name = arch.ffnNorm
		}
		b.attnNorm, b.ffnNorm = l.norm(at+"attn_norm", c.Width), l.norm(at+name, c.Width)
	}
	if arch.residualNorms {
		b.attnAfter, b.ffnAfter = l.norm(at+"post_attention_norm", c.Width), l.norm(at+"post_ffw_norm", c.Width)
	}
	if arch.sinks {
		b.sinks = l.tensor(at+"attn_sinks.weight", c.Heads, false)
	}
	if _, fused := l.f.Tensor(at + "attn_qkv.weight"); fused {
		b.qkv = l.linear(at+"attn_qkv", queries+keys+values, c.Width)
	} else {
		b.q = l.linear(at+"attn_q", queries, c.Width)
		b.k = l.linear(at+"attn_k", keys, c.Width)
		b.v = l.linear(at+"attn_v", values, c.Width)
	}
	switch arch.queryKeyNorm {
	case eachHead:
		b.qNorm = l.tensor(at+"attn_q_norm.weight", c.KeyLength, false)
		b.kNorm = l.tensor(at+"attn_k_norm.weight", c.KeyLength, false)
	case wholeRow:
		b.qNorm = l.tensor(at+"attn_q_norm.weight", queries, false)
		b.kNorm = l.tensor(at+"attn_k_norm.weight", keys, false)
	}
	l.feedForward(c, arch, at, &b)
	return b
}

// feedForward reads the second half of a block. The hidden width is that of the
// tensors.
func (l *loader) feedForward(c Config, arch architecture, at string, b *layer) {
	name := at + "ffn_down.weight"
	if c.Experts > 0 {
		name = at + "ffn_down_exps.weight"
	}
	down, ok := l.f.Tensor(name)
	if !ok || len(down.Dims) < 2 {
		l.fail(fmt.Errorf("refmodel: %s: tensor %q is missing or no matrix", l.f.Name(), name))
		return
	}
	hidden := down.Dims[0]
	if c.Experts > 0 {
		b.router = l.linear(at+"ffn_gate_inp", c.Experts, c.Width)
		b.gates = l.experts(at+"ffn_gate_exps", c.Experts, hidden, c.Width)
		b.ups = l.experts(at+"ffn_up_exps", c.Experts, hidden, c.Width)
		b.downs = l.experts(at+"ffn_down_exps", c.Experts, c.Width, hidden)
		return
	}
	rows := hidden
	switch arch.unit {
	case halvedUp:
		rows = 2 * hidden
	case swiglu, geglu:
		b.gate = l.linear(at+"ffn_gate", hidden, c.Width)
	}
	b.up = l.linear(at+"ffn_up", rows, c.Width)
	b.down = l.linear(at+"ffn_down", c.Width, hidden)
}
