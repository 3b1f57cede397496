package heuristic_test

import (
	"math"

	"tgc/ir"
	"tgc/packed"
)

// builder makes kernels by hand.
type builder struct {
	*ir.Arena
	next int
}

func newBuilder() *builder { return &builder{Arena: ir.NewArena()} }

func (b *builder) rng(n int64) *ir.UOp { return b.rngOf(b.Index(n)) }

func (b *builder) rngOf(n *ir.UOp) *ir.UOp {
	b.next++
	return b.Range(b.next-1, n)
}

func (b *builder) param(slot int, d ir.DType, dims ...int64) *ir.UOp {
	return b.Make(ir.OpParam, d, ir.ParamArg{Slot: slot}, b.extents(dims)...)
}

func (b *builder) packed(slot int, format string, dims ...int64) *ir.UOp {
	return b.Make(ir.OpParam, ir.U8, ir.ParamArg{Slot: slot, Format: format}, b.extents(dims)...)
}

func (b *builder) extents(dims []int64) []*ir.UOp {
	src := make([]*ir.UOp, len(dims))
	for i, n := range dims {
		src[i] = b.Index(n)
	}
	return src
}

// weight is a matrix of a format and the value of its elements as f32.
func (b *builder) weight(slot int, format string, rows, k int64) func(row, k *ir.UOp) *ir.UOp {
	f, ok := packed.Lookup(format)
	if !ok {
		panic("no format " + format)
	}
	var w *ir.UOp
	if f.IsPlain() {
		w = b.param(slot, f.Plain, rows, k)
	} else {
		w = b.packed(slot, format, rows, k)
	}
	return func(row, k *ir.UOp) *ir.UOp { return f.Decode(b.Arena, w, row, k) }
}

func (b *builder) sum(v *ir.UOp, over ...*ir.UOp) *ir.UOp {
	for i := len(over) - 1; i >= 0; i-- {
		v = b.Reduce(ir.OpAdd, v, over[i])
	}
	return v
}

func (b *builder) f(v float64) *ir.UOp { return b.Const(ir.F32, v) }

func (b *builder) stage(v *ir.UOp, over ...*ir.UOp) *ir.UOp {
	return b.Make(ir.OpStage, v.DType, ir.StageArg{}, append([]*ir.UOp{v}, over...)...)
}

func (b *builder) sink(stores ...*ir.UOp) *ir.UOp { return b.Make(ir.OpSink, ir.Void, nil, stores...) }

func list(u ...*ir.UOp) []*ir.UOp { return u }

// silu is x/(1+exp(-x)).
func (b *builder) silu(x *ir.UOp) *ir.UOp {
	e := b.Unary(ir.OpExp2, b.Mul(x, b.f(-math.Log2E)))
	return b.Mul(x, b.Unary(ir.OpRecip, b.Add(b.f(1), e)))
}

// softmax is the tuple reduce (max, sum of weights, weighted sums..).
func (b *builder) softmax(t *ir.UOp, values ...*ir.UOp) *ir.UOp {
	return b.Fold(ir.Softmax(b.f(math.Log2E)), values, t)
}

// rsqrtMean is 1/sqrt(mean(x*x)+eps) of a row of x, along its last axis.
func (b *builder) rsqrtMean(x *ir.UOp, n int64, k *ir.UOp, row ...*ir.UOp) *ir.UOp {
	at := append(row, k)
	ss := b.sum(b.Mul(b.Load(x, at...), b.Load(x, at...)), k)
	return b.Unary(ir.OpRsqrt, b.Add(b.Mul(ss, b.f(1/float64(n))), b.f(1e-5)))
}

// variant changes the form of a matvec, not its meaning.
type variant struct {
	cast, swap, norm, bias, residual, gate, transposed bool

	spread bool // the weight's factors are multiplied to the activation one by one
}

// product is y*w in the variant's order.
func (b *builder) product(y, w *ir.UOp, v variant) *ir.UOp {
	switch {
	case v.swap:
		return b.Mul(w, y)
	case v.spread && w.Op == ir.OpMul:
		return b.Mul(b.product(y, w.Src[0], v), w.Src[1])
	}
	return b.Mul(y, w)
}

// matvec: out[n] = sum_k x[k] * W[n,k]. Slots: 0 x, 1 W, 2 out, then what the
// variant adds.
func (b *builder) matvec(format string, rows, k int64, v variant) *ir.UOp {
	x, out := b.param(0, ir.F32, k), b.param(2, ir.F32, rows)
	n, r := b.rng(rows), b.rng(k)
	y := b.Load(x, r)
	if v.norm {
		y = b.Mul(y, b.Load(b.param(3, ir.F32, k), r))
	}
	product := func(slot int) *ir.UOp {
		var w *ir.UOp
		if v.transposed {
			w = b.Load(b.param(slot, ir.F32, k, rows), r, n)
		} else {
			w = b.weight(slot, format, rows, k)(n, r)
		}
		if v.cast {
			w = b.Cast(b.Cast(w, ir.F64), ir.F32)
		}
		return b.sum(b.product(y, w, v), r)
	}
	value := product(1)
	if v.norm {
		value = b.Mul(b.rsqrtMean(x, k, r), value)
	}
	if v.gate {
		value = b.Mul(b.silu(value), product(6))
	}
	if v.bias {
		value = b.Add(value, b.Load(b.param(4, ir.F32, rows), n))
	}
	if v.residual {
		value = b.Add(b.Load(b.param(5, ir.F32, rows), n), value)
	}
	return b.sink(b.Store(out, value, list(n), list(n)))
}

// packedHalves: out[t,n] = sum_k x[t,k] * W[n,k] of rounded factors, of which one is packed.
func (b *builder) packedHalves(tokens, rows, k int64) *ir.UOp {
	x, out := b.param(0, ir.BF16, tokens, k), b.param(2, ir.F32, tokens, rows)
	t, n, r := b.rng(tokens), b.rng(rows), b.rng(k)
	w := b.Cast(b.Cast(b.weight(1, "Q5_K", rows, k)(n, r), ir.BF16), ir.F32)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Cast(b.Load(x, t, r), ir.F32), w), r), list(t, n), list(t, n)))
}

// matmul: out[t,n] = sum_k x[t,k] * W[n,k].
func (b *builder) matmul(format string, tokens, rows, k int64, v variant) *ir.UOp {
	x, out := b.param(0, ir.F32, tokens, k), b.param(2, ir.F32, tokens, rows)
	t, n, r := b.rng(tokens), b.rng(rows), b.rng(k)
	y := b.Load(x, t, r)
	w := b.weight(1, format, rows, k)(n, r)
	if v.cast {
		w = b.Cast(b.Cast(w, ir.F64), ir.F32)
	}
	value := b.sum(b.product(y, w, v), r)
	if v.gate {
		value = b.Mul(b.silu(value), b.sum(b.product(y, b.weight(6, format, rows, k)(n, r), v), r))
	}
	if v.bias {
		value = b.Add(value, b.Load(b.param(4, ir.F32, rows), n))
	}
	return b.sink(b.Store(out, value, list(t, n), list(t, n)))
}

// pairs: a matvec whose neighbouring rows are rotated by an angle: a STAGE of
// two sums for each pair of outputs. halves pairs i with i+32 instead.
func (b *builder) pairs(format string, heads, k int64, halves bool) *ir.UOp {
	rows := heads * 64
	x, out, cos, sin := b.param(0, ir.F32, k), b.param(2, ir.F32, heads, 64), b.param(3, ir.F32, 32), b.param(4, ir.F32, 32)
	w := b.weight(1, format, rows, k)
	h, p, i, z, r := b.rng(heads), b.rng(32), b.rng(2), b.rng(2), b.rng(k)
	row := func(z *ir.UOp) *ir.UOp {
		if halves {
			return b.Add(b.Add(b.Mul(h, b.Index(64)), p), b.Mul(z, b.Index(32)))
		}
		return b.Add(b.Add(b.Mul(h, b.Index(64)), b.Mul(p, b.Index(2))), z)
	}
	tile := b.stage(b.sum(b.Mul(b.Load(x, r), w(row(z), r)), r), z)
	c, s := b.Load(cos, p), b.Load(sin, p)
	self, other := b.Load(tile, i), b.Load(tile, b.Mod(b.Add(i, b.Index(1)), b.Index(2)))
	value := b.Where(b.Lt(i, b.Index(1)), b.Sub(b.Mul(self, c), b.Mul(other, s)), b.Add(b.Mul(other, s), b.Mul(self, c)))
	at := b.Add(b.Mul(p, b.Index(2)), i)
	if halves {
		at = b.Add(p, b.Mul(i, b.Index(32)))
	}
	return b.sink(b.Store(out, value, list(h, at), list(h, p, i)))
}

// headNorm: a matvec whose heads of 64 rows are normalised: a STAGE of 64 sums.
func (b *builder) headNorm(format string, heads, k int64) *ir.UOp {
	x, gamma, out := b.param(0, ir.F32, k), b.param(3, ir.F32, 64), b.param(2, ir.F32, heads, 64)
	w := b.weight(1, format, heads*64, k)
	h, i, z, e, r := b.rng(heads), b.rng(64), b.rng(64), b.rng(64), b.rng(k)
	tile := b.stage(b.sum(b.Mul(b.Load(x, r), w(b.Add(b.Mul(h, b.Index(64)), z), r)), r), z)
	ss := b.sum(b.Mul(b.Load(tile, e), b.Load(tile, e)), e)
	scale := b.Unary(ir.OpRsqrt, b.Add(b.Mul(ss, b.f(1.0/64)), b.f(1e-6)))
	value := b.Mul(b.Mul(b.Load(tile, i), scale), b.Load(gamma, i))
	return b.sink(b.Store(out, value, list(h, i), list(h, i)))
}

// experts: out[j,n] = sum_k x[k] * W[id[j], n, k].
func (b *builder) experts(format string, used, all, rows, k int64) *ir.UOp {
	x, ids, out := b.param(0, ir.F32, k), b.param(3, ir.I32, used), b.param(2, ir.F32, used, rows)
	w := b.weight(1, format, all*rows, k)
	j, n, r := b.rng(used), b.rng(rows), b.rng(k)
	id := b.Cast(b.Load(ids, j), ir.Idx)
	id = b.Binary(ir.OpMax, b.Binary(ir.OpMin, id, b.Index(all-1)), b.Index(0))
	row := b.Add(b.Mul(id, b.Index(rows)), n)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(x, r), w(row, r)), r), list(j, n), list(j, n)))
}

// tokenExperts: out[t,j,n] = scale[t] * sum_k W[id[t,j], n, k] * x[t,k] * gamma[k], scaled by the norm of x[t]: the products of
// a batch with its experts.
func (b *builder) tokenExperts(format string, tokens, used, all, rows, k int64) *ir.UOp {
	x, ids, gamma, out := b.param(0, ir.F32, tokens, k), b.param(3, ir.I32, tokens, used), b.param(4, ir.F32, k), b.param(2, ir.F32, tokens, used, rows)
	w := b.weight(1, format, all*rows, k)
	t, j, n, r := b.rng(tokens), b.rng(used), b.rng(rows), b.rng(k)
	id := b.Binary(ir.OpMax, b.Binary(ir.OpMin, b.Cast(b.Load(ids, t, j), ir.Idx), b.Index(all-1)), b.Index(0))
	product := b.Mul(b.Mul(w(b.Add(b.Mul(id, b.Index(rows)), n), r), b.Load(x, t, r)), b.Load(gamma, r))
	squares := b.sum(b.Mul(b.Load(x, t, r), b.Load(x, t, r)), r)
	scale := b.Unary(ir.OpRsqrt, b.Add(b.Mul(squares, b.f(1/float64(k))), b.f(1e-6)))
	return b.sink(b.Store(out, b.Mul(scale, b.sum(product, r)), list(t, j, n), list(t, j, n)))
}

// rankedExperts: out[t,j,n] = sum_k W[e, n, k] * x[t,k], where e is the place of the j-th largest of a token's scores, whose order is computed
// for each point.
func (b *builder) rankedExperts(format string, tokens, used, all, rows, k int64) *ir.UOp {
	x, scores, out := b.param(0, ir.F32, tokens, k), b.param(3, ir.F32, tokens, all), b.param(2, ir.F32, tokens, used, rows)
	w := b.weight(1, format, all*rows, k)
	t, j, n, r := b.rng(tokens), b.rng(used), b.rng(rows), b.rng(k)
	e, other := b.rng(all), b.rng(all)
	larger := b.Where(b.Binary(ir.OpCmpLt, b.Load(scores, t, e), b.Load(scores, t, other)), b.ConstInt(ir.I32, 1), b.ConstInt(ir.I32, 0))
	rank := b.stage(b.sum(larger, other), e)
	z := b.rng(all)
	chosen := b.Where(b.Binary(ir.OpCmpEq, b.Load(rank, z), b.Cast(j, ir.I32)), b.Cast(z, ir.I32), b.ConstInt(ir.I32, 0))
	id := b.Binary(ir.OpMin, b.Cast(b.sum(chosen, z), ir.Idx), b.Index(all-1))
	product := b.Mul(w(b.Add(b.Mul(id, b.Index(rows)), n), r), b.Load(x, t, r))
	return b.sink(b.Store(out, b.sum(product, r), list(t, j, n), list(t, j, n)))
}

// grouped is a matrix of several for each group of tokens: [groups, tokens, rows].
func (b *builder) grouped(format string, groups, tokens, rows, k int64) *ir.UOp {
	const all = 4
	out, x, which := b.param(0, ir.F32, groups, tokens, rows), b.param(2, ir.F32, groups, tokens, k), b.param(3, ir.I32, groups)
	w := b.weight(1, format, all*rows, k)
	g, token, row, i := b.rng(groups), b.rng(tokens), b.rng(rows), b.rng(k)
	matrix := b.Binary(ir.OpMin, b.Binary(ir.OpMax, b.Cast(b.Load(which, g), ir.Idx), b.Index(0)), b.Index(all-1))
	product := b.Mul(b.Load(x, g, token, i), w(b.Add(b.Mul(matrix, b.Index(rows)), row), i))
	at := []*ir.UOp{g, token, row}
	return b.sink(b.Store(out, b.sum(product, i), at, at))
}

// layerNormed: a matvec behind a staged row: z = (x - mean) * gamma.
func (b *builder) layerNormed(format string, rows, k int64) *ir.UOp {
	x, gamma, out := b.param(0, ir.F32, k), b.param(3, ir.F32, k), b.param(2, ir.F32, rows)
	n, r, z, m := b.rng(rows), b.rng(k), b.rng(k), b.rng(k)
	mean := b.Mul(b.sum(b.Load(x, m), m), b.f(1/float64(k)))
	row := b.stage(b.Mul(b.Sub(b.Load(x, z), mean), b.Load(gamma, z)), z)
	value := b.sum(b.Mul(b.Load(row, r), b.weight(1, format, rows, k)(n, r)), r)
	return b.sink(b.Store(out, value, list(n), list(n)))
}

// attention: out[h,i,d] = softmax over t < pos+1 of q[h,i].K[h,t], times V. With
// tokens > 0, queries of several tokens under a causal mask.
func (b *builder) attention(kv, group, length, dim, tokens int64) *ir.UOp {
	return b.attentionOf(ir.F32, kv, group, length, dim, tokens, b.causal)
}

// halfAttention is attention of tokens whose queries, keys and values are f16.
func (b *builder) halfAttention(kv, group, length, dim, tokens int64) *ir.UOp {
	return b.attentionOf(ir.F16, kv, group, length, dim, tokens, b.causal)
}

// causal masks the score s of token u and the rows t behind it, of which two are before the first token.
func (b *builder) causal(s, u, t *ir.UOp) *ir.UOp {
	return b.Where(b.Lt(t, b.Add(u, b.Index(2))), s, b.f(-math.MaxFloat32))
}

// maskedAttention adds what a buffer has for each token and row to scores.
func (b *builder) maskedAttention(kv, group, length, dim, tokens int64) *ir.UOp {
	return b.attentionOf(ir.F32, kv, group, length, dim, tokens, func(s, u, t *ir.UOp) *ir.UOp {
		return b.Add(s, b.Load(b.param(4, ir.F32, tokens, length), u, t))
	})
}

// attentionOf is attention of floats of a type with a mask of tokens and rows, for several tokens.
func (b *builder) attentionOf(elem ir.DType, kv, group, length, dim, tokens int64, mask func(s, u, t *ir.UOp) *ir.UOp) *ir.UOp {
	q, out := b.param(0, elem, max(tokens, 1), kv, group, dim), b.param(3, ir.F32, max(tokens, 1), kv, group, dim)
	k, v := b.param(1, elem, kv, length, dim), b.param(2, elem, kv, length, dim)
	load := func(p *ir.UOp, at ...*ir.UOp) *ir.UOp { return b.Cast(b.Load(p, at...), ir.F32) }
	pos := b.Var(ir.VarArg{Name: "pos", Lo: 0, Hi: length - 1})
	h, i, d, e := b.rng(kv), b.rng(group), b.rng(dim), b.rng(dim)
	t := b.rngOf(b.Add(pos, b.Index(1)))
	u := b.Index(0)
	if tokens > 0 {
		u = b.rng(tokens)
	}
	s := b.Mul(b.sum(b.Mul(load(q, u, h, i, e), load(k, h, t, e)), e), b.f(0.125))
	if tokens > 0 {
		s = mask(s, u, t)
	}
	tuple := b.softmax(t, s, b.f(1), load(v, h, t, d))
	o := b.Mul(b.Unary(ir.OpRecip, b.Proj(tuple, 1)), b.Proj(tuple, 2))
	ranges := list(h, i, d)
	if tokens > 0 {
		ranges = list(u, h, i, d)
	}
	return b.sink(b.Store(out, o, list(u, h, i, d), ranges))
}

// normed: out[k] = x[k] * rsqrt(mean(x*x)) * gamma[k].
func (b *builder) normed(k int64) *ir.UOp {
	x, gamma, out := b.param(0, ir.F32, k), b.param(1, ir.F32, k), b.param(2, ir.F32, k)
	i, r := b.rng(k), b.rng(k)
	value := b.Mul(b.Mul(b.Load(x, i), b.rsqrtMean(x, k, r)), b.Load(gamma, i))
	return b.sink(b.Store(out, value, list(i), list(i)))
}

// normedRows is normed for each of some rows.
func (b *builder) normedRows(rows, k int64) *ir.UOp {
	x, gamma, out := b.param(0, ir.F32, rows, k), b.param(1, ir.F32, k), b.param(2, ir.F32, rows, k)
	row, i, r := b.rng(rows), b.rng(k), b.rng(k)
	value := b.Mul(b.Mul(b.Load(x, row, i), b.rsqrtMean(x, k, r, row)), b.Load(gamma, i))
	return b.sink(b.Store(out, value, list(row, i), list(row, i)))
}

// rowSums and columnSums: out[i] = sum_k x[i,k], or x[k,i].
func (b *builder) rowSums(rows, k int64) *ir.UOp {
	x, out := b.param(0, ir.F32, rows, k), b.param(1, ir.F32, rows)
	i, r := b.rng(rows), b.rng(k)
	return b.sink(b.Store(out, b.sum(b.Load(x, i, r), r), list(i), list(i)))
}

// rowMaxima: out[i] = max_k x[i,k].
func (b *builder) rowMaxima(rows, k int64) *ir.UOp {
	x, out := b.param(0, ir.F32, rows, k), b.param(1, ir.F32, rows)
	i, r := b.rng(rows), b.rng(k)
	return b.sink(b.Store(out, b.Reduce(ir.OpMax, b.Load(x, i, r), r), list(i), list(i)))
}

// rounded is groups of 32 in units of their largest, and the units.
func (b *builder) rounded(rows, groups int64) *ir.UOp {
	return b.roundedRows(rows, groups, func(x, _ *ir.UOp) *ir.UOp { return x })
}

// normedRounded is rounded of rows that are normed first.
func (b *builder) normedRounded(rows, groups int64) *ir.UOp {
	r := b.rng(groups * 32)
	return b.roundedRows(rows, groups, func(x, row *ir.UOp) *ir.UOp {
		return b.Mul(x, b.rsqrtMean(b.param(0, ir.F32, rows, groups*32), groups*32, r, row))
	})
}

// roundedRows is groups of 32 of what is made of elements and their rows, in units of their largest, and the units.
func (b *builder) roundedRows(rows, groups int64, of func(x, row *ir.UOp) *ir.UOp) *ir.UOp {
	x, scales, out := b.param(0, ir.F32, rows, groups*32), b.param(1, ir.F32, rows, groups), b.param(2, ir.F32, rows, groups, 32)
	row, group, i, k := b.rng(rows), b.rng(groups), b.rng(32), b.rng(32)
	at := func(i *ir.UOp) *ir.UOp { return of(b.Load(x, row, b.Add(b.Mul(group, b.Index(32)), i)), row) }
	most := b.Reduce(ir.OpMax, b.Unary(ir.OpAbs, at(k)), k)
	quotient := b.Binary(ir.OpFDiv, at(i), b.Binary(ir.OpMax, most, b.f(1e-30)))
	store := func(p, v *ir.UOp, at ...*ir.UOp) *ir.UOp { return b.Store(p, v, at, at) }
	return b.sink(store(scales, most, row, group), store(out, quotient, row, group, i))
}

func (b *builder) columnSums(k, columns int64) *ir.UOp {
	x, out := b.param(0, ir.F32, k, columns), b.param(1, ir.F32, columns)
	i, r := b.rng(columns), b.rng(k)
	return b.sink(b.Store(out, b.sum(b.Load(x, r, i), r), list(i), list(i)))
}

// gram: out[i,j] = sum_k x[i,k]*x[j,k], or x[k,j] if both are not rows.
func (b *builder) gram(n int64, rows bool) *ir.UOp {
	x, out := b.param(0, ir.F32, n, n), b.param(1, ir.F32, n, n)
	i, j, k := b.rng(n), b.rng(n), b.rng(n)
	other := b.Load(x, k, j)
	if rows {
		other = b.Load(x, j, k)
	}
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(x, i, k), other), k), list(i, j), list(i, j)))
}

// windowSums: out[i] = sum_k sum_j x[k,i+j] w[j].
func (b *builder) windowSums(k, columns, window int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, k, columns+window-1), b.param(1, ir.F32, window), b.param(2, ir.F32, columns)
	i, r, j := b.rng(columns), b.rng(k), b.rng(window)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(x, r, b.Add(i, j)), b.Load(w, j)), r, j), list(i), list(i)))
}

// columnsApart: out[i] = max_k x[k,4i].
func (b *builder) columnsApart(k, columns int64) *ir.UOp {
	x, out := b.param(0, ir.F32, k, 4*columns), b.param(1, ir.F32, columns)
	i, r := b.rng(columns), b.rng(k)
	return b.sink(b.Store(out, b.Reduce(ir.OpMax, b.Load(x, r, b.Mul(i, b.Index(4))), r), list(i), list(i)))
}

// groupFactors: out[i] = max_k x[i,k] s[i,k/64].
func (b *builder) groupFactors(rows, k int64) *ir.UOp {
	x, s, out := b.param(0, ir.F32, rows, k), b.param(1, ir.F32, rows, k/64), b.param(2, ir.F32, rows)
	i, r := b.rng(rows), b.rng(k)
	return b.sink(b.Store(out, b.Reduce(ir.OpMax, b.Mul(b.Load(x, i, r), b.Load(s, i, b.Div(r, b.Index(64)))), r), list(i), list(i)))
}

// pairsOfRows: out[i,j] = x[i,j/2] * max_k x[i,k].
func (b *builder) pairsOfRows(rows, k int64) *ir.UOp {
	x, out := b.param(0, ir.F32, rows, k), b.param(1, ir.F32, rows, k)
	i, j, r := b.rng(rows), b.rng(k), b.rng(k)
	v := b.Mul(b.Load(x, i, b.Div(j, b.Index(2))), b.Reduce(ir.OpMax, b.Load(x, i, r), r))
	return b.sink(b.Store(out, v, list(i, j), list(i, j)))
}

// argmax: the position of the largest logit, as a tuple reduce.
func (b *builder) argmax(n int64) *ir.UOp {
	x, out := b.param(0, ir.F32, n), b.param(1, ir.I32, 1)
	t := b.rng(n)
	arg := func(i int, d ir.DType) *ir.UOp { return b.Make(ir.OpArg, d, ir.IntArg(i)) }
	left := b.Lt(arg(2, ir.F32), arg(0, ir.F32))
	same := b.And(b.Eq(arg(2, ir.F32), arg(0, ir.F32)), b.Lt(arg(1, ir.I32), arg(3, ir.I32)))
	keep := b.Binary(ir.OpOr, left, same)
	tuple := b.TupleReduce(list(b.Load(x, t), b.Cast(t, ir.I32)), t,
		list(b.f(math.Inf(-1)), b.ConstInt(ir.I32, math.MaxInt32)),
		list(b.Where(keep, arg(0, ir.F32), arg(2, ir.F32)), b.Where(keep, arg(1, ir.I32), arg(3, ir.I32))))
	return b.sink(b.Store(out, b.Proj(tuple, 1), list(b.Index(0)), nil))
}

// embedding: out[t,k] = W[id[t], k].
func (b *builder) embedding(format string, tokens, rows, k int64) *ir.UOp {
	ids, out := b.param(0, ir.I32, tokens), b.param(2, ir.F32, tokens, k)
	w := b.weight(1, format, rows, k)
	t, r := b.rng(tokens), b.rng(k)
	id := b.Cast(b.Load(ids, t), ir.Idx)
	id = b.Binary(ir.OpMax, b.Binary(ir.OpMin, id, b.Index(rows-1)), b.Index(0))
	return b.sink(b.Store(out, w(id, r), list(t, r), list(t, r)))
}

// elementwise: out[i] = x[i]*y[i] + 1.
func (b *builder) elementwise(n int64) *ir.UOp {
	x, y, out := b.param(0, ir.F32, n), b.param(1, ir.F32, n), b.param(2, ir.F32, n)
	i := b.rng(n)
	v := b.Add(b.Mul(b.Load(x, i), b.Load(y, i)), b.f(1))
	return b.sink(b.Store(out, v, list(i), list(i)))
}

// dense is the first columns of z = x*y of matrices [m, k] and [k, n]; a T for
// either says that it lies transposed.
func (b *builder) dense(layout string, m, n, k, columns int64) *ir.UOp {
	i, j, r := b.rng(m), b.rng(columns), b.rng(k)
	at := func(slot int, transposed bool, row, column *ir.UOp, rows, columns int64) *ir.UOp {
		if transposed {
			return b.Load(b.param(slot, ir.F32, columns, rows), column, row)
		}
		return b.Load(b.param(slot, ir.F32, rows, columns), row, column)
	}
	x := at(1, layout[0] == 'T', i, r, m, k)
	y := at(2, layout[1] == 'T', r, j, k, n)
	return b.sink(b.Store(b.param(0, ir.F32, m, n), b.sum(b.Mul(x, y), r), []*ir.UOp{i, j}, []*ir.UOp{i, j}))
}

// halves is the product of the halves of a row: out[i,j] = (x w[j]) * (x w[j+n]), x row i.
func (b *builder) halves(m, n, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, m, k), b.param(1, ir.F32, 2*n, k), b.param(2, ir.F32, m, n)
	i, j := b.rng(m), b.rng(n)
	half := func(row, r *ir.UOp) *ir.UOp { return b.sum(b.Mul(b.Load(x, i, r), b.Load(w, row, r)), r) }
	return b.sink(b.Store(out, b.Mul(half(j, b.rng(k)), half(b.Add(j, b.Index(n)), b.rng(k))), list(i, j), list(i, j)))
}

// integers is a matrix-vector product of bytes: x times a scale for each of its
// groups of 32 is rounded to bytes in front of the rows. out[n] = sum_g a[g] *
// sum_j q[g,j]*w[n,32g+j], a the largest of a group.
func (b *builder) integers(rows, k int64) *ir.UOp {
	const group = 32
	x, w, out := b.param(0, ir.F32, k), b.packed(1, "Q8_0", rows, k), b.param(2, ir.F32, rows)
	stage := func(d ir.DType, v *ir.UOp, z ...*ir.UOp) *ir.UOp {
		return b.Make(ir.OpStage, d, ir.StageArg{}, append([]*ir.UOp{v}, z...)...)
	}
	at := func(g, j *ir.UOp) *ir.UOp { return b.Load(x, b.Add(b.Mul(g, b.Index(group)), j)) }
	largest := func(g *ir.UOp) *ir.UOp {
		r := b.rng(group)
		return b.Reduce(ir.OpMax, b.Unary(ir.OpAbs, at(g, r)), r)
	}
	z0, z1, z2 := b.rng(k/group), b.rng(k/group), b.rng(group)
	a := stage(ir.F32, largest(z0), z0)
	up := b.Binary(ir.OpFDiv, b.Const(ir.F32, 127), b.Binary(ir.OpMax, largest(z1), b.Const(ir.F32, 1e-30)))
	q := stage(ir.I8, b.Cast(b.Unary(ir.OpRound, b.Mul(at(z1, z2), up)), ir.I8), z1, z2)
	n, g, j := b.rng(rows), b.rng(k/group), b.rng(group)
	field := func(name string, d ir.DType, j *ir.UOp) *ir.UOp {
		return b.Make(ir.OpField, d, ir.FieldArg{Format: "Q8_0", Field: name}, w, n, g, j)
	}
	weight, scale := field("qs", ir.I8, j), b.Cast(field("d", ir.F16, b.Index(0)), ir.F32)
	dot := b.sum(b.Mul(b.Cast(b.Load(q, g, j), ir.I32), b.Cast(weight, ir.I32)), j)
	v := b.sum(b.Mul(b.Mul(b.Load(a, g), scale), b.Cast(dot, ir.F32)), g)
	return b.Make(ir.OpSink, ir.Void, nil, b.Store(out, v, []*ir.UOp{n}, []*ir.UOp{n}))
}
