package heuristic

import (
	"cmp"
	"slices"

	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/target"
)

// Candidate is a plan that was priced.
type Candidate struct {
	Plan     plan.Plan
	Price    float64            // nanoseconds
	Features map[string]float64 // of which the price is made, for those who fit it

	reprice func(desc *target.Desc) float64
}

// Candidates lists the plans of a product on a GPU, of a matrix by a vector or of two
// matrices, the cheapest first; none where the kernel is something else. Some may be
// refused when they are lowered.
func Candidates(arena *ir.Arena, sink *ir.UOp, desc *target.Desc, knobs Knobs) ([]Candidate, error) {
	a, err := newAnalysis(arena, sink, desc, knobs)
	if err != nil {
		return nil, err
	}
	weights, _ := a.chosenWeights()
	if len(weights) == 0 || desc.Kind != target.GPU {
		return nil, nil
	}
	list := append(a.matrixCandidates(weights), a.vectorCandidates(weights)...)
	slices.SortStableFunc(list, func(x, y Candidate) int { return cmp.Compare(x.Price, y.Price) })
	return list, nil
}

// vectorCandidates are those of a product that streams its weights.
func (a *analysis) vectorCandidates(weights []*operand) (list []Candidate) {
	if !a.fewUses(weights, gpuFewUses) || slices.ContainsFunc(weights, a.lanesAlongRows) {
		return nil
	}
	weights = a.longestFirst(weights)
	k := a.workOf(weights)
	for _, c := range a.mappings(weights, k) {
		reprice := func(desc *target.Desc) float64 { return c.estimate(k, &desc.Threads).total }
		list = append(list, Candidate{plan.Plan{Opts: c.complete()}, c.price.total, c.features(k), reprice})
	}
	return list
}

// matrixCandidates are those of a product that matrix instructions make.
func (a *analysis) matrixCandidates(weights []*operand) (list []Candidate) {
	i := slices.IndexFunc(weights, func(w *operand) bool { return len(w.reuse) > 0 })
	if i < 0 {
		return nil
	}
	m, ok := a.matrixProduct(weights, weights[i])
	if !ok {
		return nil
	}
	k := m.work
	for _, t := range m.tiles() {
		reprice := func(desc *target.Desc) float64 { return t.estimate(k, desc, 1) }
		list = append(list, Candidate{plan.Plan{Opts: m.plan(t).opts}, t.price, t.features(k), reprice})
	}
	return list
}

// Reprice is the price by other numbers of a target, in nanoseconds.
func (c *Candidate) Reprice(desc *target.Desc) float64 { return c.reprice(desc) }

func (c *mapped) features(k *work) map[string]float64 {
	return map[string]float64{
		"rows": k.rows, "points": k.points, "bytes": k.bytes, "operations": k.operations, "ready": k.ready,
		"uses": k.uses, "sums": k.sums, "decoding": k.decoding, "permuted": k.lookups.permuted, "looked_up": k.lookups.loaded,
		"element": k.element(), "invariant": k.invariant, "tile": k.tile, "sharers": float64(k.sharers), "scales": k.scales,
		"sharing": float64(c.sharing), "thread_rows": float64(c.rows), "groups": float64(c.groups), "turns": float64(c.turns),
		"at_once": float64(c.atOnce), "loaded": float64(c.loaded), "scaled": float64(c.scaled), "lines": c.lines(k), "blocks": c.blocks, "iterations": float64(c.iterations), "shared": float64(c.shared),
	}
}
