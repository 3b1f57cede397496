package lower

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Lanes that look up entries of a table, each of some neighbours: a code of IQ3_S stands for four weights, and a
// fragment of a matrix instruction has those of two codes. Where in the table an entry lies is computed; that four lanes
// share it is seen from what is static of the address. An entry is then one load, where a gather of a GPU takes one for each lane.
// Eight layers' worth of such look-ups kept them out of shared memory, too (opt: share-tables).

// entryLanes is how many lanes of a general place after one another are neighbours, with the alignment in bytes of the first of
// each run; step is the bytes of an element.
func (l *memory) entryLanes(base *program.Value, addr *flatAddress, step int64, subAxes []int, at coords) (n, align int) {
	fixed := ir.LinearForm{Const: addr.form.Const}
	var parts [][]ir.Scalar // of the moving terms
	common := l.align[base]
	for _, t := range addr.form.Terms {
		if l.exprs.isStatic(t.Atom) {
			fixed.Terms = append(fixed.Terms, t)
			continue
		}
		common = ir.GCD(common, step*t.Coef)
		for _, u := range l.staticParts(t.Atom, at) {
			parts = append(parts, l.exprs.staticLanes(u, at, subAxes))
		}
	}
	offsets := l.staticOffsets(fixed.Terms, subAxes, at)
	inRun := func(first, lane int) bool {
		return offsets[lane] == offsets[first]+int64(lane-first) &&
			!slices.ContainsFunc(parts, func(v []ir.Scalar) bool { return v[lane] != v[first] })
	}
	for n = min(len(offsets), widestRun/int(step)); n > 1; n-- {
		if len(offsets)%n == 0 && !slices.ContainsFunc(lists.Upto(len(offsets)), func(lane int) bool { return !inRun(lane-lane%n, lane) }) {
			break
		}
	}
	for first := 0; first < len(offsets); first += max(n, 1) {
		common = ir.GCD(common, step*(fixed.Const+offsets[first]))
	}
	if n <= 1 {
		common = ir.GCD(l.align[base], step)
	}
	return n, int(lowBit(common))
}

// widestRun is what a thread of a GPU loads at once at most, in bytes.
const widestRun = 16

// staticParts are the largest nodes under u that lanes have numbers for: where these are the same, u is.
func (l *memory) staticParts(u *ir.UOp, at coords) (parts []*ir.UOp) {
	ir.Walk(func(x *ir.UOp) []*ir.UOp {
		switch {
		case len(l.exprs.laneSubAxes(x, at)) == 0:
			return nil
		case l.exprs.isStatic(x):
			parts = append(parts, x)
			return nil
		}
		return x.Src
	}, u)
	return parts
}

// readEntries loads each run at once.
func (l *memory) readEntries(p place) val {
	var runs []*program.Value
	for lane := 0; lane < p.vector.Type.Lanes; lane += p.run {
		offset := l.b.Cast(l.b.Extract(p.vector, lane), ir.I64)
		runs = append(runs, l.b.Load(l.b.PtrAdd(p.ptr, offset), p.run, p.align))
	}
	return val{v: l.b.Concat(runs...), subAxes: p.subAxes, depth: l.scopes.top()}
}
