package layer_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"tgc/engine"
	_ "tgc/internal/rarecollection"
	"tgc/ir"
	"tgc/nn"
	"tgc/nn/layer"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// array is a float64 tensor of the reference: row-major.
type array struct {
	shape []int
	data  []float64
}

func (a array) at(index ...int) float64 {
	k := 0
	for i, n := range a.shape {
		k = k*n + index[i]
	}
	return a.data[k]
}

// fill draws values of order 1; the same name gives the same values.
func fill(name string, shape ...int) array {
	a := array{shape: shape}
	for _, v := range nn.Normal(1).Fill(11, name, shape) {
		a.data = append(a.data, float64(v))
	}
	return a
}

// built is a layer's graph under test.
type built struct {
	p *nn.Parameters
	x map[string]array
}

// input declares an f32 input with drawn values.
func (b *built) input(name string, shape ...int) *tensor.Tensor {
	b.x[name] = fill(name, shape...)
	return b.p.Graph().Input(name, ir.F32, shape...)
}

// results runs the layer on the interpreter. weights have values of order 1,
// whatever their initial distribution: a zero bias would hide mistakes.
func results(t *testing.T, build func(b *built) []*tensor.Tensor) (out [][]float64, weights map[string]array) {
	t.Helper()
	ctx := t.Context()
	g := tensor.NewGraph()
	b := &built{p: nn.NewParameters(g), x: make(map[string]array)}
	outputs := build(b)
	for i, y := range outputs {
		g.Output(fmt.Sprint("out", i), y)
	}
	f, err := tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, v := range b.p.All() {
		b.x[v.Name] = fill(v.Name, v.Shape...)
		if strings.HasSuffix(v.Name, "var") {
			for i, x := range b.x[v.Name].data {
				b.x[v.Name].data[i] = float64(float32(0.5 + x*x))
			}
		}
	}
	for name, a := range b.x {
		values := make([]float32, len(a.data))
		for i, v := range a.data {
			values[i] = float32(v)
		}
		if err := tensor.Set(ctx, f, name, values); err != nil && !strings.Contains(err.Error(), "no buffer") {
			t.Fatal(err)
		}
	}
	if err := f.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	for i := range outputs {
		got, err := tensor.Get[float32](ctx, f, fmt.Sprint("out", i))
		if err != nil {
			t.Fatal(err)
		}
		wide := make([]float64, len(got))
		for k, v := range got {
			wide[k] = float64(v)
		}
		out = append(out, wide)
	}
	return out, b.x
}

// compare checks values at f32 accuracy; sums of 12 terms at most stand behind
// one, none larger than the largest result.
func compare(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d values, want %d", what, len(got), len(want))
	}
	scale := 1.0
	for _, v := range want {
		scale = math.Max(scale, math.Abs(v))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= 3e-6*scale) {
			t.Fatalf("%s: element %d: got %v, want %v", what, i, got[i], want[i])
		}
	}
}

// rows applies a function to every vector along the last axis.
func rows(a array, width int, f func(row []float64) []float64) []float64 {
	var out []float64
	for i := 0; i < len(a.data); i += width {
		out = append(out, f(a.data[i:i+width])...)
	}
	return out
}

// affine is w row + b; b may be empty.
func affine(w array, b []float64, row []float64) []float64 {
	out := make([]float64, w.shape[0])
	for i := range out {
		for k, x := range row {
			out[i] += w.at(i, k) * x
		}
		if len(b) > 0 {
			out[i] += b[i]
		}
	}
	return out
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func TestLinearAndEmbedding(t *testing.T) {
	got, w := results(t, func(b *built) []*tensor.Tensor {
		table := layer.NewEmbedding(b.p.In("table"), 6, 4, 1)
		index := b.p.Graph().Table(ir.I32, []float64{5, 0, 3}, 3)
		x := b.input("x", 2, 3, 4)
		return []*tensor.Tensor{layer.NewLinear(b.p.In("fc"), 4, 5).Forward(x), table.Forward(index), table.Logits(x)}
	})
	compare(t, "linear", got[0], rows(w["x"], 4, func(row []float64) []float64 { return affine(w["fc.weight"], w["fc.bias"].data, row) }))
	e := w["table.weight"].data
	compare(t, "embedding", got[1], append(append(append([]float64{}, e[20:24]...), e[0:4]...), e[12:16]...))
	compare(t, "logits", got[2], rows(w["x"], 4, func(row []float64) []float64 { return affine(w["table.weight"], nil, row) }))
}

// standard is (x-mean)/sqrt(variance+1e-5) with its mean and variance.
func standard(x []float64) (y []float64, mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	for _, v := range x {
		y = append(y, (v-mean)/math.Sqrt(variance+1e-5))
	}
	return y, mean, variance
}

func TestNormsOfRowsAndGroups(t *testing.T) {
	got, w := results(t, func(b *built) []*tensor.Tensor {
		x := b.input("x", 2, 4, 3)
		return []*tensor.Tensor{
			layer.NewRMSNorm(b.p.In("rms"), 3).Forward(x),
			layer.NewLayerNorm(b.p.In("layer"), 3).Forward(x),
			layer.NewGroupNorm(b.p.In("group"), 2, 4).Forward(x),
		}
	})
	compare(t, "rms", got[0], rows(w["x"], 3, func(row []float64) []float64 {
		square := (row[0]*row[0] + row[1]*row[1] + row[2]*row[2]) / 3
		out := make([]float64, 3)
		for i := range out {
			out[i] = row[i] / math.Sqrt(square+1e-5) * w["rms.weight"].data[i]
		}
		return out
	}))
	compare(t, "layer", got[1], rows(w["x"], 3, func(row []float64) []float64 {
		y, _, _ := standard(row)
		for i := range y {
			y[i] = y[i]*w["layer.weight"].data[i] + w["layer.bias"].data[i]
		}
		return y
	}))
	first := 0 // channel of the group
	compare(t, "group", got[2], rows(w["x"], 6, func(row []float64) []float64 {
		y, _, _ := standard(row)
		for i := range y {
			c := first + i/3
			y[i] = y[i]*w["group.weight"].data[c] + w["group.bias"].data[c]
		}
		first = (first + 2) % 4
		return y
	}))
}

func TestBatchNorm(t *testing.T) {
	for _, training := range []bool{false, true} {
		t.Run(fmt.Sprint("training ", training), func(t *testing.T) {
			got, w := results(t, func(b *built) []*tensor.Tensor {
				if training {
					b.p.Train(b.p.Graph().Scalar(ir.U32, 1).Reshape(1))
				}
				norm := layer.NewBatchNorm(b.p, 3)
				y := norm.Forward(b.input("x", 4, 3, 2))
				return []*tensor.Tensor{y, norm.Mean.MulScalar(1), norm.Variance.MulScalar(1)}
			})
			x := w["x"]
			want, mean, variance := make([]float64, 24), make([]float64, 3), make([]float64, 3)
			for c := range 3 {
				var channel []float64
				for b := range 4 {
					channel = append(channel, x.at(b, c, 0), x.at(b, c, 1))
				}
				y, m, v := standard(channel)
				mean[c], variance[c] = w["running_mean"].data[c], w["running_var"].data[c]
				if training {
					mean[c] = 0.9*mean[c] + 0.1*m
					variance[c] = 0.9*variance[c] + 0.1*v*8/7
				}
				for i := range channel {
					if !training {
						y[i] = (channel[i] - mean[c]) / math.Sqrt(variance[c]+1e-5)
					}
					want[(i/2*3+c)*2+i%2] = y[i]*w["weight"].data[c] + w["bias"].data[c]
				}
			}
			compare(t, "output", got[0], want)
			compare(t, "mean", got[1], mean)
			compare(t, "variance", got[2], variance)
		})
	}
}

// Dropped elements are zero, kept ones scaled, about the right number of each;
// two layers of one step differ.
func TestDropout(t *testing.T) {
	const n, rate = 4000, 0.25
	got, w := results(t, func(b *built) []*tensor.Tensor {
		off := layer.NewDropout(nn.NewParameters(b.p.Graph()), rate)
		b.p.Train(b.p.Graph().Scalar(ir.U32, 5).Reshape(1))
		x := b.input("x", n/10, 10)
		drop := layer.NewDropout(b.p, rate)
		return []*tensor.Tensor{drop.Forward(x), drop.Forward(x), off.Forward(x).MulScalar(1)}
	})
	compare(t, "evaluation", got[2], w["x"].data)
	dropped, differ := 0, 0
	for i, x := range w["x"].data {
		switch y := got[0][i]; {
		case y == 0:
			dropped++
		case math.Abs(y-x/(1-rate)) > 1e-5*math.Abs(y):
			t.Fatalf("element %d: got %v, want 0 or %v", i, y, x/(1-rate))
		}
		if (got[0][i] == 0) != (got[1][i] == 0) {
			differ++
		}
	}
	if math.Abs(float64(dropped)/n-rate) > 0.03 {
		t.Errorf("%d of %d dropped, want a share near %v", dropped, n, rate)
	}
	if math.Abs(float64(differ)/n-2*rate*(1-rate)) > 0.03 {
		t.Errorf("two layers differ in %d of %d elements, want a share near %v", differ, n, 2*rate*(1-rate))
	}
}

// Attention with shared heads, causal, with rotary positions, against loops.
func TestAttention(t *testing.T) {
	const width, heads, kv, d, length = 12, 6, 2, 2, 5
	rotary := layer.NewRotary(d, 100, nn.PairNeighbours)
	got, w := results(t, func(b *built) []*tensor.Tensor {
		l := layer.NewAttention(b.p, layer.AttentionOptions{Width: width, Heads: heads, KVHeads: kv, Causal: true, Rotary: rotary})
		return []*tensor.Tensor{l.Forward(b.input("x", 2, length, width), nil)}
	})
	project := func(name string) [][]float64 {
		var out [][]float64
		rows(w["x"], width, func(row []float64) []float64 {
			out = append(out, affine(w[name+".weight"], nil, row))
			return nil
		})
		return out
	}
	rotate := func(rows [][]float64) {
		for i, row := range rows {
			s, c := math.Sincos(float64(i % length)) // the frequency of d = 2 is 1
			for k := 0; k < len(row); k += 2 {
				row[k], row[k+1] = row[k]*c-row[k+1]*s, row[k]*s+row[k+1]*c
			}
		}
	}
	q, k, v := project("query"), project("key"), project("value")
	rotate(q)
	rotate(k)
	var want []float64
	for row := range q {
		mixed := make([]float64, width)
		for h := range heads {
			shared := h / (heads / kv) * d
			total := 0.0
			for other := row / length * length; other <= row; other++ {
				score := (q[row][h*d]*k[other][shared] + q[row][h*d+1]*k[other][shared+1]) / math.Sqrt(d)
				total += math.Exp(score)
				mixed[h*d] += math.Exp(score) * v[other][shared]
				mixed[h*d+1] += math.Exp(score) * v[other][shared+1]
			}
			mixed[h*d] /= total
			mixed[h*d+1] /= total
		}
		want = append(want, affine(w["output.weight"], nil, mixed)...)
	}
	compare(t, "attention", got[0], want)
}

func TestAttendMask(t *testing.T) {
	got, w := results(t, func(b *built) []*tensor.Tensor {
		q, k, v := b.input("q", 1, 2, 1, 3), b.input("k", 1, 4, 1, 3), b.input("v", 1, 4, 1, 3)
		only := b.p.Graph().Table(ir.I32, []float64{0, 1, 0, 0}, 1, 1, 1, 4).Eq(b.p.Graph().Scalar(ir.I32, 1))
		return []*tensor.Tensor{layer.Attend(q, k, v, only, false)}
	})
	row := w["v"].data[3:6] // the one key that is seen
	compare(t, "attend", got[0], append(append([]float64{}, row...), row...))
}

func TestFeedForward(t *testing.T) {
	got, w := results(t, func(b *built) []*tensor.Tensor {
		x := b.input("x", 3, 4)
		return []*tensor.Tensor{layer.NewMLP(b.p.In("mlp"), 4, 7).Forward(x), layer.NewSwiGLU(b.p.In("glu"), 4, 7).Forward(x)}
	})
	compare(t, "mlp", got[0], rows(w["x"], 4, func(row []float64) []float64 {
		h := affine(w["mlp.up.weight"], w["mlp.up.bias"].data, row)
		for i, v := range h {
			h[i] = v / 2 * (1 + math.Erf(v/math.Sqrt2))
		}
		return affine(w["mlp.down.weight"], w["mlp.down.bias"].data, h)
	}))
	compare(t, "swiglu", got[1], rows(w["x"], 4, func(row []float64) []float64 {
		h, up := affine(w["glu.gate.weight"], nil, row), affine(w["glu.up.weight"], nil, row)
		for i, v := range h {
			h[i] = v * logistic(v) * up[i]
		}
		return affine(w["glu.down.weight"], nil, h)
	}))
}

func TestRecurrentCells(t *testing.T) {
	const in, hidden, batch = 3, 4, 2
	got, w := results(t, func(b *built) []*tensor.Tensor {
		x, h, c := b.input("x", batch, in), b.input("h", batch, hidden), b.input("c", batch, hidden)
		nextH, nextC := layer.NewLSTM(b.p.In("lstm"), in, hidden).Forward(x, h, c)
		return []*tensor.Tensor{layer.NewRNN(b.p.In("rnn"), in, hidden).Forward(x, h), layer.NewGRU(b.p.In("gru"), in, hidden).Forward(x, h), nextH, nextC}
	})
	var rnn, gru, lstmH, lstmC []float64
	for b := range batch {
		x, h, c := w["x"].data[b*in:][:in], w["h"].data[b*hidden:][:hidden], w["c"].data[b*hidden:][:hidden]
		part := func(name string) (fromX, fromH []float64) {
			return affine(w[name+".input.weight"], w[name+".input.bias"].data, x), affine(w[name+".state.weight"], w[name+".state.bias"].data, h)
		}
		rx, rh := part("rnn")
		gx, gh := part("gru")
		lx, lh := part("lstm")
		for i := range hidden {
			rnn = append(rnn, math.Tanh(rx[i]+rh[i]))
			r, z := logistic(gx[i]+gh[i]), logistic(gx[hidden+i]+gh[hidden+i])
			n := math.Tanh(gx[2*hidden+i] + r*gh[2*hidden+i])
			gru = append(gru, (1-z)*n+z*h[i])
			gate := func(k int) float64 { return lx[k*hidden+i] + lh[k*hidden+i] }
			next := logistic(gate(1))*c[i] + logistic(gate(0))*math.Tanh(gate(2))
			lstmC = append(lstmC, next)
			lstmH = append(lstmH, logistic(gate(3))*math.Tanh(next))
		}
	}
	compare(t, "rnn", got[0], rnn)
	compare(t, "gru", got[1], gru)
	compare(t, "lstm h", got[2], lstmH)
	compare(t, "lstm c", got[3], lstmC)
}

func TestUnroll(t *testing.T) {
	got, w := results(t, func(b *built) []*tensor.Tensor {
		all, last := layer.Unroll(b.input("x", 2, 3, 4), b.input("h", 2, 4), func(x, h *tensor.Tensor) *tensor.Tensor { return h.MulScalar(2).Add(x) })
		return []*tensor.Tensor{all, last}
	})
	var all, last []float64
	for b := range 2 {
		h := append([]float64{}, w["h"].data[b*4:][:4]...)
		for step := range 3 {
			for i := range h {
				h[i] = 2*h[i] + w["x"].at(b, step, i)
			}
			all = append(all, h...)
		}
		last = append(last, h...)
	}
	compare(t, "all", got[0], all)
	compare(t, "last", got[1], last)
}

// Convolution, pooling and transposed convolution in one dimension against
// loops; the operator vectors test the operations themselves.
func TestConvolutions(t *testing.T) {
	const b, in, out, n = 2, 3, 4, 8
	got, w := results(t, func(b2 *built) []*tensor.Tensor {
		x := b2.input("x", b, in, n)
		conv := layer.NewConv1d(b2.p.In("conv"), in, out, 3, tensor.ConvOptions{Padding: []int{1}})
		chain := layer.Chain{conv, layer.MaxPool{Kernel: []int{2}}, layer.AvgPool{Kernel: []int{4}}, layer.Flatten{}, layer.Func((*tensor.Tensor).Neg)}
		transposed := layer.NewConvTranspose(b2.p.In("up"), in, out, []int{2}, tensor.ConvOptions{Stride: []int{2}})
		square := layer.NewConv2d(b2.p.In("square"), in, 1, 2, tensor.ConvOptions{})
		return []*tensor.Tensor{conv.Forward(x), chain.Forward(x), transposed.Forward(x), square.Forward(x.Unflatten(2, 2, 4))}
	})
	x := w["x"]
	at := func(i, c, k int) float64 {
		if k < 0 || k >= n {
			return 0
		}
		return x.at(i, c, k)
	}
	var conv, chain, up, square []float64
	for i := range b {
		for o := range out {
			row := make([]float64, n)
			double := make([]float64, 2*n)
			for k := range n {
				row[k] = w["conv.bias"].data[o]
				double[2*k], double[2*k+1] = w["up.bias"].data[o], w["up.bias"].data[o]
				for c := range in {
					for e := range 3 {
						row[k] += at(i, c, k+e-1) * w["conv.weight"].at(o, c, e)
					}
					double[2*k] += at(i, c, k) * w["up.weight"].at(c, o, 0)
					double[2*k+1] += at(i, c, k) * w["up.weight"].at(c, o, 1)
				}
			}
			conv, up = append(conv, row...), append(up, double...)
			mean := 0.0
			for k := 0; k < n; k += 2 {
				mean += math.Max(row[k], row[k+1]) / 4
			}
			chain = append(chain, -mean)
		}
		for k := range 3 {
			sum := w["square.bias"].data[0]
			for c := range in {
				for r := range 2 {
					for e := range 2 {
						sum += at(i, c, 4*r+k+e) * w["square.weight"].at(0, c, r, e)
					}
				}
			}
			square = append(square, sum)
		}
	}
	compare(t, "conv", got[0], conv)
	compare(t, "chain", got[1], chain)
	compare(t, "transposed", got[2], up)
	compare(t, "square", got[3], square)
}

func TestMistakesNameTheirCallSite(t *testing.T) {
	for want, build := range map[string]func(p *nn.Parameters, x *tensor.Tensor) *tensor.Tensor{
		"input f32[2 6], weight f32[5 4]": func(p *nn.Parameters, x *tensor.Tensor) *tensor.Tensor { return layer.NewLinear(p, 4, 5).Forward(x) },
		"recurrent: no cell": func(p *nn.Parameters, x *tensor.Tensor) *tensor.Tensor {
			all, _ := layer.NewRecurrent(p, layer.RecurrentOptions{In: 6, Hidden: 2}).Forward(x.Unsqueeze(0), nil)
			return all
		},
		"width 6, 4 heads": func(p *nn.Parameters, x *tensor.Tensor) *tensor.Tensor {
			return layer.NewAttention(p, layer.AttentionOptions{Width: 6, Heads: 4}).Forward(x, nil)
		},
		"rate is 1.5": func(p *nn.Parameters, x *tensor.Tensor) *tensor.Tensor { return layer.NewDropout(p, 1.5).Forward(x) },
		"group_norm":  func(p *nn.Parameters, x *tensor.Tensor) *tensor.Tensor { return layer.NewGroupNorm(p, 4, 6).Forward(x) },
	} {
		g := tensor.NewGraph()
		build(nn.NewParameters(g), g.Input("x", ir.F32, 2, 6))
		if err := g.Err(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "layer_test.go:") {
			t.Errorf("got %v, want %q at layer_test.go", err, want)
		}
	}
}
