package emit

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
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

// axisAlong is the axis along which a store goes by a loop, which no other of its indices asks for; -1 for none.
func axisAlong(s *state.State, store, r *ir.UOp) int {
	axis := slices.Index(store.Indices(), r)
	for k, x := range store.Indices() {
		if k != axis && slices.Contains(s.Free.Of(x), r) {
			return -1
		}
	}
	if store.Src[0].Op != ir.OpParam || isPacked(store.Src[0]) {
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
	n, _ := r.Src[0].Int()
	high, low := s.A.Range(expr.RangeID(r), s.A.Index(n/m)), s.A.Range(freeRange(sink), s.A.Index(m))
	with := map[*ir.UOp]*ir.UOp{r: s.A.Add(s.A.Mul(high, s.A.Index(m)), low)}
	stores := make([]*ir.UOp, len(sink.Src))
	for i, store := range sink.Src {
		axis, indices := axisAlong(s, store, r), store.Indices()
		param := s.A.With(store.Src[0], slices.Replace(slices.Clone(store.Src[0].Src), axis, axis+1, s.A.Index(n/m), s.A.Index(m)))
		value := s.Simplify(s.Substitute(store.Src[1], with))
		at := slices.Replace(slices.Clone(indices), axis, axis+1, high, low)
		loops := store.Ranges()
		where := slices.Index(loops, r)
		loops = slices.Replace(slices.Clone(loops), where, where+1, high, low)
		stores[i] = s.A.Make(ir.OpStore, store.DType, store.Arg.(ir.IntArg)+1, slices.Concat([]*ir.UOp{param, value}, at, loops)...)
	}
	return s.A.With(sink, stores)
}

// freeRange is a number that no range of a kernel has.
func freeRange(sink *ir.UOp) int {
	id := 0
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpRange {
			id = max(id, expr.RangeID(u)+1)
		}
	}
	return id
}
