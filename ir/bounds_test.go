package ir

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	_ "tgc/internal/steadyseed"
)

// evalNode evaluates an expression of elementwise ops over leaves.
func evalNode(root *UOp, leaves map[*UOp]Scalar) Scalar {
	values := make(map[*UOp]Scalar)
	for _, u := range Toposort(root) {
		if v, ok := leaves[u]; ok {
			values[u] = v
			continue
		}
		if v, ok := u.Scalar(); ok {
			values[u] = v
			continue
		}
		args := make([]Scalar, len(u.Src))
		for i, s := range u.Src {
			args[i] = values[s]
		}
		src := u.Src[0].DType
		if u.Op == OpWhere {
			src = u.DType
		}
		if u.Op == OpAssume {
			values[u] = args[0]
			continue
		}
		values[u] = EvalScalar(u.Op, u.DType, src, args)
	}
	return values[root]
}

// exprGen grows random integer expressions whose leaves are ranges (cast to
// the dtype), bytes of any value and constants.
type exprGen struct {
	a      *Arena
	t      *rapid.T
	leaves map[*UOp]Scalar
}

func (g *exprGen) leaf(d DType) *UOp {
	switch rapid.IntRange(0, 3).Draw(g.t, "leaf") {
	case 0:
		v := rapid.Int64Range(-20, 300).Draw(g.t, "const")
		if rapid.Bool().Draw(g.t, "wide") {
			v = rapid.Int64().Draw(g.t, "wideConst")
			if d == Idx {
				v >>= 40
			}
		}
		return g.a.ConstInt(d, v)
	case 1:
		id := rapid.IntRange(0, 3).Draw(g.t, "range")
		n := []int64{1, 3, 16, 60}[id]
		r := g.a.Range(id, g.a.Index(n))
		if _, ok := g.leaves[r]; !ok {
			g.leaves[r] = IntScalar(rapid.Int64Range(0, n-1).Draw(g.t, "at"))
		}
		return g.a.Cast(r, d)
	case 2:
		id := rapid.IntRange(0, 1).Draw(g.t, "var")
		v := g.a.Var(VarArg{Name: []string{"m", "n"}[id], Lo: 4, Hi: 400, Multiple: []int64{1, 4}[id]})
		if _, ok := g.leaves[v]; !ok {
			g.leaves[v] = IntScalar(rapid.Int64Range(1, 100).Draw(g.t, "at") * 4)
		}
		return g.a.Cast(v, d)
	}
	if d == Idx {
		return g.a.Cast(g.leaf(U8), Idx)
	}
	p := g.a.Make(OpArg, d, IntArg(rapid.IntRange(0, 1).Draw(g.t, "slot")))
	if _, ok := g.leaves[p]; !ok {
		g.leaves[p] = IntScalar(WrapInt(d, rapid.Int64().Draw(g.t, "data")))
	}
	return p
}

func (g *exprGen) expr(d DType, depth int) *UOp {
	if depth == 0 || rapid.IntRange(0, 5).Draw(g.t, "stop") == 0 {
		return g.leaf(d)
	}
	ops := []Op{OpAdd, OpSub, OpMul, OpFloorDiv, OpFloorMod, OpMin, OpMax, OpNeg, OpAbs, OpWhere, OpCast, OpAdd, OpMul, OpFloorDiv, OpFloorMod}
	if d != Idx {
		ops = append(ops, OpAnd, OpOr, OpXor, OpNot, OpShl, OpShr, OpPopc, OpClz, OpMulHi)
	}
	op := rapid.SampledFrom(ops).Draw(g.t, "op")
	switch op {
	case OpWhere:
		x, y := g.expr(d, depth-1), g.expr(d, depth-1)
		cmp := rapid.SampledFrom([]Op{OpCmpLt, OpCmpEq}).Draw(g.t, "cmp")
		return g.a.Make(OpWhere, d, nil, g.a.Make(cmp, Bool, nil, g.expr(d, depth-1), g.expr(d, depth-1)), x, y)
	case OpCast:
		from := rapid.SampledFrom([]DType{I8, U8, I16, I32, U32, I64, U64, Idx}).Draw(g.t, "from")
		return g.a.Make(OpCast, d, nil, g.expr(from, depth-1))
	}
	x := g.expr(d, depth-1)
	if op.Info().Arity == 1 {
		return g.a.Make(op, d, nil, x)
	}
	y := g.expr(d, depth-1)
	if (op == OpShl || op == OpShr) && rapid.IntRange(0, 3).Draw(g.t, "amount") > 0 {
		y = g.a.ConstInt(d, rapid.Int64Range(0, 9).Draw(g.t, "shift"))
	}
	return g.a.Make(op, d, nil, x, y)
}

// small reports that no Idx node came near the end of int64, where the
// mathematical meaning and EvalScalar part.
func small(root *UOp, leaves map[*UOp]Scalar) bool {
	for _, u := range Toposort(root) {
		if u.DType != Idx || len(u.Src) == 0 {
			continue
		}
		// Sizes as float64: they cannot wrap. A node is at most the product
		// (or sum) of its sources.
		size := 1.0
		for _, s := range u.Src {
			size *= 1 + math.Abs(float64(evalNode(s, leaves).I))
		}
		if size > 1<<60 {
			return false
		}
	}
	return true
}

func holds(v Interval, d DType, x int64) bool {
	inRange := v.Lo <= x && x <= v.Hi
	if d == U64 && x < 0 {
		inRange = v.Hi == PosInf
	}
	residue := v.Mult == 1 || v.Mult == 0 && x == v.Rem || v.Mult > 1 && (FloorMod(x, v.Mult) == v.Rem || d == U64 && x < 0 && v.Mult&(v.Mult-1) != 0)
	return inRange && residue && uint64(x)&v.Zeros == 0 && ^uint64(x)&v.Ones == 0
}

func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &exprGen{NewArena(), t, map[*UOp]Scalar{}}
		d := rapid.SampledFrom([]DType{Idx, Idx, I8, U8, I16, I32, U32, I64, U64}).Draw(t, "dtype")
		root := g.expr(d, 4)
		if !small(root, g.leaves) {
			return
		}
		b := NewBounds()
		for _, u := range Toposort(root) {
			if u.DType.IsFloat() {
				continue
			}
			x := evalNode(u, g.leaves).I
			if v := b.Of(u); !holds(v, u.DType, x) {
				var src []Interval
				for _, s := range u.Src {
					src = append(src, b.Of(s))
				}
				t.Fatalf("%s %s of %v: %d is not in %v (zeros %#x ones %#x)", u.Op, u.DType, src, x, v, v.Zeros, v.Ones)
			}
		}
	})
}

func TestBoundsOfIndices(t *testing.T) {
	a, b := NewArena(), NewBounds()
	n := a.Var(VarArg{Name: "n", Lo: 0, Hi: 4095, Multiple: 32})
	k := a.Range(0, a.Index(2048))
	r := a.Range(1, n)
	q := a.Make(OpField, U8, FieldArg{"F", "q"}, a.Make(OpParam, U8, ParamArg{Format: "F"}), k, k, k)
	for _, c := range []struct {
		name string
		node *UOp
		want string
	}{
		{"range", k, "[0, 2047]"},
		{"symbolic extent", r, "[0, 4063]"},
		{"multiple", n, "[0, 4064] = 0 mod 32"},
		{"div", a.Div(k, a.Index(256)), "[0, 7]"},
		{"mod", a.Mod(k, a.Index(256)), "[0, 255]"},
		{"affine", a.Add(a.Mul(k, a.Index(210)), a.Index(4)), "[4, 429874] = 4 mod 210"},
		{"mask", a.Binary(OpAnd, q, a.ConstInt(U8, 15)), "[0, 15]"},
		{"shifted mask", a.Binary(OpShl, a.Binary(OpAnd, q, a.ConstInt(U8, 3)), a.ConstInt(U8, 4)), "[0, 48] = 0 mod 16"},
		{"field of 6 bits", a.Sub(a.Cast(a.Binary(OpAnd, q, a.ConstInt(U8, 63)), I32), a.ConstInt(I32, 32)), "[-32, 31]"},
	} {
		if got := b.Of(c.node).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestLinear(t *testing.T) {
	a := NewArena()
	n := a.Var(VarArg{Name: "n", Lo: 1, Hi: 9})
	x, y := a.Range(0, a.Index(8)), a.Range(1, a.Index(9))
	sum := func(t ...*UOp) *UOp {
		s := t[0]
		for _, u := range t[1:] {
			s = a.Add(s, u)
		}
		return s
	}
	cancel := a.Sub(a.Mul(a.Add(x, a.Index(3)), n), sum(a.Mul(n, x), a.Mul(n, a.Index(3))))
	if f := Linear(a, cancel); len(f.Terms) != 0 || f.Const != 0 {
		t.Errorf("(x+3)*n - n*x - 3n = %v, want 0", f)
	}
	one := Linear(a, sum(a.Mul(x, a.Index(4)), y, a.Mul(x, a.Index(2)), a.Index(7)))
	two := Linear(a, sum(y, a.Index(7), a.Mul(a.Add(x, x), a.Index(3))))
	if !one.Equal(two) || one.Build(a) != two.Build(a) || one.Coef(x) != 6 {
		t.Errorf("forms differ: %v and %v", one, two)
	}
	deep := x
	for i := range 100000 {
		deep = a.Make(OpAdd, Idx, nil, deep, []*UOp{x, y}[i%2])
	}
	if f := Linear(a, deep); f.Coef(x) != 50001 || f.Coef(y) != 50000 {
		t.Errorf("deep sum: %v", f)
	}
}

func TestLinearKeepsValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &exprGen{NewArena(), t, map[*UOp]Scalar{}}
		root := g.expr(Idx, 5)
		if !small(root, g.leaves) {
			return
		}
		built := Linear(g.a, root).Build(g.a)
		if got, want := evalNode(built, g.leaves), evalNode(root, g.leaves); got != want {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
