package heuristic

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// Plans of scatters, on a CPU: one pass over the terms, each of which is added to the row
// of its point. Lanes and copies run along the row. Workers share the columns of wide
// rows; of others the points, where looking for the terms of its points costs a worker
// less than adding them.
const (
	scatterCopies = 4   // registers of a row side by side
	wideRow       = 256 // elements that a worker has of a row that is shared
	sharedRow     = 16  // elements of rows whose points are shared
)

// tryScatter takes kernels whose only fold adds each term to one point of a store range.
func tryScatter(a *analysis) proposal {
	if len(a.sink.Src) != 1 {
		return declined("stores", "several stores")
	}
	store := a.sink.Src[0]
	s, axis := a.scatter(store)
	if s == nil {
		return declined("no-scatter", "no fold whose terms count at one of %d points or more", analyse.ScatterPoints)
	}
	if a.desc.Kind == target.GPU {
		return gpuScatter(a, s, axis)
	}
	p := a.plan()
	p.add(plan.SCATTER, p.axes[axis].Name, 0)
	row := p.scatterRow(axis, s)
	workers := int64(max(a.desc.Cost.Workers, 1))
	points := p.size(axis)
	if row >= sharedRow && row < wideRow*workers {
		points = ceil(points, workers)
	}
	p.split(plan.ROLL, axis, points)
	how := fmt.Sprintf("terms of %d loops added to rows of %d, %d points a work unit", len(s.Loops), row, points)
	return p.decidedBy(axis, "one-point", how)
}

// scatter is what a store's fold scatters, and the axis of its points.
func (a *analysis) scatter(store *ir.UOp) (*analyse.Scatter, int) {
	if slices.ContainsFunc(a.order, func(u *ir.UOp) bool { return u.Op == ir.OpLoad && a.written[u.Src[0]] }) {
		return nil, 0
	}
	for _, i := range a.axesOf(plan.StoreAxis) {
		if !a.constant(i) || a.size(i) < analyse.ScatterPoints {
			continue
		}
		if s, ok := analyse.ScatterOf(a.arena, a.bounds, store.Src[1], a.axes[i].Range); ok && s.Fold.DType == store.Src[0].DType {
			return s, i
		}
	}
	return nil, 0
}

// scatterRow keeps the store axes inside of the points within the work unit, lanes and
// copies along the innermost one if all of a row goes to one point; it is the number of
// elements of a row.
func (p *planner) scatterRow(axis int, s *analyse.Scatter) int64 {
	stores := p.axesOf(plan.StoreAxis)
	inner := stores[slices.Index(stores, axis)+1:]
	if len(inner) == 0 {
		return 1
	}
	row, last := p.points(inner), inner[len(inner)-1]
	if !p.movesAcross(s, axis).Has(last) && p.constant(last) && p.laneSafe(last) && p.unitStride(last) {
		p.split(plan.VECTOR, last, powerOfTwoDivisor(p.left(last), lanesOf(p.desc)))
		p.split(plan.UPCAST, last, powerOfTwoDivisor(p.left(last), scatterCopies))
	}
	workers := int64(max(p.desc.Cost.Workers, 1))
	for _, i := range inner {
		switch {
		case !p.constant(i):
		case i == last && row >= wideRow*workers && p.left(i)%workers == 0:
			p.split(plan.ROLL, i, p.left(i)/workers)
		default:
			p.roll(i)
		}
	}
	return row
}
