package ir

import (
	"math"
	"slices"
)

// Monoid is what a REDUCE folds with, and what passes may rely on when they
// part, tile or narrow one. Passes ask for the property that they need; which
// monoids there are, and how a tuple's is recognised by its combine steps, is
// known here alone.
type Monoid struct {
	Name string // "add", "softmax", ..; empty: a tuple that has no name
	// Key is the plain op with which component 0 folds, whatever the others are;
	// OpInvalid: there is none.
	Key Op
	// Separable: component i needs itself and component 0 alone. Components may be
	// dropped, computed apart, and have ranges of their own.
	Separable bool
	// Rescales: component i > 0 is a sum of Weight(key, total key) times values. Sums
	// under one key may be added up plainly before they are folded, and an element
	// whose key is the identity of Key's fold counts for nothing.
	Rescales bool
	// Scale, of a monoid that rescales, is the factor c of Weight.
	Scale *UOp

	combine func(a *Arena, dtype DType, n int) (identity, combine []*UOp)
}

// plainMonoids are the folds with one op.
var plainMonoids = map[Op]*Monoid{
	OpAdd: {Name: "add", Key: OpAdd},
	OpMul: {Name: "mul", Key: OpMul},
	OpMax: {Name: "max", Key: OpMax},
	OpMin: {Name: "min", Key: OpMin},
}

// tupleMonoids are the makers of monoids of tuples that have a name. Each takes
// what a combine step may hold besides constants; read finds it in a tuple, and
// says ok where the tuple may be one.
var tupleMonoids = []struct {
	make func(scale *UOp) *Monoid
	read func(u *UOp, n int) (scale *UOp, ok bool)
}{
	{Softmax, readSoftmaxScale},
	{func(*UOp) *Monoid { return Moments() }, func(_ *UOp, n int) (*UOp, bool) { return nil, n == momentParts }},
}

// MonoidOf is what a REDUCE folds with, never nil.
func (a *Arena) MonoidOf(u *UOp) *Monoid {
	arg := u.Arg.(ReduceArg)
	if arg.Op != OpInvalid {
		return plainMonoids[arg.Op]
	}
	m, known := a.monoids.Get(u)
	if !known {
		m = a.findMonoid(u, arg.N)
		a.monoids.Set(u, m)
	}
	return m
}

func (a *Arena) findMonoid(u *UOp, n int) *Monoid {
	for _, row := range tupleMonoids {
		scale, ok := row.read(u, n)
		if !ok {
			continue
		}
		m := row.make(scale)
		identity, combine := m.combine(a, u.DType, n)
		if slices.Equal(u.ReduceIdentities(), identity) && slices.Equal(u.ReduceCombine(), combine) {
			return m
		}
	}
	return &Monoid{}
}

// Fold folds values with a named monoid of tuples over one RANGE.
func (a *Arena) Fold(m *Monoid, values []*UOp, over *UOp) *UOp {
	identity, combine := m.combine(a, values[0].DType, len(values))
	return a.TupleReduce(values, over, identity, combine)
}

// ReduceIdentity is the identity of component i of a REDUCE.
func (a *Arena) ReduceIdentity(u *UOp, i int) *UOp {
	if arg := u.Arg.(ReduceArg); arg.Op != OpInvalid {
		return a.FoldIdentity(arg.Op, u.DType)
	}
	return u.ReduceIdentities()[i]
}

// Softmax is the monoid of a softmax (online softmax, Milakov and Gimelshein
// 2018): component 0 is the running maximum of a score, component i the sum of
// exp2(c*(score - maximum)) times anything. Combining takes the larger maximum,
// and the sums scaled to it. No maximum is below the lowest finite number, so
// that an element of -inf has weight 0 and no inf-inf arises, whatever is
// combined: an element with the identity, or two masked elements.
func Softmax(c *UOp) *Monoid {
	m := &Monoid{Name: "softmax", Key: OpMax, Separable: true, Rescales: true, Scale: c}
	m.combine = func(a *Arena, dtype DType, n int) (identity, combine []*UOp) {
		arg := func(i int) *UOp { return a.Make(OpArg, dtype, IntArg(i)) }
		floor := m.LeastKey(a, dtype)
		top := a.Binary(OpMax, a.Binary(OpMax, arg(0), arg(n)), floor)
		identity, combine = []*UOp{floor}, []*UOp{top}
		left, right := m.Weight(a, arg(0), top), m.Weight(a, arg(n), top)
		for i := 1; i < n; i++ {
			identity = append(identity, a.Const(dtype, 0))
			combine = append(combine, a.Add(a.Mul(arg(i), left), a.Mul(arg(n+i), right)))
		}
		return identity, combine
	}
	return m
}

// Weight is what an element of a monoid that rescales is multiplied by under a
// key that is at least its own.
func (m *Monoid) Weight(a *Arena, key, top *UOp) *UOp {
	return a.Unary(OpExp2, a.Mul(a.Sub(key, top), m.Scale))
}

// Share is Weight where code is to see that it is at most 1.
func (m *Monoid) Share(a *Arena, key, top *UOp) *UOp {
	return a.Unary(OpExp2, a.Binary(OpMin, a.Mul(a.Sub(key, top), m.Scale), a.Const(key.DType, 0)))
}

// LeastKey is the identity of the key of a monoid that rescales: the lowest
// finite number.
func (m *Monoid) LeastKey(a *Arena, dtype DType) *UOp {
	if dtype == F64 {
		return a.Const(dtype, -math.MaxFloat64)
	}
	return a.Const(dtype, -math.MaxFloat32)
}

// readSoftmaxScale finds c: it is in the combine step of component 1.
func readSoftmaxScale(u *UOp, n int) (c *UOp, ok bool) {
	if n < 2 {
		return nil, false
	}
	for _, x := range Toposort(u.ReduceCombine()[1]) {
		if x.Op == OpExp2 && x.Src[0].Op == OpMul {
			c = x.Src[0].Src[1]
		}
	}
	return c, c != nil
}

// momentParts is the number of components of Moments.
const momentParts = 3

// Moments is the monoid of mean and variance (Chan, Golub and LeVeque 1979): the
// mean, the sum of squares of deviations from it, and the count. An element x is
// (x, 0, 1).
func Moments() *Monoid {
	return &Monoid{Name: "moments", combine: func(a *Arena, d DType, _ int) (identity, combine []*UOp) {
		arg := func(i int) *UOp { return a.Make(OpArg, d, IntArg(i)) }
		zero, one := a.Const(d, 0), a.Const(d, 1)
		count := a.Add(arg(2), arg(5))
		delta := a.Sub(arg(3), arg(0))
		// Two empty sides have count 0: divide by at least 1.
		share := a.Binary(OpFDiv, arg(5), a.Binary(OpMax, count, one))
		mean := a.Add(arg(0), a.Mul(delta, share))
		squares := a.Add(a.Add(arg(1), arg(4)), a.Mul(a.Mul(delta, delta), a.Mul(arg(2), share)))
		return []*UOp{zero, zero, zero}, []*UOp{mean, squares, count}
	}}
}

// FoldIdentity is the neutral element of a fold with one op.
func (a *Arena) FoldIdentity(op Op, dtype DType) *UOp {
	return a.ConstScalar(dtype, ReduceIdentity(op, dtype))
}
