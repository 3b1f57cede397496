package tensor

import (
	"math/bits"

	"tgc/ir"
)

// Decompositions of matrices by loops of steps that are the same kernels (see Loop). What a
// decomposition consists of is one tensor until the end, of matrices one above the other, so
// that it has one derivative. f16 and bf16 are computed in f32 and rounded once.

// QR is Q [.., m, k] with orthonormal columns and upper triangular R [.., k, n] with QR = t,
// for matrices [.., m, n] and k = min(m, n), by Householder's reflections in blocks. No element of
// R's diagonal is negative. Derivatives want the first k columns to be independent.
func (t *Tensor) QR() (q, r *Tensor) {
	m, n, ok := t.matrix()
	if !ok {
		return t.bad(), t.bad()
	}
	k := min(m, n)
	both := t.widely(func(a *Tensor) *Tensor {
		first := a.SliceInts(-1, 0, k)
		both := first.reflected().WithGradient([]*Tensor{first}, qrBackward)
		if k == n {
			return both
		}
		rest := both.SliceInts(-2, 0, m).adjoint().MatMul(a.SliceInts(-1, k, n-k))
		return both.Cat(-1, rest.Pad(-2, m, 0))
	})
	return both.SliceInts(-2, 0, m).SliceInts(-1, 0, k), both.SliceInts(-2, m, k)
}

// matrix checks a matrix [.., m, n] of floats.
func (t *Tensor) matrix() (m, n int, ok bool) {
	if !t.ok() {
		return 0, 0, false
	}
	shape, constant := t.Shape().Ints()
	rank := len(shape)
	if !constant || rank < 2 || !t.DType().IsFloat() {
		t.graph.fail("", "%s, want floats [.. m n]", t)
		return 0, 0, false
	}
	return shape[rank-2], shape[rank-1], true
}

// reflected is Q above R for matrices of at least as many rows as columns.
func (t *Tensor) reflected() *Tensor {
	n := t.Extent(-1)
	if n == 0 {
		return t.Pad(-2, 0, n)
	}
	h := t.Contiguous().reflections(t.graph.Zeros(ir.I32, 1, 1))
	identity := t.graph.Eye(t.DType(), n).Pad(0, 0, t.Extent(-2)-n)
	q := identity.Sub(h.w.MatMul(h.v.SliceInts(-2, 0, n).adjoint()))
	r := h.left.SliceInts(-2, 0, n).Triu(0)
	sign := r.Diagonal(0, -2, -1).Lt(t.scalar(0)).Where(t.scalar(-1), t.scalar(1)) // [.. n]
	return q.Mul(sign.Unsqueeze(-2)).Cat(-2, r.Mul(sign.Unsqueeze(-1)))
}

// reflections are the product I - W V^T of Householder's reflections, in order, each of which
// makes a column zero below its place (Bischof and Van Loan 1987), and what they leave of the
// matrix, whose columns are not looked at below their places.
type reflections struct{ v, w, left *Tensor } // [.. m n]

// reflections reflects t, whose first column's place is row at, [1 1]: half of the columns, the
// others by what that gave, as matrix products, and so on down to panels. Rows that are done
// stay, so that all panels are the same kernels.
func (t *Tensor) reflections(at *Tensor) reflections {
	n := t.Extent(-1)
	if n <= panel {
		return t.reflectionSteps(at)
	}
	half := (n/2 + panel - 1) / panel * panel
	a := t.SliceInts(-1, 0, half).Contiguous().reflections(at)
	rest := t.SliceInts(-1, half, n-half)
	rest = rest.Sub(a.v.MatMul(a.w.adjoint().MatMul(rest).Contiguous())).Contiguous()
	b := rest.reflections(at.AddScalar(float64(half)).Contiguous())
	b.w = b.w.Sub(a.w.MatMul(a.v.adjoint().MatMul(b.w).Contiguous())).Contiguous()
	return reflections{a.v.Cat(-1, b.v).Contiguous(), a.w.Cat(-1, b.w).Contiguous(), a.left.Cat(-1, b.left).Contiguous()}
}

// reflectionSteps reflects the columns of a panel one by one. Each step moves its column, and the
// vectors that are known, to the left, and the next ones come in at the right: all steps are the
// same kernels.
func (t *Tensor) reflectionSteps(at *Tensor) reflections {
	n := t.Extent(-1)
	row := t.graph.axisIota(ir.I32, t.shape(), t.Rank()-2) // [m 1]
	zero, nothing := t.scalar(0), t.graph.Zeros(t.DType(), 1).Squeeze().fill(t.shape())
	state := Loop(n, func(state []*Tensor) []*Tensor {
		both, w, at := state[0], state[1], state[2] // both: the vectors beside the columns
		here := row.Eq(at)
		x := at.Le(row).Where(both.SliceInts(-1, n, 1), zero)
		first := here.Where(x, zero).SumKeep(-2)
		size := x.Square().SumKeep(-2).Sqrt()
		// The first element grows, so that nothing cancels; the square of the vector is 2.
		grown := first.Lt(zero).Where(size.Neg(), size)
		length := size.Mul(size.Add(first.Abs())).Sqrt()
		v := x.Add(here.Where(grown, zero)).Div(length.nonzero()).Contiguous()
		common := v.Mul(both).SumKeep(-2).Contiguous() // [1 2n]
		next := v.Sub(w.Mul(common.SliceInts(-1, 0, n)).SumKeep(-1))
		left := both.SliceInts(-1, n, n).Sub(v.Mul(common.SliceInts(-1, n, n)))
		both = both.SliceInts(-1, 1, n-1).Cat(-1, v, left.Roll([]int{-1}, []int{-1}))
		return []*Tensor{both, w.SliceInts(-1, 1, n-1).Cat(-1, next), at.AddScalar(1)}
	}, nothing.Cat(-1, t), nothing, at)
	return reflections{state[0].SliceInts(-1, 0, n), state[1], state[0].SliceInts(-1, n, n)}
}

// qrBackward: with M = R dR^T - dQ^T Q made symmetric by its lower triangle,
// (dQ + Q M) R^-T (Walter and Lehmann 2018).
func qrBackward(both, g *Tensor) []*Tensor {
	n := both.Extent(-1)
	m := both.Extent(-2) - n
	q, r := both.SliceInts(-2, 0, m), both.SliceInts(-2, m, n)
	dq, dr := g.SliceInts(-2, 0, m), g.SliceInts(-2, m, n)
	s := r.MatMul(dr.adjoint()).Sub(dq.adjoint().MatMul(q)).Contiguous()
	s = s.Tril(0).Add(s.Tril(-1).adjoint())
	return []*Tensor{dq.Add(q.MatMul(s)).Contiguous().MatMul(r.adjoint().lowerInverse())}
}

// jacobiLimit is the number of columns up to which Jacobi's rotations are made: the graph has
// some 3 kernels for each of n (log2 n + 4) rounds of n/2 rotations.
const jacobiLimit = 256

// Eigh is the eigenvalues [.., n], ascending, and eigenvectors [.., n, n], as columns, of
// symmetric matrices [.., n, n], of which the upper triangle is not read: by Jacobi's
// rotations, for n up to 256. Derivatives want eigenvalues that differ; those of the vectors
// are for functions that do not depend on a vector's sign.
func (t *Tensor) Eigh() (values, vectors *Tensor) {
	n, ok := t.square()
	if ok && n > jacobiLimit {
		t.graph.fail("", "%s; want at most %d rows", t, jacobiLimit)
		ok = false
	}
	if !ok {
		return t.bad(), t.bad()
	}
	both := t.widely(func(a *Tensor) *Tensor {
		return a.eigh().WithGradient([]*Tensor{a}, func(both, g *Tensor) []*Tensor {
			v, dv := both.SliceInts(-2, 0, n), g.SliceInts(-2, 0, n)
			l, dl := both.SliceInts(-2, n, 1), g.SliceInts(-2, n, 1)
			middle := v.adjoint().MatMul(dv).Mul(l.Sub(l.adjoint()).offDiagonalInverse()).Add(dl.onDiagonal()).Contiguous()
			s := v.MatMul(middle).Contiguous().MatMul(v.adjoint()).Contiguous()
			s = s.Add(s.adjoint()).MulScalar(0.5)
			return []*Tensor{s.Tril(0).Add(s.Tril(-1))}
		})
	})
	return both.SliceInts(-2, n, 1).Squeeze(-2), both.SliceInts(-2, 0, n)
}

// offDiagonalInverse is 1/t off the diagonal, and 0 on it.
func (t *Tensor) offDiagonalInverse() *Tensor {
	i := t.graph.axisIota(ir.I32, t.shape(), t.Rank()-2).Eq(t.graph.axisIota(ir.I32, t.shape(), t.Rank()-1))
	return i.Where(t.scalar(0), t.scalar(1).Div(i.Where(t.scalar(1), t)))
}

// onDiagonal is the square matrix with the row [.. 1 n] on its diagonal.
func (t *Tensor) onDiagonal() *Tensor {
	return t.graph.Eye(t.DType(), t.Extent(-1)).Mul(t)
}

// rotations are what all rounds of Jacobi's method share: columns in pairs (0 1), (2 3), ..,
// and where each column is taken from for the next round, so that after n - 1 rounds each has
// met each other one and all are back in their places (a round-robin tournament).
type rotations struct {
	count     int     // rounds
	own, pair *Tensor // i32 [n]: the column, and that which is rotated with it
	sign      *Tensor // [n]: -1 for the first of a pair, 1 for the second
}

func (t *Tensor) rotations(n int) rotations {
	own, pair, sign := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		from := i + 2 // the second of a pair is that of the next
		switch {
		case n == 2 || i == 0:
			from = i
		case i == 2:
			from = 1
		case i%2 == 0:
			from = i - 2
		case i == n-1:
			from = n - 2
		}
		own[i], pair[i], sign[i] = float64(from), float64(from^1), float64(2*(from%2)-1)
	}
	sweeps := bits.Len(uint(n)) + 2 // convergence is quadratic
	if t.DType() == ir.F64 {
		sweeps += 2
	}
	return rotations{sweeps * (n - 1), t.graph.Table(ir.I32, own, n), t.graph.Table(ir.I32, pair, n), t.graph.Table(t.DType(), sign, n)}
}

// angles are cosines above sines [.. 2 n], in the order of the next round, that make what columns
// have in common zero: their own sizes and what they have in common are [.. n].
func (r rotations) angles(size, common *Tensor) *Tensor {
	own, pair := size.Gather(-1, r.own), size.Gather(-1, r.pair)
	// Both of a pair must agree to the bit, or what they turn by would not be one angle.
	common = common.Gather(-1, r.own).Add(common.Gather(-1, r.pair)).MulScalar(0.5)
	// For the first of a pair, the difference is the other's size less its own.
	tau := pair.Sub(own).Mul(r.sign.Neg()).Div(common.nonzero().MulScalar(2))
	one := tau.scalar(1)
	tangent := one.Div(tau.Abs().Add(tau.Square().Add(one).Sqrt()))
	tangent = common.Eq(tau.scalar(0)).Where(tau.scalar(0), tau.Lt(tau.scalar(0)).Where(tangent.Neg(), tangent))
	c := one.Div(tangent.Square().Add(one).Sqrt())
	return c.Unsqueeze(-2).Cat(-2, c.Mul(tangent).Mul(r.sign).Unsqueeze(-2)).Contiguous()
}

// rotate turns the columns of t and puts them in the order of the next round.
func (r rotations) rotate(t, angles *Tensor) *Tensor {
	c, s := angles.SliceInts(-2, 0, 1), angles.SliceInts(-2, 1, 1)
	return t.Gather(-1, r.own).Mul(c).Add(t.Gather(-1, r.pair).Mul(s))
}

// partners is t with the columns of each pair exchanged, n of them.
func (t *Tensor) partners() *Tensor {
	n := t.Extent(-1)
	shape := t.Shape()
	return t.ReshapeDims(append(shape[:len(shape)-1], t.graph.Dims(n/2, 2)...)...).Flip(-1).ReshapeDims(t.shape()...)
}

// eigh is the eigenvectors above the eigenvalues.
func (t *Tensor) eigh() *Tensor {
	n := t.Extent(-1)
	if n < 2 {
		return t.graph.Ones(t.DType(), 1).fill(t.shape()).Cat(-2, t.SliceInts(-2, 0, min(n, 1)).Pad(-2, 0, 1-min(n, 1)))
	}
	even := n + n%2
	a := t.Tril(0).Add(t.Tril(-1).adjoint()).Pad(-1, 0, even-n).Pad(-2, 0, even-n)
	v := t.graph.Eye(t.DType(), even).expandTo(a.shape()).SliceInts(-2, 0, n)
	round := t.rotations(even)
	w := Loop(round.count, func(state []*Tensor) []*Tensor {
		w := state[0]
		a := w.SliceInts(-2, 0, even)
		turn := round.angles(a.Diagonal(0, -2, -1), a.partners().Diagonal(0, -2, -1)) // a[i, i^1]
		w = round.rotate(w, turn).Contiguous()
		a = round.rotate(w.SliceInts(-2, 0, even).adjoint(), turn) // symmetric
		return []*Tensor{a.Cat(-2, w.SliceInts(-2, even, n))}
	}, a.Cat(-2, v))[0].SliceInts(-1, 0, n)
	values, order := w.SliceInts(-2, 0, n).Diagonal(0, -2, -1).Sort(-1, false)
	vectors := w.SliceInts(-2, even, n).TakeAlong(-1, order.Unsqueeze(-2))
	return vectors.Cat(-2, values.Unsqueeze(-2))
}

// SVD is U [.., m, k], the singular values s [.., k], descending, and V [.., n, k] with
// t = U diag(s) V^T, for matrices [.., m, n] and k = min(m, n) up to 256: by Jacobi's rotations
// of columns, which find small singular values to as many digits as large ones. Where a
// singular value is 0, so are its column of U (of V for m < n). Derivatives want singular
// values that differ and are not 0; those of U and V are for functions that do not depend on
// the sign that a column of both has.
func (t *Tensor) SVD() (u, s, v *Tensor) {
	m, n, ok := t.matrix()
	if ok && min(m, n) > jacobiLimit {
		t.graph.fail("", "%s; want at most %d rows or columns", t, jacobiLimit)
		ok = false
	}
	if !ok {
		return t.bad(), t.bad(), t.bad()
	}
	if m < n {
		v, s, u = t.adjoint().SVD()
		return u, s, v
	}
	all := t.widely(func(a *Tensor) *Tensor {
		return a.svd().WithGradient([]*Tensor{a}, func(all, g *Tensor) []*Tensor { return []*Tensor{svdBackward(all, g, m)} })
	})
	return all.SliceInts(-2, 0, m), all.SliceInts(-2, m+n, 1).Squeeze(-2), all.SliceInts(-2, m, n)
}

// svd is U above V above the singular values.
func (t *Tensor) svd() *Tensor {
	m, n := t.Extent(-2), t.Extent(-1)
	if n == 0 {
		return t.Pad(-2, 0, 1)
	}
	even := max(n+n%2, 2)
	identity := t.graph.Eye(t.DType(), even).SliceInts(0, 0, n)
	shape := append(t.Shape()[:t.Rank()-2], t.graph.Dims(n, even)...)
	round := t.rotations(even)
	w := Loop(round.count, func(state []*Tensor) []*Tensor {
		w := state[0]
		a := w.SliceInts(-2, 0, m)
		turn := round.angles(a.Square().Sum(-2).Contiguous(), a.Mul(a.partners()).Sum(-2).Contiguous())
		return []*Tensor{round.rotate(w, turn)}
	}, t.Pad(-1, 0, even-n).Cat(-2, identity.expandTo(shape)))[0]
	size := w.SliceInts(-2, 0, m).Square().SumKeep(-2).Sqrt().SliceInts(-1, 0, n)
	values, order := size.Sort(-1, true)
	w = w.TakeAlong(-1, order)
	u := w.SliceInts(-2, 0, m).Div(values.nonzero())
	return u.Cat(-2, w.SliceInts(-2, m, n), values)
}

// svdBackward is Townsend 2016, of what svd returns for matrices of m rows.
func svdBackward(all, g *Tensor, m int) *Tensor {
	n := all.Extent(-1)
	parts := func(t *Tensor) (u, v, s *Tensor) {
		return t.SliceInts(-2, 0, m), t.SliceInts(-2, m, n), t.SliceInts(-2, m+n, 1)
	}
	u, v, s := parts(all)
	du, dv, ds := parts(g)
	f := s.Square().Sub(s.Square().adjoint()).offDiagonalInverse()
	turn := func(x, dx *Tensor) *Tensor {
		p := x.adjoint().MatMul(dx).Contiguous()
		return f.Mul(p.Sub(p.adjoint()))
	}
	middle := turn(u, du).Mul(s).Add(turn(v, dv).Mul(s.adjoint())).Add(ds.onDiagonal()).Contiguous()
	out := u.MatMul(middle).Contiguous().MatMul(v.adjoint())
	outside := du.Sub(u.MatMul(u.adjoint().MatMul(du).Contiguous())).Div(s).Contiguous()
	return out.Add(outside.MatMul(v.adjoint()))
}
