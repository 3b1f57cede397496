package traffic_test

import (
	"testing"

	"tgc/engine/traffic"
	"tgc/ir"
	"tgc/packed"
)

// param makes a kernel's buffer argument.
func param(a *ir.Arena, slot int, dtype ir.DType, format string, shape ...int64) *ir.UOp {
	var extents []*ir.UOp
	for _, n := range shape {
		extents = append(extents, a.Index(n))
	}
	return a.Make(ir.OpParam, dtype, ir.ParamArg{Slot: slot, Format: format}, extents...)
}

func sink(a *ir.Arena, stores ...*ir.UOp) *ir.UOp { return a.Make(ir.OpSink, ir.Void, nil, stores...) }

func check(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %d, want %d", what, got, want)
	}
}

// Every packed format: a matrix-vector product reads each byte of the weights
// once, whatever fields the decode expression takes apart.
func TestMatvecReadsWeightsOnce(t *testing.T) {
	const rows, columns = 96, 1024
	for _, format := range packed.All() {
		if format.IsPlain() {
			continue
		}
		a := ir.NewArena()
		w := param(a, 0, ir.U8, format.Name, rows, columns)
		x, y := param(a, 1, ir.F32, "", columns), param(a, 2, ir.F32, "", rows)
		n, k := a.Range(0, a.Index(rows)), a.Range(1, a.Index(columns))
		product := a.Mul(format.Decode(a, w, n, k), a.Load(x, k))
		kernel := sink(a, a.Store(y, a.Reduce(ir.OpAdd, product, k), []*ir.UOp{n}, []*ir.UOp{n}))
		got := traffic.Of(a, kernel, nil)
		size := int64(rows * columns / format.BlockElems * format.BlockBytes)
		check(t, format.Name+": size of the weights", got.Args[0].Size, size)
		read := got.Args[0].Read
		if read > size || read < size*9/10 {
			t.Errorf("%s: %d bytes of weights read, want about %d", format.Name, read, size)
		}
		check(t, format.Name+": activations read", got.Args[1].Read, 4*columns)
		check(t, format.Name+": results written", got.Args[2].Written, 4*rows)
		check(t, format.Name+": flops", got.Flops, 2*rows*columns)
		if !got.Args[2].Writes || got.Args[2].Reads || !got.Args[0].Reads || got.Args[0].Writes {
			t.Errorf("%s: access of weights or results is wrong: %+v", format.Name, got.Args)
		}
	}
}

// Only the chosen experts count, read through an index from memory.
func TestChosenExperts(t *testing.T) {
	const experts, used, rows, columns = 64, 8, 32, 512
	a := ir.NewArena()
	format, _ := packed.Lookup("Q4_K")
	w := param(a, 0, ir.U8, format.Name, experts, rows, columns)
	ids, x, y := param(a, 1, ir.I32, "", used), param(a, 2, ir.F32, "", columns), param(a, 3, ir.F32, "", used, rows)
	s, n, k := a.Range(0, a.Index(used)), a.Range(1, a.Index(rows)), a.Range(2, a.Index(columns))
	row := a.Add(a.Mul(a.Cast(a.Load(ids, s), ir.Idx), a.Index(rows)), n)
	product := a.Mul(format.Decode(a, w, row, k), a.Load(x, k))
	kernel := sink(a, a.Store(y, a.Reduce(ir.OpAdd, product, k), []*ir.UOp{s, n}, []*ir.UOp{s, n}))
	got := traffic.Of(a, kernel, nil)
	check(t, "expert bytes", got.Args[0].Read, used*rows*columns/256*144)
	check(t, "all experts", got.Args[0].Size, experts*rows*columns/256*144)
}

// Attention reads as much of the cache as the position says; two loops over the
// same rows read them once; the heads of a group share a row.
func TestCache(t *testing.T) {
	const heads, group, size, ctx = 2, 4, 16, 4096
	a := ir.NewArena()
	length := a.Var(ir.VarArg{Name: "length", Lo: 1, Hi: ctx, Multiple: 1})
	q, keys := param(a, 0, ir.F32, "", heads*group, size), param(a, 1, ir.F32, "", heads, ctx, size)
	out := param(a, 2, ir.F32, "", heads*group)
	h := a.Range(0, a.Index(heads*group))
	score := func(id int, u *ir.UOp) *ir.UOp {
		e := a.Range(id, a.Index(size))
		row := a.Load(keys, a.Div(h, a.Index(group)), u, e)
		return a.Reduce(ir.OpAdd, a.Mul(a.Load(q, h, e), row), e)
	}
	u, v := a.Range(2, length), a.Range(4, length)
	sum := a.Add(a.Reduce(ir.OpMax, score(1, u), u), a.Reduce(ir.OpAdd, score(3, v), v))
	kernel := sink(a, a.Store(out, sum, []*ir.UOp{h}, []*ir.UOp{h}))
	got := traffic.Of(a, kernel, map[string]int64{"length": 129})
	check(t, "cache bytes", got.Args[1].Read, 4*heads*129*size)
	check(t, "query bytes", got.Args[0].Read, 4*heads*group*size)
	got = traffic.Of(a, kernel, nil)
	check(t, "cache bytes at the bound", got.Args[1].Read, 4*heads*ctx*size)
}

// One row of an embedding, and a store at a position from memory.
func TestDataDependentRows(t *testing.T) {
	a := ir.NewArena()
	table, tokens := param(a, 0, ir.F16, "", 1000, 64), param(a, 1, ir.I32, "", 1)
	cache := param(a, 2, ir.F32, "", 4096, 64)
	e := a.Range(0, a.Index(64))
	token := a.Cast(a.Load(tokens, a.Index(0)), ir.Idx)
	value := a.Cast(a.Load(table, token, e), ir.F32)
	kernel := sink(a, a.Store(cache, value, []*ir.UOp{token, e}, []*ir.UOp{e}))
	got := traffic.Of(a, kernel, nil)
	check(t, "embedding bytes", got.Args[0].Read, 2*64)
	check(t, "token bytes", got.Args[1].Read, 4)
	check(t, "cache bytes", got.Args[2].Written, 4*64)
	check(t, "cache size", got.Args[2].Size, 4*64*4096)
}

// Neighbours read through different expressions overlap: the union is what the
// axis holds, not the sum.
func TestOverlap(t *testing.T) {
	a := ir.NewArena()
	x, y := param(a, 0, ir.F32, "", 100), param(a, 1, ir.F32, "", 98)
	i := a.Range(0, a.Index(98))
	value := a.Add(a.Add(a.Load(x, i), a.Load(x, a.Add(i, a.Index(1)))), a.Load(x, a.Add(i, a.Index(2))))
	kernel := sink(a, a.Store(y, value, []*ir.UOp{i}, []*ir.UOp{i}))
	got := traffic.Of(a, kernel, nil)
	check(t, "bytes", got.Args[0].Read, 400)
	check(t, "flops", got.Flops, 196)
}
