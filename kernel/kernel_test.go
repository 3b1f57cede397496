package kernel_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/runtime/interp"
	"tgc/target"
)

// evaluate lowers a kernel with a plan, runs the program and the kernel's own
// evaluator on the same random data, and compares every written buffer.
func evaluate(t testing.TB, a *ir.Arena, sink *ir.UOp, planText string, vars map[string]int64) *program.Program {
	t.Helper()
	plan, err := plan.Parse(planText)
	if err != nil {
		t.Fatal(err)
	}
	return evaluatePlan(t, a, sink, plan, vars)
}

func evaluatePlan(t testing.TB, a *ir.Arena, sink *ir.UOp, plan plan.Plan, vars map[string]int64) *program.Program {
	t.Helper()
	p, err := kernel.Lower(a, sink, plan, avx512)
	if err != nil {
		t.Fatalf("%s: %v", plan, err)
	}
	compare(t, a, sink, p, plan, vars)
	return p
}

func compare(t fataler, a *ir.Arena, sink *ir.UOp, p *program.Program, plan plan.Plan, vars map[string]int64) {
	t.Helper()
	if err := program.Verify(p); err != nil {
		t.Fatalf("%s: %v\n%s", plan, err, show(p))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	data := makeBuffers(t, sink, vars, rng)
	want := data.clone()
	bufs := want.kernelBuffers()
	if _, err := interp.EvalKernel(context.Background(), sink, bufs, vars, interp.KernelOptions{Float64: true}); err != nil {
		t.Fatalf("reference: %v", err)
	}
	args := make([]interp.Arg, len(p.Params))
	for i, param := range p.Params {
		switch param.Kind {
		case program.ParamBuffer:
			args[i].Bytes = data.bytes(param.Slot)
		case program.ParamVar:
			args[i].Int64 = vars[param.Name]
		case program.ParamTable:
			args[i].Bytes = []byte(param.Table)
		}
	}
	if err := interp.RunProgram(p, args, 0, p.Units()); err != nil {
		t.Fatalf("%s: %v\n%s", plan, err, show(p))
	}
	for slot, b := range data.bufs {
		if b == nil || !b.written {
			continue
		}
		got := decode(b.dtype, data.bytes(slot))
		for i, w := range bufs[slot].Data {
			g := got[i]
			if b.dtype.IsFloat() {
				if g.F != w.F && !(math.Abs(g.F-w.F) <= 2e-5*(1+math.Abs(w.F))) && !(math.IsNaN(g.F) && math.IsNaN(w.F)) {
					t.Fatalf("%s: slot %d element %d: %v, want %v\n%s", plan, slot, i, g.F, w.F, show(p))
				}
			} else if g.I != w.I {
				t.Fatalf("%s: slot %d element %d: %v, want %v\n%s", plan, slot, i, g.I, w.I, show(p))
			}
		}
	}
}

// fataler is what *testing.T and *rapid.T share.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// buffer is a test's argument.
type buffer struct {
	dtype   ir.DType
	format  string
	raw     []byte
	values  []ir.Scalar
	written bool
}

type bufferSet struct{ bufs []*buffer }

func (s bufferSet) bytes(slot int) []byte { return s.bufs[slot].raw }

func (s bufferSet) clone() bufferSet {
	var out bufferSet
	for _, b := range s.bufs {
		if b == nil {
			out.bufs = append(out.bufs, nil)
			continue
		}
		c := *b
		c.raw = append([]byte(nil), b.raw...)
		c.values = append([]ir.Scalar(nil), b.values...)
		out.bufs = append(out.bufs, &c)
	}
	return out
}

func (s bufferSet) kernelBuffers() []*interp.KernelBuffer {
	out := make([]*interp.KernelBuffer, len(s.bufs))
	for i, b := range s.bufs {
		if b != nil {
			out[i] = &interp.KernelBuffer{DType: b.dtype, Data: b.values, Format: b.format, Bytes: b.raw}
		}
	}
	return out
}

// makeBuffers fills every PARAM with random data: floats in -1..1, integers of all bits, small
// non-negative ones where they say what is read or floats are computed, valid blocks of packed
// formats.
func makeBuffers(t fataler, sink *ir.UOp, vars map[string]int64, rng *rand.Rand) bufferSet {
	var s bufferSet
	written := make(map[*ir.UOp]bool)
	for _, store := range sink.Src {
		written[store.Src[0]] = true
	}
	small := smallParams(sink)
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpParam {
			continue
		}
		arg := u.Arg.(ir.ParamArg)
		for len(s.bufs) <= arg.Slot {
			s.bufs = append(s.bufs, nil)
		}
		n := int64(1)
		for _, e := range u.Src {
			n *= extentAt(e, vars)
		}
		b := &buffer{dtype: u.DType, format: arg.Format, written: written[u]}
		if arg.Format != "" {
			f, _ := packed.Lookup(arg.Format)
			b.raw = packed.RandomBlocks(f, int(n)/f.BlockElems, rng)
		} else {
			b.values = make([]ir.Scalar, n)
			for i := range b.values {
				if u.DType.IsFloat() {
					b.values[i].F = ir.RoundFloat(u.DType, 2*rng.Float64()-1)
				} else if b.values[i].I = int64(rng.IntN(4)); !small[u] {
					b.values[i] = ir.EvalScalar(ir.OpCast, u.DType, ir.I64, []ir.Scalar{{I: int64(rng.Uint64())}})
				}
			}
			b.raw = encode(u.DType, b.values)
		}
		s.bufs[arg.Slot] = b
	}
	return s
}

// smallParams are the PARAMs of which indices are read, and all of a kernel that computes floats.
func smallParams(sink *ir.UOp) map[*ir.UOp]bool {
	out := make(map[*ir.UOp]bool)
	nodes := ir.Toposort(sink)
	floats := slices.ContainsFunc(nodes, func(u *ir.UOp) bool { return u.DType.IsFloat() })
	for _, u := range nodes {
		out[u] = out[u] || floats
		if u.Op != ir.OpLoad && u.Op != ir.OpField {
			continue
		}
		for _, x := range u.Indices() {
			for _, p := range ir.Toposort(x) {
				out[p] = out[p] || p.Op == ir.OpParam
			}
		}
	}
	return out
}

func extentAt(e *ir.UOp, vars map[string]int64) int64 {
	if n, ok := e.Int(); ok {
		return n
	}
	if e.Op == ir.OpVar {
		return vars[e.Arg.(ir.VarArg).Name]
	}
	args := make([]ir.Scalar, len(e.Src))
	for i, s := range e.Src {
		args[i] = ir.IntScalar(extentAt(s, vars))
	}
	return ir.EvalScalar(e.Op, ir.Idx, ir.Idx, args).I
}

func encode(d ir.DType, values []ir.Scalar) []byte {
	fs := make([]float64, len(values))
	for i, v := range values {
		fs[i] = v.F
		if !d.IsFloat() {
			fs[i] = float64(v.I)
		}
	}
	return []byte(ir.EncodeTable(d, fs))
}

func decode(d ir.DType, raw []byte) []ir.Scalar {
	n := len(raw) / d.Size()
	out := make([]ir.Scalar, n)
	for i := range out {
		b := raw[i*d.Size():]
		switch d {
		case ir.F32:
			out[i].F = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case ir.F64:
			out[i].F = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case ir.I32:
			out[i].I = int64(int32(binary.LittleEndian.Uint32(b)))
		case ir.U32:
			out[i].I = int64(binary.LittleEndian.Uint32(b))
		case ir.F16:
			s := ir.EvalScalar(ir.OpBitcast, ir.F16, ir.U16, []ir.Scalar{{I: int64(binary.LittleEndian.Uint16(b))}})
			out[i] = s
		default:
			panic("decode of " + d.String())
		}
	}
	return out
}

// Kernels by hand. dims are constants; slots in order of the arguments.

type builder struct {
	*ir.Arena
	next int
}

func newBuilder() *builder { return &builder{Arena: ir.NewArena()} }

// newBuilderIn starts another kernel in the same arena.
func newBuilderIn(b *builder) *builder { return &builder{Arena: b.Arena} }

// most is the largest position of a test's cache.
func most(name string) int64 {
	if name == "one head" {
		return 0
	}
	return 4
}

func (b *builder) n(v int64) *ir.UOp { return b.Index(v) }

func (b *builder) rng(n int64) *ir.UOp { return b.rngOf(b.n(n)) }

func (b *builder) rngOf(n *ir.UOp) *ir.UOp {
	b.next++
	return b.Range(b.next-1, n)
}

func (b *builder) param(slot int, d ir.DType, dims ...int64) *ir.UOp {
	src := make([]*ir.UOp, len(dims))
	for i, n := range dims {
		src[i] = b.n(n)
	}
	return b.Make(ir.OpParam, d, ir.ParamArg{Slot: slot}, src...)
}

func (b *builder) packed(slot int, format string, rows, k int64) *ir.UOp {
	return b.Make(ir.OpParam, ir.U8, ir.ParamArg{Slot: slot, Format: format}, b.n(rows), b.n(k))
}

func (b *builder) sum(v, r *ir.UOp) *ir.UOp { return b.Reduce(ir.OpAdd, v, r) }

func (b *builder) f(v float64) *ir.UOp { return b.Const(ir.F32, v) }

func (b *builder) sink(stores ...*ir.UOp) *ir.UOp { return b.Make(ir.OpSink, ir.Void, nil, stores...) }

func list(u ...*ir.UOp) []*ir.UOp { return u }

// elementwise: out[i] = x[i]*y[i] + 1
func elementwise(b *builder, n int64) *ir.UOp {
	x, y, out := b.param(0, ir.F32, n), b.param(1, ir.F32, n), b.param(2, ir.F32, n)
	i := b.rng(n)
	v := b.Add(b.Mul(b.Load(x, i), b.Load(y, i)), b.f(1))
	return b.sink(b.Store(out, v, list(i), list(i)))
}

// matvec: out[n] = sum_k x[k]*w[n,k]
func matvec(b *builder, rows, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, k), b.param(1, ir.F32, rows, k), b.param(2, ir.F32, rows)
	n, r := b.rng(rows), b.rng(k)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(x, r), b.Load(w, n, r)), r), list(n), list(n)))
}

// packedMatvec: out[n] = r * sum_k (x[k]*g[k]) * W[n,k], r = rsqrt(mean(x*x)+eps)
// if norm.
func packedMatvec(b *builder, format string, rows, k int64, norm bool) *ir.UOp {
	f, _ := packed.Lookup(format)
	x, g, out := b.param(0, ir.F32, k), b.param(1, ir.F32, k), b.param(3, ir.F32, rows)
	w := b.packed(2, format, rows, k)
	n, r := b.rng(rows), b.rng(k)
	y := b.Load(x, r)
	if norm {
		y = b.Mul(y, b.Load(g, r))
	}
	v := b.sum(b.Mul(y, f.Decode(b.Arena, w, n, r)), r)
	if norm {
		ss := b.sum(b.Mul(b.Load(x, r), b.Load(x, r)), r)
		mean := b.Add(b.Mul(ss, b.f(1/float64(k))), b.f(1e-5))
		v = b.Mul(b.Unary(ir.OpRsqrt, mean), v)
	}
	return b.sink(b.Store(out, v, list(n), list(n)))
}

// packedMatmul: out[t,n] = sum_k x[t,k] * W[n,k], tokens outermost.
func packedMatmul(b *builder, format string, tokens, rows, k int64) *ir.UOp {
	f, _ := packed.Lookup(format)
	x, out := b.param(0, ir.F32, tokens, k), b.param(3, ir.F32, tokens, rows)
	w := b.packed(2, format, rows, k)
	t, n, r := b.rng(tokens), b.rng(rows), b.rng(k)
	v := b.sum(b.Mul(b.Load(x, t, r), f.Decode(b.Arena, w, n, r)), r)
	return b.sink(b.Store(out, v, list(t, n), list(t, n)))
}

// superblockMatmul is packedMatmul with blocks of 256 elements as a range of
// their own.
func superblockMatmul(b *builder, format string, tokens, rows, k int64) *ir.UOp {
	f, _ := packed.Lookup(format)
	x, out := b.param(0, ir.F32, tokens, k), b.param(3, ir.F32, tokens, rows)
	w := b.packed(2, format, rows, k)
	t, n, block, j := b.rng(tokens), b.rng(rows), b.rng(k/256), b.rng(256)
	r := b.Add(b.Mul(block, b.n(256)), j)
	v := b.sum(b.sum(b.Mul(b.Load(x, t, r), f.Decode(b.Arena, w, n, r)), j), block)
	return b.sink(b.Store(out, v, list(t, n), list(t, n)))
}

// factoredMatmul has a coarse factor outside of inner sums, and an offset and a
// minimum that are summed on their own.
func factoredMatmul(b *builder, tokens, rows, groups, size int64) *ir.UOp {
	x, out := b.param(0, ir.F32, tokens, groups*size), b.param(3, ir.F32, tokens, rows)
	w, scale, least := b.param(1, ir.I8, rows, groups*size), b.param(2, ir.F32, rows, groups), b.param(4, ir.F32, rows, groups)
	t, n, g, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(size)
	k := b.Add(b.Mul(g, b.n(size)), j)
	v := b.Load(x, t, k)
	inner := b.Add(b.sum(b.Mul(v, b.Cast(b.Load(w, n, k), ir.F32)), j), b.Mul(b.f(-32), b.sum(v, j)))
	total := b.Sub(b.sum(b.Mul(b.Load(scale, n, g), inner), g), b.sum(b.Mul(b.Load(least, n, g), b.sum(v, j)), g))
	return b.sink(b.Store(out, total, list(t, n), list(t, n)))
}

// attention: out[h,d] = softmax over t of q[h].K[h,t], times V, with t < len+1.
func attention(b *builder, heads, length, dim int64) *ir.UOp {
	q, k, v := b.param(0, ir.F32, heads, dim), b.param(1, ir.F32, heads, length, dim), b.param(2, ir.F32, heads, length, dim)
	out := b.param(3, ir.F32, heads, dim)
	pos := b.Var(ir.VarArg{Name: "pos", Lo: 0, Hi: length - 1, Multiple: 1})
	h, d, e := b.rng(heads), b.rng(dim), b.rng(dim)
	t := b.rngOf(b.Add(pos, b.n(1)))
	s := b.Mul(b.sum(b.Mul(b.Load(q, h, e), b.Load(k, h, t, e)), e), b.f(0.125))
	tuple := b.softmax(t, s, b.f(1), b.Load(v, h, t, d))
	o := b.Mul(b.Unary(ir.OpRecip, b.Proj(tuple, 1)), b.Proj(tuple, 2))
	return b.sink(b.Store(out, o, list(h, d), list(h, d)))
}

// softmax is the tuple reduce (max, sum of weights, weighted sums..).
func (b *builder) softmax(t *ir.UOp, values ...*ir.UOp) *ir.UOp {
	n := len(values)
	arg := func(i int) *ir.UOp { return b.Make(ir.OpArg, ir.F32, ir.IntArg(i)) }
	exp := func(x *ir.UOp) *ir.UOp { return b.Unary(ir.OpExp2, b.Mul(x, b.f(math.Log2E))) }
	m := b.Binary(ir.OpMax, arg(0), arg(n))
	ids, combine := list(b.f(-math.MaxFloat32)), list(m)
	for i := 1; i < n; i++ {
		ids = append(ids, b.f(0))
		combine = append(combine, b.Add(
			b.Mul(arg(i), exp(b.Sub(arg(0), m))),
			b.Mul(arg(n+i), exp(b.Sub(arg(n), m)))))
	}
	return b.TupleReduce(values, t, ids, combine)
}

// attentionParts stores the parts of a softmax over chunks of the cache: three
// stores of one tuple, of which the third has a range of its own.
func attentionParts(b *builder, heads, chunks, chunk, dim int64) *ir.UOp {
	length := chunks * chunk
	q, k, v := b.param(0, ir.F32, heads, dim), b.param(1, ir.F32, heads, length, dim), b.param(2, ir.F32, heads, length, dim)
	pm, pl, po := b.param(3, ir.F32, heads, chunks), b.param(4, ir.F32, heads, chunks), b.param(5, ir.F32, heads, chunks, dim)
	pos := b.Var(ir.VarArg{Name: "pos", Lo: 0, Hi: length - 1, Multiple: 1})
	h, c, d, e := b.rng(heads), b.rng(chunks), b.rng(dim), b.rng(dim)
	r := b.rng(chunk)
	t := b.Add(b.Mul(c, b.n(chunk)), r)
	live := b.Lt(t, b.Add(pos, b.n(1)))
	s := b.sum(b.Mul(b.Load(q, h, e), b.Load(k, h, t, e)), e)
	tuple := b.softmax(r, b.Where(live, s, b.f(-math.MaxFloat32)), b.Where(live, b.f(1), b.f(0)), b.Where(live, b.Load(v, h, t, d), b.f(0)))
	return b.sink(
		b.Store(pm, b.Proj(tuple, 0), list(h, c), list(h, c)),
		b.Store(pl, b.Proj(tuple, 1), list(h, c), list(h, c)),
		b.Store(po, b.Proj(tuple, 2), list(h, c, d), list(h, c, d)))
}

// tiles rotates pairs of rows of a product: a STAGE of two sums, read with an
// index that swaps them.
func tiles(b *builder, pairs, width, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, k), b.param(1, ir.F32, pairs*width, k), b.param(2, ir.F32, pairs*width)
	h, i, z, r := b.rng(pairs), b.rng(width), b.rng(width), b.rng(k)
	row := b.Add(b.Mul(h, b.n(width)), z)
	tile := b.Make(ir.OpStage, ir.F32, ir.StageArg{}, b.sum(b.Mul(b.Load(x, r), b.Load(w, row, r)), r), z)
	swapped := b.Mod(b.Add(i, b.n(1)), b.n(width))
	v := b.Where(b.Lt(i, b.n(1)), b.Sub(b.Load(tile, i), b.Load(tile, swapped)), b.Add(b.Load(tile, i), b.Load(tile, swapped)))
	return b.sink(b.Store(out, v, list(b.Add(b.Mul(h, b.n(width)), i)), list(h, i)))
}

// groups: sum_g a[g] * (sum_h sum_j q[g,h,j]*w[n,g,h,j] - 3*sum_j q[g,h,j]), where y =
// x*c is staged, a are the largest of its groups and q integers of y*127/a: the
// stages in front of a matrix-vector product of integers.
func groups(b *builder, rows, count, size int64) *ir.UOp {
	return groupsWith(b, 0, rows, count, size, false)
}

// groupsOfTokens: as groups, of several x: out[t,n].
func groupsOfTokens(b *builder, tokens, rows, count, size int64) *ir.UOp {
	return groupsWith(b, tokens, rows, count, size, false)
}

// minima: as groups, but what is taken away is w[n,g,0] * (a[g] * sum_j q[g,j]).
func minima(b *builder, rows, count, size int64) *ir.UOp {
	return groupsWith(b, 0, rows, count, size, true)
}

func groupsWith(b *builder, tokens, rows, count, size int64, minima bool) *ir.UOp {
	k := count * size
	var shape []int64
	var token []*ir.UOp
	if tokens > 0 {
		shape, token = []int64{tokens}, list(b.rng(tokens))
	}
	x, c, w, out := b.param(0, ir.F32, append(shape, k)...), b.param(1, ir.F32, k), b.param(2, ir.I8, rows, k), b.param(3, ir.F32, append(shape, rows)...)
	stage := func(d ir.DType, v *ir.UOp, z ...*ir.UOp) *ir.UOp {
		return b.Make(ir.OpStage, d, ir.StageArg{}, append([]*ir.UOp{v}, z...)...)
	}
	z := b.rng(k)
	y := stage(ir.F32, b.Mul(b.Load(x, append(token, z)...), b.Load(c, z)), z)
	largest := func(g *ir.UOp) *ir.UOp {
		r := b.rng(size)
		return b.Reduce(ir.OpMax, b.Unary(ir.OpAbs, b.Load(y, b.Add(b.Mul(g, b.n(size)), r))), r)
	}
	z0, z1, z2 := b.rng(count), b.rng(count), b.rng(size)
	a := stage(ir.F32, largest(z0), z0)
	up := b.Binary(ir.OpFDiv, b.f(127), b.Binary(ir.OpMax, largest(z1), b.f(1e-30)))
	q := stage(ir.I8, b.Cast(b.Unary(ir.OpRound, b.Mul(b.Load(y, b.Add(b.Mul(z1, b.n(size)), z2)), up)), ir.I8), z1, z2)
	n, g, h, j, o := b.rng(rows), b.rng(count), b.rng(2), b.rng(size/2), b.rng(size/2)
	half := b.Mul(h, b.n(size/2))
	at := func(r *ir.UOp) *ir.UOp { return b.Cast(b.Load(q, g, b.Add(half, r)), ir.I32) }
	dot := b.sum(b.Mul(at(j), b.Cast(b.Load(w, n, b.Add(b.Add(b.Mul(g, b.n(size)), half), j)), ir.I32)), j)
	scale := b.Mul(b.Load(a, g), b.f(1./127))
	if minima {
		all := b.rng(size)
		least := b.Cast(b.Load(w, n, b.Mul(g, b.n(size))), ir.F32)
		sum := b.sum(b.Cast(b.Load(q, g, all), ir.I32), all)
		v := b.Sub(b.Mul(scale, b.Cast(b.sum(dot, h), ir.F32)), b.Mul(b.Mul(scale, b.Cast(sum, ir.F32)), least))
		v = b.sum(v, g)
		return b.sink(b.Store(out, v, append(token, n), append(token, n)))
	}
	offset := b.Mul(b.sum(at(o), o), b.ConstInt(ir.I32, -3))
	v := b.sum(b.Mul(scale, b.Cast(b.sum(b.Add(dot, offset), h), ir.F32)), g)
	return b.sink(b.Store(out, v, append(token, n), append(token, n)))
}

// normRow: the mean of each row taken away, divided by its deviation; the row
// staged.
func normRow(b *builder, rows, n int64) *ir.UOp {
	x, out := b.param(0, ir.F32, rows, n), b.param(1, ir.F32, rows, n)
	i, j, z, r, q := b.rng(rows), b.rng(n), b.rng(n), b.rng(n), b.rng(n)
	mean := b.Mul(b.sum(b.Load(x, i, r), r), b.f(1/float64(n)))
	row := b.Make(ir.OpStage, ir.F32, ir.StageArg{}, b.Sub(b.Load(x, i, z), mean), z)
	square := b.sum(b.Mul(b.Load(row, q), b.Load(row, q)), q)
	v := b.Mul(b.Load(row, j), b.Unary(ir.OpRsqrt, b.Add(square, b.f(1e-5))))
	return b.sink(b.Store(out, v, list(i, j), list(i, j)))
}

// tokens: the largest of each row and the row's sum, over a symbolic number of
// rows.
func tokens(b *builder, most, n int64) *ir.UOp {
	count := b.Var(ir.VarArg{Name: "T", Lo: 1, Hi: most, Multiple: 1})
	param := func(slot int, dims ...*ir.UOp) *ir.UOp {
		return b.Make(ir.OpParam, ir.F32, ir.ParamArg{Slot: slot}, dims...)
	}
	x, top, sum := param(0, count, b.n(n)), param(1, count), param(2, count)
	t, r, q := b.rngOf(count), b.rng(n), b.rng(n)
	return b.sink(
		b.Store(top, b.Reduce(ir.OpMax, b.Load(x, t, r), r), list(t), list(t)),
		b.Store(sum, b.sum(b.Load(x, t, q), q), list(t), list(t)))
}

// cacheRow writes rows at positions from memory, some out of range, and reads
// rows chosen in the same way.
func cacheRow(b *builder, heads, length, dim int64) *ir.UOp {
	pos, x, cache, out := b.param(0, ir.I32, heads), b.param(1, ir.F32, heads, dim), b.param(2, ir.F32, heads, length, dim), b.param(3, ir.F32, heads, dim)
	table := b.param(4, ir.F32, length, dim)
	h, d := b.rng(heads), b.rng(dim)
	at := b.Add(b.Cast(b.Load(pos, h), ir.Idx), b.n(3))
	near := b.Binary(ir.OpMin, b.Cast(b.Load(pos, h), ir.Idx), b.n(length-1))
	return b.sink(
		b.Store(cache, b.Mul(b.Load(x, h, d), b.f(2)), list(h, at, d), list(h, d)),
		b.Store(out, b.Load(table, near, d), list(h, d), list(h, d)))
}

// scatterRows adds rows of x to the rows that pos names, some to none, but for some
// elements: out[k,c] = y[k,c] * (sum_j,i 3*pos[j,i] + i == k & x[j,i,c] > 0 ? x[j,i,c] : 0).
func scatterRows(b *builder, points, terms, dim int64) *ir.UOp {
	out, y := b.param(0, ir.F32, points, dim), b.param(1, ir.F32, points, dim)
	pos, x := b.param(2, ir.I32, terms, 2), b.param(3, ir.F32, terms, 2, dim)
	k, c, j, i := b.rng(points), b.rng(dim), b.rng(terms), b.rng(2)
	at := b.Add(b.Mul(b.Load(pos, j, i), b.ConstInt(ir.I32, 3)), b.Cast(i, ir.I32))
	hit := b.And(b.Eq(b.Cast(k, ir.I32), at), b.Lt(b.f(0), b.Load(x, j, i, c)))
	sum := b.sum(b.sum(b.Where(hit, b.Load(x, j, i, c), b.f(0)), i), j)
	return b.sink(b.Store(out, b.Mul(b.Load(y, k, c), sum), list(k, c), list(k, c)))
}

// scatterLast keeps the largest term of each element of a column, and nothing else.
func scatterLast(b *builder, points, terms, dim int64) *ir.UOp {
	out, pos := b.param(0, ir.I32, points, dim), b.param(1, ir.I32, terms, dim)
	k, c, j := b.rng(points), b.rng(dim), b.rng(terms)
	hit := b.Eq(b.Load(pos, j, c), b.Cast(k, ir.I32))
	last := b.Reduce(ir.OpMax, b.Where(hit, b.Cast(j, ir.I32), b.ConstInt(ir.I32, -1<<31)), j)
	return b.sink(b.Store(out, last, list(k, c), list(k, c)))
}

// scatterCounts counts the terms of each point, and adds their numbers: out[k] = y[k] - sum_j (pos[j]
// == k ? x[j] : 0).
func scatterCounts(b *builder, points, terms int64) *ir.UOp {
	out, y := b.param(0, ir.I32, points), b.param(1, ir.I32, points)
	pos, x := b.param(2, ir.I32, terms), b.param(3, ir.I32, terms)
	k, j := b.rng(points), b.rng(terms)
	sum := b.sum(b.Where(b.Eq(b.Load(pos, j), b.Cast(k, ir.I32)), b.Load(x, j), b.ConstInt(ir.I32, 0)), j)
	return b.sink(b.Store(out, b.Sub(b.Load(y, k), sum), list(k), list(k)))
}

func TestDefaultPlan(t *testing.T) {
	for name, build := range map[string]func(b *builder) *ir.UOp{
		"elementwise": func(b *builder) *ir.UOp { return elementwise(b, 37) },
		"matvec":      func(b *builder) *ir.UOp { return matvec(b, 5, 48) },
		"one":         func(b *builder) *ir.UOp { return elementwise(b, 1) },
		"one row":     func(b *builder) *ir.UOp { return matvec(b, 1, 1) },
		"one head":    func(b *builder) *ir.UOp { return attention(b, 1, 1, 1) },
		"parts":       func(b *builder) *ir.UOp { return attentionParts(b, 2, 3, 4, 16) },
		"tiles":       func(b *builder) *ir.UOp { return tiles(b, 4, 2, 32) },
		"norm":        func(b *builder) *ir.UOp { return normRow(b, 3, 24) },
		"tokens":      func(b *builder) *ir.UOp { return tokens(b, 7, 32) },
		"scatter":     func(b *builder) *ir.UOp { return scatterRows(b, 7, 9, 8) },
		"cache":       func(b *builder) *ir.UOp { return cacheRow(b, 2, 5, 8) },
		"attention":   func(b *builder) *ir.UOp { return attention(b, 2, 6, 16) },
		"Q8_0":        func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 3, 64, true) },
		"Q6_K":        func(b *builder) *ir.UOp { return packedMatvec(b, "Q6_K", 2, 512, true) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder()
			evaluate(t, b.Arena, build(b), "", map[string]int64{"pos": 0, "T": 1})
			evaluate(t, b.Arena, build(newBuilderIn(b)), "", map[string]int64{"pos": min(4, most(name)), "T": 5})
		})
	}
}

// show is a program's text, cut to a readable length.
func show(p *program.Program) string {
	text := program.Print(p)
	return text[:min(len(text), 16000)]
}

// avx512 is what plans of these tests are made for.
var avx512 = &target.Desc{
	Name: "test:avx512", VectorBytes: 64, VectorRegs: 32, WarpSize: 1, MaxThreads: 1,
	CacheL1Bytes: 48 << 10, CacheL2Bytes: 1 << 20, PrefetchBytes: 8 << 10,
}
