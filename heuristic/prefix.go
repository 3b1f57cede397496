package heuristic

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// Running folds: element i of a result folds the elements up to i of a row, so that all
// points of i read the same and differ in what they leave out. With the row and all its
// results as copies of the code it is known which terms those are, and what two results
// have in common is computed once. Lanes run along the results, or along what lies side by
// side beside them. One Zen 5 core, sums of 2^20 in rows of 64: 0.5 ms against 3.2 with
// lanes along the row, which are folded for every result.
const (
	prefixPoints = 64   // of a row
	prefixTerms  = 4096 // copies of the code: rows of 64, with lanes beside them
)

// tryPrefix takes kernels of one reduce whose terms are the same for all points of a store
// axis.
func tryPrefix(a *analysis) proposal {
	reduces := a.axesOf(plan.ReduceAxis)
	if len(reduces) != 1 || len(a.stages) > 0 || !a.plainReduce(reduces[0]) || !a.constant(reduces[0]) || a.size(reduces[0]) > prefixPoints {
		return declined("no-row", "not one plain reduce of a short row")
	}
	row := reduces[0]
	i, _ := a.prefixAxis(row)
	if i < 0 {
		return declined("no-prefix", "no store range of which the terms are the same for all points")
	}
	p := a.plan()
	along, turned := i, false
	if j, apart := a.besidePrefix(i, row); j >= 0 {
		along, turned = j, apart
	}
	lanes := p.lanes(p.size(along), lanesOf(p.desc))
	p.split(plan.VECTOR, along, lanes)
	if p.left(i)*p.size(row) > prefixTerms {
		return declined("many-terms", "%d copies", p.left(i)*p.size(row))
	}
	p.split(plan.UPCAST, i, p.left(i))
	p.split(plan.UNROLL, row, p.size(row))
	if turned {
		p.add(plan.STAGE, p.axes[along].Name, 0)
	}
	p.fma()
	how := fmt.Sprintf("lanes %d of %s, %d terms of %d results unrolled", lanes, a.axes[along].Name, p.size(row), p.size(i))
	return p.decidedBy(i, "prefix", how)
}

// prefixAxis is the store axis on which the reduce depends by conditions alone, and how many
// neighbours along it have the same terms: all of a short axis, or each run of a long one.
func (a *analysis) prefixAxis(row int) (axis int, run int64) {
	for _, i := range a.axesOf(plan.StoreAxis) {
		if !a.constant(i) || !a.everyStore(i) || a.size(i) < 4 {
			continue
		}
		n := a.size(i)
		if n > prefixPoints {
			n = a.size(row)
			if a.desc.Kind != target.GPU || !slices.Contains(a.cuts[a.axes[i].Range], n) {
				continue
			}
		}
		left, same := false, true // out by comparison of positions, alike for all points
		for _, u := range a.order {
			both := a.free.Of(u).Has(row) && a.free.Of(u).Has(i)
			left = left || both && u.DType == ir.Bool && !loads(u)
			same = same && (!both || !isAccess(u) || n < a.size(i) && a.sameInRuns(u, i, n)) && (u.DType != ir.Bool || !both || !loads(u))
		}
		if left && same {
			return i, n
		}
	}
	return -1, 0
}

// sameInRuns reports an expression that is the same for neighbours along axis i, in runs of n:
// it has but multiples of n of the position.
func (a *analysis) sameInRuns(u *ir.UOp, i int, n int64) bool {
	switch {
	case !a.free.Of(u).Has(i):
		return true
	case u.Op == ir.OpRange:
		return false
	case u.Op == ir.OpFloorDiv && u.Src[0] == a.axes[i].Range:
		by, ok := u.Src[1].Int()
		return ok && by%n == 0
	}
	return !slices.ContainsFunc(u.Src, func(x *ir.UOp) bool { return !a.sameInRuns(x, i, n) })
}

// loads reports an expression that reads memory.
func loads(u *ir.UOp) bool {
	return analyse.Any(u, func(x *ir.UOp) bool { return x.Op == ir.OpLoad || x.Op == ir.OpField })
}

// besidePrefix is a store axis along which everything lies side by side. Results that do so along the row are turned
// when they are stored, and terms that do before they are read.
func (a *analysis) besidePrefix(i, row int) (axis int, turned bool) {
	for _, j := range slices.Backward(a.axesOf(plan.StoreAxis)) {
		if j == i || !a.constant(j) || !a.everyStore(j) || a.size(j) < lanesOf(a.desc) || !a.storesAlong(j) && !a.turnsAlong(i) {
			continue
		}
		if a.unitStride(j) {
			return j, false
		}
		if apart := a.readsAcross(a.order, j); len(apart) > 0 && !slices.ContainsFunc(apart, func(u *ir.UOp) bool { return a.stride(u, row) != 1 }) {
			return j, true
		}
	}
	return -1, false
}
