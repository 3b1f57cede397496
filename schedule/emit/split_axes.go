package emit

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/state"
)

// digits: a fold for every position of a stored axis that reads at the digits r/m and r%m of the position is the
// fold for every pair of them, stored side by side:
//
//	for r<n*m: y[r] = sum(a[r/m,k]*b[r/m,k,r%m]; k)  ->  for q<n, t<m: y[q*m+t] = sum(a[q,k]*b[q,k,t]; k)
//
// Heads that are merged behind a product are such an axis. Tiles of a product share what depends on a loop alone: of
// a position nothing does.

// SplitAxes splits the stored axes of every kernel.
func SplitAxes(s *state.State) { eachWritten(s, splitAxes, "digits of a stored axis have loops") }

// splitAxes splits axes of what a kernel stores as long as there are such.
func splitAxes(s *state.State, sink *ir.UOp) *ir.UOp {
	for _, r := range sink.Src[0].Ranges() {
		if m := foldsAtDigits(s, sink, r); m > 0 {
			return splitAxes(s, splitAxis(s, sink, r, m))
		}
	}
	return sink
}

// foldsAtDigits is the extent of the lower digit of a loop, 0 where folds share nothing along one of its digits, or stores
// are not along the loop itself.
func foldsAtDigits(s *state.State, sink, r *ir.UOp) int64 {
	n, constant := r.Src[0].Int()
	if !constant || slices.ContainsFunc(sink.Src, func(store *ir.UOp) bool { return axisAlong(s, store, r) < 0 }) {
		return 0
	}
	m, high, low := int64(0), false, false
	for _, u := range ir.Toposort(sink) {
		switch {
		case u.Op == ir.OpField, u.Op == ir.OpLoad && slices.ContainsFunc(sink.Src, func(store *ir.UOp) bool { return store.Src[0] == u.Src[0] }):
			return 0
		case u.Op != ir.OpFloorDiv && u.Op != ir.OpFloorMod || u.Src[0] != r:
			continue
		}
		digit, known := u.Src[1].Int()
		if !known || m > 0 && digit != m {
			return 0
		}
		m, high, low = digit, high || u.Op == ir.OpFloorDiv, low || u.Op == ir.OpFloorMod
	}
	if !high || !low || m < fewestColumns || n%m != 0 || n == m || !sharesDigit(sink, r) {
		return 0
	}
	return m
}

// axisAlong is the axis, all of it, along which a store goes by a loop, which no other of its indices asks for; -1 for none.
func axisAlong(s *state.State, store, r *ir.UOp) int {
	axis, param := slices.Index(store.Indices(), r), store.Src[0]
	for k, x := range store.Indices() {
		if k != axis && slices.Contains(s.Free.Of(x), r) {
			return -1
		}
	}
	if axis < 0 || param.Op != ir.OpParam || isPacked(param) || param.Src[axis] != r.Src[0] {
		return -1
	}
	return axis
}

// fewestColumns is the least extent of a digit that is split off: lanes and tiles have as many. The two columns of a
// transposed convolution with stride 2 leave them empty.
const fewestColumns = 8

// sharesDigit reports a fold that reads one thing for one digit of a loop alone, and another for the other digit: positions
// that have a digit in common share what is read.
func sharesDigit(sink, r *ir.UOp) bool {
	asks := func(load *ir.UOp, op ir.Op) bool {
		return slices.ContainsFunc(load.Indices(), func(x *ir.UOp) bool {
			return analyse.Any(x, func(u *ir.UOp) bool { return u.Op == op && u.Src[0] == r })
		})
	}
	return slices.ContainsFunc(ir.Toposort(sink), func(fold *ir.UOp) bool {
		if fold.Op != ir.OpReduce || len(sink.Src[0].Ranges()) < 2 && !analyse.IsTuple(fold) {
			return false // the sum of one row has nobody to share a column with
		}
		alone, low := false, false
		for _, u := range ir.Toposort(fold) {
			if u.Op == ir.OpLoad {
				high := asks(u, ir.OpFloorDiv)
				alone, low = alone || high && !asks(u, ir.OpFloorMod), low || asks(u, ir.OpFloorMod)
			}
		}
		return alone && low
	})
}

// splitAxis writes the kernel with a loop over each digit of r, and what it stores with an axis for each.
func splitAxis(s *state.State, sink, r *ir.UOp, m int64) *ir.UOp {
	d := digitLoops(s, sink, r, m)
	stores := make([]*ir.UOp, len(sink.Src))
	for i, store := range sink.Src {
		axis := axisAlong(s, store, r)
		split := func(list []*ir.UOp, high, low *ir.UOp) []*ir.UOp {
			return slices.Replace(slices.Clone(list), axis, axis+1, high, low)
		}
		param := s.A.With(store.Src[0], split(store.Src[0].Src, d.high.Src[0], d.low.Src[0]))
		value := s.Simplify(s.Substitute(store.Src[1], d.with))
		stores[i] = s.A.Make(ir.OpStore, store.DType, store.Arg.(ir.IntArg)+1,
			slices.Concat([]*ir.UOp{param, value}, split(store.Indices(), d.high, d.low), d.instead(store.Ranges(), r))...)
	}
	return s.A.With(sink, stores)
}
