package layer_test

import (
	"math"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/nn"
	"tgc/nn/layer"
	"tgc/tensor"
)

// model is a transformer's weights with the reference of its parts, in float64. A sequence is
// rows of one sample.
type model struct {
	w     map[string]array
	heads int
	last  bool // norms after the residual
}

func (m model) linear(name string, xs [][]float64) [][]float64 {
	var bias []float64
	if b, ok := m.w[name+".bias"]; ok {
		bias = b.data
	}
	out := make([][]float64, len(xs))
	for i, x := range xs {
		out[i] = affine(m.w[name+".weight"], bias, x)
	}
	return out
}

func (m model) norm(name string, xs [][]float64) [][]float64 {
	out := make([][]float64, len(xs))
	for i, x := range xs {
		out[i], _, _ = standard(x)
		for k := range out[i] {
			out[i][k] = out[i][k]*m.w[name+".weight"].data[k] + m.w[name+".bias"].data[k]
		}
	}
	return out
}

// attend looks from xs to memory where sees allows it.
func (m model) attend(name string, xs, memory [][]float64, sees func(t, s int) bool) [][]float64 {
	q, k, v := m.linear(name+".query", xs), m.linear(name+".key", memory), m.linear(name+".value", memory)
	d := len(q[0]) / m.heads
	mixed := make([][]float64, len(xs))
	for t := range xs {
		mixed[t] = make([]float64, len(q[0]))
		for h := range m.heads {
			total := 0.0
			for s := range memory {
				if !sees(t, s) {
					continue
				}
				score := 0.0
				for e := h * d; e < (h+1)*d; e++ {
					score += q[t][e] * k[s][e]
				}
				weight := math.Exp(score / math.Sqrt(float64(d)))
				total += weight
				for e := h * d; e < (h+1)*d; e++ {
					mixed[t][e] += weight * v[s][e]
				}
			}
			for e := h * d; e < (h+1)*d; e++ {
				mixed[t][e] /= total
			}
		}
	}
	return m.linear(name+".output", mixed)
}

func (m model) mlp(name string, xs [][]float64) [][]float64 {
	h := m.linear(name+".up", xs)
	for _, row := range h {
		for i, v := range row {
			row[i] = v / 2 * (1 + math.Erf(v/math.Sqrt2))
		}
	}
	return m.linear(name+".down", h)
}

// add is the residual of a part.
func (m model) add(norm string, xs [][]float64, part func(xs [][]float64) [][]float64) [][]float64 {
	sum := func(a, b [][]float64) [][]float64 {
		out := make([][]float64, len(a))
		for i := range a {
			for k := range a[i] {
				out[i] = append(out[i], a[i][k]+b[i][k])
			}
		}
		return out
	}
	if m.last {
		return m.norm(norm, sum(xs, part(xs)))
	}
	return sum(xs, part(m.norm(norm, xs)))
}

func anywhere(int, int) bool { return true }
func before(t, s int) bool   { return s <= t }
func butFirst(_, s int) bool { return s > 0 }
func sample(a array, b int) (rows [][]float64) {
	size := a.shape[1] * a.shape[2]
	for i := 0; i < size; i += a.shape[2] {
		rows = append(rows, a.data[b*size+i:][:a.shape[2]])
	}
	return rows
}

// flat joins what a function makes of each of two samples.
func flat(f func(b int) [][]float64) (all []float64) {
	for b := range 2 {
		for _, row := range f(b) {
			all = append(all, row...)
		}
	}
	return all
}

// Two blocks of an encoder and of a decoder, with norms before and after, biases, and a mask
// of the memory, against loops.
func TestEncoderAndDecoder(t *testing.T) {
	for name, last := range map[string]bool{"norms first": false, "norms last": true} {
		t.Run(name, func(t *testing.T) {
			opt := layer.BlockOptions{AttentionOptions: layer.AttentionOptions{Width: 8, Heads: 2, Bias: true}, Hidden: 12, NormLast: last}
			got, w := results(t, func(b *built) []*tensor.Tensor {
				x, memory := b.input("x", 2, 4, 8), b.input("memory", 2, 3, 6)
				seen := b.p.Graph().Table(ir.I32, []float64{0, 1, 1}, 1, 1, 1, 3).Eq(b.p.Graph().Scalar(ir.I32, 1))
				crossing := opt
				crossing.Memory = 6
				return []*tensor.Tensor{
					layer.NewEncoder(b.p.In("encoder"), 2, opt).Forward(x, nil),
					layer.NewDecoder(b.p.In("decoder"), 2, crossing).Forward(x, memory, seen),
				}
			})
			m := model{w, 2, last}
			ended := func(name string, xs [][]float64) [][]float64 {
				if last {
					return xs
				}
				return m.norm(name+".norm", xs)
			}
			compare(t, "encoder", got[0], flat(func(b int) [][]float64 {
				xs := sample(w["x"], b)
				for _, at := range []string{"encoder.0", "encoder.1"} {
					xs = m.add(at+".attention_norm", xs, func(xs [][]float64) [][]float64 { return m.attend(at+".attention", xs, xs, anywhere) })
					xs = m.add(at+".mlp_norm", xs, func(xs [][]float64) [][]float64 { return m.mlp(at+".mlp", xs) })
				}
				return ended("encoder", xs)
			}))
			compare(t, "decoder", got[1], flat(func(b int) [][]float64 {
				xs, memory := sample(w["x"], b), sample(w["memory"], b)
				for _, at := range []string{"decoder.0", "decoder.1"} {
					xs = m.add(at+".attention_norm", xs, func(xs [][]float64) [][]float64 { return m.attend(at+".attention", xs, xs, before) })
					xs = m.add(at+".cross_norm", xs, func(xs [][]float64) [][]float64 { return m.attend(at+".cross", xs, memory, butFirst) })
					xs = m.add(at+".mlp_norm", xs, func(xs [][]float64) [][]float64 { return m.mlp(at+".mlp", xs) })
				}
				return ended("decoder", xs)
			}))
		})
	}
}

func TestPositions(t *testing.T) {
	got, w := results(t, func(b *built) []*tensor.Tensor {
		return []*tensor.Tensor{layer.NewPositions(b.p, 5, 3).Forward(b.input("x", 2, 4, 3))}
	})
	want := make([]float64, 24)
	for i := range want {
		want[i] = w["x"].data[i] + w["weight"].data[i%12]
	}
	compare(t, "positions", got[0], want)
	g := tensor.NewGraph()
	layer.NewPositions(nn.NewParameters(g), 3, 2).Forward(g.Input("x", ir.F32, 4, 2))
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "4 positions, want at most 3") {
		t.Errorf("too long a sequence: %v", err)
	}
}
