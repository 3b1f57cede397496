package refmodel

import (
	"fmt"
	"math"
)

// State is one sequence: the keys and values of the positions fed so far.
type State struct {
	// Hook, when set, is called with every intermediate value of a step. The
	// slice is only valid during the call.
	Hook func(name string, value []float64)

	keys, values [][][]float64 // [layer][position], rows of all heads
	position     int
	context      int
	turns        [2]turns // of layers without and with a window
}

// NewState starts an empty sequence of at most context positions.
func (m *Model) NewState(context int) *State {
	n := len(m.layers)
	s := &State{keys: make([][][]float64, n), values: make([][][]float64, n), context: context}
	for i, of := range m.turns {
		s.turns[i] = of[0]
		if context > m.original {
			s.turns[i] = of[1]
		}
	}
	return s
}

// Clone copies the sequence; both may go on apart. The hook is kept.
func (s *State) Clone() *State {
	c := *s
	c.keys, c.values = make([][][]float64, len(s.keys)), make([][][]float64, len(s.values))
	for i := range s.keys {
		c.keys[i] = append([][]float64(nil), s.keys[i]...)
		c.values[i] = append([][]float64(nil), s.values[i]...)
	}
	return &c
}

func (s *State) see(name string, value []float64) {
	if s.Hook != nil {
		s.Hook(name, value)
	}
}

func (s *State) seeLayer(name string, i int, value []float64) {
	if s.Hook != nil {
		s.Hook(fmt.Sprintf("%s.%d", name, i), value)
	}
}

// Step feeds one token and returns the logits of the next. It panics if the
// token is outside the vocabulary or the state is full: both are faults of the
// caller.
func (m *Model) Step(s *State, token int) []float64 {
	if token < 0 || token >= m.Config.Vocabulary {
		panic(fmt.Sprintf("refmodel: token %d, want 0 to %d", token, m.Config.Vocabulary-1))
	}
	if s.position >= s.context {
		panic(fmt.Sprintf("refmodel: the sequence is full: %d positions", s.context))
	}
	x := make([]float64, m.Config.Width)
	for i, w := range m.embedding.row(token) {
		x[i] = float64(w) * m.Config.EmbeddingScale
	}
	s.see("embd", x)
	if m.positions.present() {
		for i, w := range m.positions.row(s.position) {
			x[i] += float64(w)
		}
		s.see("inpL", x)
	}
	for i := range m.layers {
		m.block(s, i, x)
	}
	s.position++
	x = m.normalise(x, m.outputNorm)
	s.see("result_norm", x)
	logits := m.output.times(x)
	for i := range logits {
		logits[i] = softCap(logits[i]*m.Config.LogitScale, m.Config.LogitCap)
	}
	s.see("result_output", logits)
	return logits
}

// normalise is the architecture's norm of the residual stream.
func (m *Model) normalise(x []float64, n norm) []float64 {
	if m.arch.gpt2 {
		return layerNorm(x, n, m.Config.Epsilon)
	}
	return rmsNorm(x, n.weight, m.Config.Epsilon)
}

// block runs layer i on the residual stream x, in place.
func (m *Model) block(s *State, i int, x []float64) {
	b := &m.layers[i]
	read := func(n norm) []float64 {
		if m.arch.noInputNorms {
			return append([]float64(nil), x...)
		}
		return m.normalise(x, n)
	}
	join := func(out []float64, n norm) {
		if m.arch.residualNorms {
			out = m.normalise(out, n)
		}
		for e := range x {
			x[e] += out[e] * m.Config.ResidualScale
		}
	}
	h := read(b.attnNorm)
	s.seeLayer("attn_norm", i, h)
	join(m.attention(s, i, h), b.attnAfter)
	s.seeLayer("ffn_inp", i, x)
	h = read(b.ffnNorm)
	s.seeLayer("ffn_norm", i, h)
	out := m.feedForward(s, i, h)
	s.seeLayer("ffn_out", i, out)
	join(out, b.ffnAfter)
	s.seeLayer("l_out", i, x)
}

// attention appends a key and a value to the cache and returns the projected
// output of all heads.
func (m *Model) attention(s *State, i int, h []float64) []float64 {
	c, b := m.Config, &m.layers[i]
	q, k, v := m.project(b, h)
	q, k = m.prepare(s, i, q, b.qNorm, c.Heads), m.prepare(s, i, k, b.kNorm, c.HeadsKV)
	m.temper(q, s.position)
	s.seeLayer("Qcur", i, q)
	s.seeLayer("Kcur", i, k)
	s.seeLayer("Vcur", i, v)
	s.keys[i] = append(s.keys[i], k)
	s.values[i] = append(s.values[i], v)
	out := make([]float64, c.Heads*c.ValueLength)
	for head := range c.Heads {
		shared := head / (c.Heads / c.HeadsKV) // heads that share a key head are neighbours
		query := q[head*c.KeyLength:][:c.KeyLength]
		first := m.sees(i, s.position)
		var weights []float64
		for _, key := range s.keys[i][first:] {
			weights = append(weights, softCap(dot(query, key[shared*c.KeyLength:])*c.ScoreScale, c.ScoreCap))
		}
		if b.sinks != nil { // one more place to look at, where there is nothing
			weights = append(weights, float64(b.sinks[head]))
		}
		softmax(weights)
		sum := out[head*c.ValueLength:][:c.ValueLength]
		for t, value := range s.values[i][first:] {
			for e := range sum {
				sum[e] += weights[t] * value[shared*c.ValueLength+e]
			}
		}
	}
	s.seeLayer("kqv_out", i, out)
	out = b.o.apply(out)
	s.seeLayer("attn_out", i, out)
	return out
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// project makes the query, key and value rows.
func (m *Model) project(b *layer, h []float64) (q, k, v []float64) {
	if b.qkv.present() {
		all := b.qkv.apply(h)
		nq, nk := m.Config.Heads*m.Config.KeyLength, m.Config.HeadsKV*m.Config.KeyLength
		return all[:nq], all[nq : nq+nk], all[nq+nk:]
	}
	return b.q.apply(h), b.k.apply(h), b.v.apply(h)
}

// temper is the scaling of queries by position of Ministral 3 (and of Llama 4).
func (m *Model) temper(q []float64, position int) {
	if m.Config.Temperature == 0 {
		return
	}
	scale := 1 + m.Config.Temperature*math.Log(1+math.Floor(float64(position)/m.Config.TemperatureLength))
	for i := range q {
		q[i] *= scale
	}
}

// prepare normalises and rotates the heads of a query or key row of layer i.
func (m *Model) prepare(s *State, i int, x []float64, weight []float32, heads int) []float64 {
	size := m.Config.KeyLength
	switch m.arch.queryKeyNorm {
	case wholeRow:
		x = rmsNorm(x, weight, m.Config.Epsilon)
	case eachHead:
		normed := make([]float64, 0, len(x))
		for head := range heads {
			normed = append(normed, rmsNorm(x[head*size:][:size], weight, m.Config.Epsilon)...)
		}
		x = normed
	}
	if m.arch.rotaryFreeEach != 0 && (i+1)%m.arch.rotaryFreeEach == 0 {
		return x
	}
	t := s.turns[0]
	if m.local[i] {
		t = s.turns[1]
	}
	for head := range heads {
		m.rotate(x[head*size:][:size], s.position, t)
	}
	return x
}

// rotate applies RoPE to one head.
func (m *Model) rotate(x []float64, position int, t turns) {
	half := len(t.inverse)
	for p, inverse := range t.inverse {
		i, j := 2*p, 2*p+1
		switch m.arch.pairs {
		case noPairs:
			return
		case firstSecond:
			i, j = p, p+half
		}
		sin, cos := math.Sincos(float64(position) * inverse)
		x[i], x[j] = (x[i]*cos-x[j]*sin)*t.factor, (x[i]*sin+x[j]*cos)*t.factor
	}
}

// feedForward is the second half of a block, without the residual.
func (m *Model) feedForward(s *State, i int, h []float64) []float64 {
	b := &m.layers[i]
	if m.Config.Experts > 0 {
		return m.mixture(s, i, h)
	}
	up := b.up.apply(h)
	switch m.arch.unit {
	case twoLayers:
		for e := range up {
			up[e] = gelu(up[e])
		}
		return b.down.apply(up)
	case halvedUp:
		half := len(up) / 2
		return b.down.apply(m.gated(up[:half], up[half:]))
	}
	return b.down.apply(m.gated(b.gate.apply(h), up))
}

// gated joins the two halves of a gated unit.
func (m *Model) gated(gate, up []float64) []float64 {
	out := make([]float64, len(up))
	for e := range out {
		switch m.arch.unit {
		case geglu:
			out[e] = gelu(gate[e]) * up[e]
		case ossGLU: // swiglu of gpt-oss's model card and reference code: alpha 1.702, limit 7
			x, y := math.Min(gate[e], 7), math.Max(-7, math.Min(up[e], 7))
			out[e] = x / (1 + math.Exp(-1.702*x)) * (y + 1)
		default:
			out[e] = silu(gate[e]) * up[e]
		}
	}
	return out
}

// mixture sums the outputs of the best experts, weighted.
func (m *Model) mixture(s *State, i int, h []float64) []float64 {
	b := &m.layers[i]
	scores := b.router.apply(h)
	s.seeLayer("ffn_moe_logits", i, scores)
	chosen := largest(scores, m.Config.Used)
	weights := m.weigh(scores, chosen)
	out := make([]float64, m.Config.Width)
	ids := make([]float64, len(chosen))
	for n, e := range chosen {
		ids[n] = float64(e)
		for z, v := range b.downs[e].apply(m.gated(b.gates[e].apply(h), b.ups[e].apply(h))) {
			out[z] += weights[n] * v
		}
	}
	s.seeLayer("ffn_moe_topk", i, ids)
	return out
}

// weigh gives the chosen experts their weights.
func (m *Model) weigh(scores []float64, chosen []int) []float64 {
	weights := make([]float64, len(chosen))
	if m.arch.experts == softmaxPicked {
		for n, e := range chosen {
			weights[n] = scores[e]
		}
		softmax(weights)
		return weights
	}
	softmax(scores)
	sum := 0.0
	for n, e := range chosen {
		weights[n] = scores[e]
		sum += scores[e]
	}
	for n := range weights {
		if m.arch.experts == sharesOfPicked {
			weights[n] /= sum
		}
	}
	return weights
}
