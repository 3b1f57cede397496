package layer

import (
	"tgc/nn"
	"tgc/tensor"
)

// cell holds the weights of a recurrent cell with gates stacked along the rows:
// Input [gates*hidden, in], State [gates*hidden, hidden], each with a bias.
type cell struct{ Input, State *Linear }

func newCell(p *nn.Parameters, in, hidden, gates int) cell {
	bound := within(hidden)
	linear := func(p *nn.Parameters, in int) *Linear {
		return &Linear{Weight: p.Weight("weight", bound, gates*hidden, in), Bias: p.Weight("bias", bound, gates*hidden), Scope: p}
	}
	return cell{Input: linear(p.In("input"), in), State: linear(p.In("state"), hidden)}
}

// gate cuts gate k of n out of the last axis.
func gate(x *tensor.Tensor, k, n int) *tensor.Tensor {
	width := x.Extent(-1) / n
	return x.SliceInts(-1, k*width, width)
}

// RNN is the plain recurrent cell (Elman 1990): h' = tanh(W x + U h + b).
type RNN struct{ cell }

// NewRNN registers input and state.
func NewRNN(p *nn.Parameters, in, hidden int) *RNN { return &RNN{newCell(p, in, hidden, 1)} }

// Forward makes one step: x [B, in], h [B, hidden] to the next h.
func (l *RNN) Forward(x, h *tensor.Tensor) *tensor.Tensor {
	return l.Input.Forward(x).Add(l.State.Forward(h)).Tanh()
}

// GRU is the gated recurrent unit (Cho et al. 2014) in PyTorch's form, gates in
// the order reset, update, new:
//
//	r = sigmoid(W_r x + U_r h), z = sigmoid(W_z x + U_z h)
//	n = tanh(W_n x + r*(U_n h)), h' = (1-z)*n + z*h
type GRU struct{ cell }

// NewGRU registers input and state.
func NewGRU(p *nn.Parameters, in, hidden int) *GRU { return &GRU{newCell(p, in, hidden, 3)} }

// Forward makes one step: x [B, in], h [B, hidden] to the next h.
func (l *GRU) Forward(x, h *tensor.Tensor) *tensor.Tensor {
	a, b := l.Input.Forward(x), l.State.Forward(h)
	reset := gate(a, 0, 3).Add(gate(b, 0, 3)).Sigmoid()
	update := gate(a, 1, 3).Add(gate(b, 1, 3)).Sigmoid()
	fresh := gate(a, 2, 3).Add(reset.Mul(gate(b, 2, 3))).Tanh()
	return fresh.Add(update.Mul(h.Sub(fresh)))
}

// LSTM is the long short-term memory (Hochreiter and Schmidhuber 1997; forget
// gate of Gers et al. 2000), gates in PyTorch's order input, forget, cell, output:
//
//	c' = f*c + i*g, h' = o*tanh(c')
type LSTM struct{ cell }

// NewLSTM registers input and state.
func NewLSTM(p *nn.Parameters, in, hidden int) *LSTM { return &LSTM{newCell(p, in, hidden, 4)} }

// Forward makes one step: x [B, in], h and c [B, hidden] to the next h and c.
func (l *LSTM) Forward(x, h, c *tensor.Tensor) (nextH, nextC *tensor.Tensor) {
	all := l.Input.Forward(x).Add(l.State.Forward(h))
	in, forget := gate(all, 0, 4).Sigmoid(), gate(all, 1, 4).Sigmoid()
	fresh, out := gate(all, 2, 4).Tanh(), gate(all, 3, 4).Sigmoid()
	nextC = forget.Mul(c).Add(in.Mul(fresh))
	return out.Mul(nextC.Tanh()), nextC
}

// Cell is a recurrent cell: one step maps x [B, in] and the states [B, hidden], of which the
// first is what the next layer sees, to the next states.
type Cell interface {
	States() int // how many
	Step(x *tensor.Tensor, states []*tensor.Tensor) []*tensor.Tensor
}

// States is 1.
func (l *RNN) States() int { return 1 }

// Step is Forward.
func (l *RNN) Step(x *tensor.Tensor, states []*tensor.Tensor) []*tensor.Tensor {
	return []*tensor.Tensor{l.Forward(x, states[0])}
}

// States is 1.
func (l *GRU) States() int { return 1 }

// Step is Forward.
func (l *GRU) Step(x *tensor.Tensor, states []*tensor.Tensor) []*tensor.Tensor {
	return []*tensor.Tensor{l.Forward(x, states[0])}
}

// States is 2: h and c.
func (l *LSTM) States() int { return 2 }

// Step is Forward.
func (l *LSTM) Step(x *tensor.Tensor, states []*tensor.Tensor) []*tensor.Tensor {
	h, c := l.Forward(x, states[0], states[1])
	return []*tensor.Tensor{h, c}
}

// Unroll applies a step along the time axis of xs [B, T, in] and returns all
// states [B, T, hidden] and the last one.
func Unroll(xs, h *tensor.Tensor, step func(x, h *tensor.Tensor) *tensor.Tensor) (all, last *tensor.Tensor) {
	var states []*tensor.Tensor
	for t := range xs.Extent(1) {
		h = step(xs.SliceInts(1, t, 1).Squeeze(1), h)
		states = append(states, h.Unsqueeze(1))
	}
	if len(states) == 0 {
		return xs.Graph().Fail("unroll", "%s has no steps", xs), h
	}
	return states[0].Cat(1, states[1:]...), h
}
