package layer_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/nn"
	"tgc/nn/layer"
	"tgc/tensor"
)

// stepOf is one step of a cell of this kind in float64, with the weights of a scope.
func stepOf(kind string, w map[string]array, scope string, x []float64, states [][]float64) [][]float64 {
	h := states[0]
	a := affine(w[scope+".input.weight"], w[scope+".input.bias"].data, x)
	b := affine(w[scope+".state.weight"], w[scope+".state.bias"].data, h)
	n := len(h)
	next, cell := make([]float64, n), make([]float64, n)
	for i := range n {
		gate := func(k int) float64 { return a[k*n+i] + b[k*n+i] }
		switch kind {
		case "rnn":
			next[i] = math.Tanh(gate(0))
		case "gru":
			fresh := math.Tanh(a[2*n+i] + logistic(gate(0))*b[2*n+i])
			next[i] = (1-logistic(gate(1)))*fresh + logistic(gate(1))*h[i]
		case "lstm":
			cell[i] = logistic(gate(1))*states[1][i] + logistic(gate(0))*math.Tanh(gate(2))
			next[i] = logistic(gate(3)) * math.Tanh(cell[i])
		}
	}
	if kind == "lstm" {
		return [][]float64{next, cell}
	}
	return [][]float64{next}
}

// Two layers in both directions, from zeros and from given states, of every cell.
func TestRecurrentStacks(t *testing.T) {
	const batch, length, in, hidden = 2, 4, 3, 2
	for kind, cell := range map[string]func(p *nn.Parameters, in, hidden int) layer.Cell{
		"rnn": layer.NewCell(layer.NewRNN), "gru": layer.NewCell(layer.NewGRU), "lstm": layer.NewCell(layer.NewLSTM),
	} {
		for _, given := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, given), func(t *testing.T) {
				states := map[string]int{"lstm": 2}[kind]
				states = max(states, 1)
				got, w := results(t, func(b *built) []*tensor.Tensor {
					var start [][]*tensor.Tensor
					for i := 0; i < 4 && given; i++ {
						start = append(start, nil)
						for k := range states {
							start[i] = append(start[i], b.input(fmt.Sprint("start", i, ".", k), batch, hidden))
						}
					}
					l := layer.NewRecurrent(b.p, layer.RecurrentOptions{Cell: cell, In: in, Hidden: hidden, Layers: 2, Bidirectional: true, Dropout: 0.5})
					all, last := l.Forward(b.input("x", batch, length, in), start)
					out := []*tensor.Tensor{all}
					for _, s := range last {
						out = append(out, s...)
					}
					return out
				})
				var all []float64
				last := make([][]float64, 4*states)
				for b := range batch {
					xs := sample(w["x"], b)
					for n := range 2 {
						outputs := make([][]float64, length)
						for d, direction := range []string{"forward", "backward"} {
							now := make([][]float64, states)
							for k := range now {
								now[k] = make([]float64, hidden)
								if given {
									now[k] = w[fmt.Sprint("start", 2*n+d, ".", k)].data[b*hidden:][:hidden]
								}
							}
							order := []int{0, 1, 2, 3}
							if d == 1 {
								slices.Reverse(order)
							}
							for _, at := range order {
								now = stepOf(kind, w, fmt.Sprintf("%d.%s", n, direction), xs[at], now)
								outputs[at] = append(outputs[at], now[0]...)
							}
							for k := range now {
								at := (2*n+d)*states + k
								last[at] = append(last[at], now[k]...)
							}
						}
						xs = outputs
					}
					all = append(all, slices.Concat(xs...)...)
				}
				compare(t, "all", got[0], all)
				for i, want := range last {
					compare(t, fmt.Sprint("last ", i), got[1+i], want)
				}
			})
		}
	}
	g := tensor.NewGraph()
	l := layer.NewRecurrent(nn.NewParameters(g), layer.RecurrentOptions{Cell: layer.NewCell(layer.NewGRU), In: 3, Hidden: 2})
	l.Forward(g.Input("x", ir.F32, 2, 3), nil)
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "want [B, T, in]") {
		t.Errorf("a batch of single steps: %v", err)
	}
}
