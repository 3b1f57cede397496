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
}

// NewState starts an empty sequence of at most context positions.
func (m *Model) NewState(context int) *State {
	n := len(m.layers)
	return &State{keys: make([][][]float64, n), values: make([][][]float64, n), context: context}
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
		x[i] = float64(w)
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
	h := m.normalise(x, b.attnNorm)
	s.seeLayer("attn_norm", i, h)
	add(x, m.attention(s, i, h))
	s.seeLayer("ffn_inp", i, x)
	h = m.normalise(x, b.ffnNorm)
	s.seeLayer("ffn_norm", i, h)
	out := m.feedForward(s, i, h)
	s.seeLayer("ffn_out", i, out)
	add(x, out)
	s.seeLayer("l_out", i, x)
}

// attention appends a key and a value to the cache and returns the projected
// output of all heads.
func (m *Model) attention(s *State, i int, h []float64) []float64 {
	c, b := m.Config, &m.layers[i]
	q, k, v := m.project(b, h)
	q, k = m.prepare(q, b.qNorm, c.Heads, s.position), m.prepare(k, b.kNorm, c.HeadsKV, s.position)
	s.seeLayer("Qcur", i, q)
	s.seeLayer("Kcur", i, k)
	s.seeLayer("Vcur", i, v)
	s.keys[i] = append(s.keys[i], k)
	s.values[i] = append(s.values[i], v)
	out := make([]float64, c.Heads*c.ValueLength)
	for head := range c.Heads {
		shared := head / (c.Heads / c.HeadsKV) // heads that share a key head are neighbours
		query := q[head*c.KeyLength:][:c.KeyLength]
		weights := make([]float64, s.position+1)
		for t, key := range s.keys[i] {
			weights[t] = dot(query, key[shared*c.KeyLength:]) / math.Sqrt(float64(c.KeyLength))
		}
		softmax(weights)
		sum := out[head*c.ValueLength:][:c.ValueLength]
		for t, value := range s.values[i] {
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

// prepare normalises and rotates the heads of a query or key row.
func (m *Model) prepare(x []float64, weight []float32, heads, position int) []float64 {
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
	for head := range heads {
		m.rotate(x[head*size:][:size], position)
	}
	return x
}

// rotate applies RoPE to one head: pair p turns by position * base^(-2p/n).
func (m *Model) rotate(x []float64, position int) {
	c := m.Config
	for p := range c.Rotated / 2 {
		i, j := 2*p, 2*p+1
		switch m.arch.pairs {
		case noPairs:
			return
		case firstSecond:
			i, j = p, p+c.Rotated/2
		}
		angle := float64(position) * c.RopeScale * math.Pow(c.RopeBase, -2*float64(p)/float64(c.Rotated))
		if m.ropeFactors != nil {
			angle /= float64(m.ropeFactors[p])
		}
		sin, cos := math.Sincos(angle)
		x[i], x[j] = x[i]*cos-x[j]*sin, x[i]*sin+x[j]*cos
	}
}

// feedForward is the second half of a block, without the residual.
func (m *Model) feedForward(s *State, i int, h []float64) []float64 {
	b := &m.layers[i]
	switch {
	case m.arch.experts:
		return m.mixture(s, i, h)
	case m.arch.gpt2:
		up := b.up.apply(h)
		for e := range up {
			up[e] = gelu(up[e])
		}
		return b.down.apply(up)
	}
	gate, up := b.gate.apply(h), b.up.apply(h)
	for e := range up {
		up[e] *= silu(gate[e])
	}
	return b.down.apply(up)
}

// mixture sums the outputs of the most probable experts, weighted with their
// probabilities among all experts: those of the chosen are not made to sum to
// one.
func (m *Model) mixture(s *State, i int, h []float64) []float64 {
	b := &m.layers[i]
	probability := b.router.apply(h)
	s.seeLayer("ffn_moe_logits", i, probability)
	softmax(probability)
	chosen := largest(probability, m.Config.Used)
	out := make([]float64, m.Config.Width)
	ids := make([]float64, len(chosen))
	for n, e := range chosen {
		ids[n] = float64(e)
		gate, up := b.gates[e].times(h), b.ups[e].times(h)
		for z := range up {
			up[z] *= silu(gate[z])
		}
		for z, v := range b.downs[e].times(up) {
			out[z] += probability[e] * v
		}
	}
	s.seeLayer("ffn_moe_topk", i, ids)
	return out
}
