package layer

import (
	"math"

	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Attention is multi-head attention (Vaswani et al. 2017), of a sequence to itself or to
// another one, with Heads query heads that share KVHeads heads of keys and values (Ainslie et
// al. 2023).
type Attention struct {
	Query, Key, Value, Output *Linear
	Heads, KVHeads            int
	Causal                    bool // a position sees itself and those before
	Rotary                    *Rotary
}

// AttentionOptions describes NewAttention.
type AttentionOptions struct {
	Width   int // of input and output
	Heads   int // query heads, a divisor of Width
	KVHeads int // heads of keys and values, a divisor of Heads; 0 means Heads
	Memory  int // width of another sequence that is attended to; 0 means Width
	Causal  bool
	Bias    bool
	Rotary  *Rotary // nil: no rotary positions
}

// NewAttention registers query, key, value and output.
func NewAttention(p *nn.Parameters, opt AttentionOptions) *Attention {
	kv := opt.KVHeads
	if kv == 0 {
		kv = opt.Heads
	}
	if opt.Heads < 1 || opt.Width%opt.Heads != 0 || kv < 1 || opt.Heads%kv != 0 {
		p.Graph().Fail("attention", "width %d, %d heads, %d shared; each must divide the one before", opt.Width, opt.Heads, kv)
		opt.Heads, kv = 1, 1
	}
	head := opt.Width / opt.Heads
	memory := opt.Memory
	if memory == 0 {
		memory = opt.Width
	}
	linear := NewProjection
	if opt.Bias {
		linear = NewLinear
	}
	return &Attention{
		Query:  linear(p.In("query"), opt.Width, opt.Width),
		Key:    linear(p.In("key"), memory, kv*head),
		Value:  linear(p.In("value"), memory, kv*head),
		Output: linear(p.In("output"), opt.Width, opt.Width),
		Heads:  opt.Heads, KVHeads: kv, Causal: opt.Causal, Rotary: opt.Rotary,
	}
}

// Forward attends within x [B, T, width]. mask (Bool, broadcast to [B, heads, T,
// T]; true where a query may look) may be nil.
func (l *Attention) Forward(x, mask *tensor.Tensor) *tensor.Tensor { return l.Cross(x, x, mask) }

// Cross attends from x [B, T, width] to memory [B, S, memory]. mask (Bool, broadcast to
// [B, heads, T, S]) may be nil.
func (l *Attention) Cross(x, memory, mask *tensor.Tensor) *tensor.Tensor {
	q := split(l.Query.Forward(x), l.Heads)
	k := split(l.Key.Forward(memory), l.KVHeads)
	v := split(l.Value.Forward(memory), l.KVHeads)
	if l.Rotary != nil {
		q, k = l.Rotary.Forward(q), l.Rotary.Forward(k)
	}
	return l.Output.Forward(Attend(q, k, v, mask, l.Causal))
}

// Attend is scaled dot-product attention of q [B, T, H, D] to k and v
// [B, S, KV, D], each KV head serving H/KV neighbouring query heads: [B, T, H*D].
// mask (Bool, broadcast to [B, H, T, S]) may be nil. With causal, query t sees
// keys up to t+S-T. Scores and probabilities get buffers of their own: training
// needs them again, and plain matrix products read them; nn.Attention over a
// cache computes all in one kernel.
func Attend(q, k, v, mask *tensor.Tensor, causal bool) *tensor.Tensor {
	g := q.Graph()
	// A rotation costs little a point, so that it would be inlined where scores are computed, and
	// computed again for each of them: twice the instructions of a block of 64 positions.
	q, k = q.Contiguous(), k.Contiguous()
	b, t, heads, d := q.Extent(0), q.Extent(1), q.Extent(2), q.Extent(3)
	s, kv := k.Extent(1), k.Extent(2)
	if kv < 1 || heads%kv != 0 {
		return g.Fail("attention", "%d heads of %s share %d of %s", heads, q, kv, k)
	}
	group := heads / kv
	q = q.Reshape(b, t, kv, group, d).Permute(0, 2, 3, 1, 4)                     // [B KV G T D]
	k = k.Permute(0, 2, 1, 3).Unsqueeze(2)                                       // [B KV 1 S D]
	v = v.Permute(0, 2, 1, 3).Unsqueeze(2)                                       // [B KV 1 S D]
	scores := q.MatMul(k.Transpose(-1, -2)).MulScalar(1 / math.Sqrt(float64(d))) // [B KV G T S]
	hidden := g.Scalar(ir.F32, math.Inf(-1))
	if causal {
		row, column := g.Iota(ir.I32, g.Dims(t)[0]).Unsqueeze(1), g.Iota(ir.I32, g.Dims(s)[0])
		scores = column.Le(row.Add(g.Scalar(ir.I32, float64(s-t)))).Where(scores, hidden)
	}
	if mask != nil {
		scores = mask.Expand(b, heads, t, s).Reshape(b, kv, group, t, s).Where(scores, hidden)
	}
	// Stored scores and probabilities leave plain matrix products: one kernel for all three reads
	// keys again for each element of a value (ten times the instructions, sm_90), and without
	// stored results the lanes of a CPU run across queries (four times).
	out := scores.Contiguous().Softmax(-1).Contiguous().MatMul(v).Contiguous() // [B KV G T D]
	return out.Permute(0, 3, 1, 2, 4).Reshape(b, t, heads*d)
}

// Rotary is rotary position embedding for positions 0..T-1.
type Rotary struct {
	Frequencies []float64 // radians per position, one for each pair of elements
	Pairing     nn.Pairing
}

// NewRotary makes the frequencies base^(-2i/d) of heads of d elements (Su et al.
// 2021).
func NewRotary(d int, base float64, pairing nn.Pairing) *Rotary {
	r := &Rotary{Pairing: pairing}
	for i := range d / 2 {
		r.Frequencies = append(r.Frequencies, math.Pow(base, -2*float64(i)/float64(d)))
	}
	return r
}

// Forward rotates x [B, T, H, D]. Sines and cosines are constants of the graph.
func (r *Rotary) Forward(x *tensor.Tensor) *tensor.Tensor {
	t, half := x.Extent(1), len(r.Frequencies)
	cos, sin := make([]float64, 0, t*half), make([]float64, 0, t*half)
	for position := range t {
		for _, f := range r.Frequencies {
			s, c := math.Sincos(float64(position) * f)
			cos, sin = append(cos, c), append(sin, s)
		}
	}
	g := x.Graph()
	rotation := nn.Rotation{Cos: g.Table(ir.F32, cos, 1, t, half), Sin: g.Table(ir.F32, sin, 1, t, half)}
	return rotation.Apply(x, r.Pairing)
}
