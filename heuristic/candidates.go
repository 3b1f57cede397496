package heuristic

import (
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

	mapped *mapped
	work   *work
}

// Candidates lists the plans of a matrix-vector product on a GPU, the cheapest first;
// none where the kernel is something else. Some may be refused when they are lowered.
func Candidates(arena *ir.Arena, sink *ir.UOp, desc *target.Desc, knobs Knobs) ([]Candidate, error) {
	a, err := newAnalysis(arena, sink, desc, knobs)
	if err != nil {
		return nil, err
	}
	weights, _ := a.chosenWeights()
	if len(weights) == 0 || desc.Kind != target.GPU || slices.ContainsFunc(weights, func(w *operand) bool { return !a.allConstant(w.reuse) || len(w.rows) == 0 || a.lanesAlongRows(w) }) {
		return nil, nil
	}
	weights = a.longestFirst(weights)
	k := a.workOf(weights)
	var list []Candidate
	for _, c := range a.mappings(weights, k) {
		list = append(list, Candidate{plan.Plan{Opts: c.complete()}, c.price.total, c.features(k), c, k})
	}
	return list, nil
}

// Reprice is the price by other numbers of the target, in nanoseconds.
func (c *Candidate) Reprice(t *target.Threads) float64 { return c.mapped.estimate(c.work, t).total }

func (c *mapped) features(k *work) map[string]float64 {
	return map[string]float64{
		"rows": k.rows, "points": k.points, "bytes": k.bytes, "operations": k.operations, "ready": k.ready,
		"uses": k.uses, "sums": k.sums, "decoding": k.decoding, "permuted": k.lookups.permuted, "looked_up": k.lookups.loaded,
		"element": k.element(), "tile": k.tile, "sharers": float64(k.sharers), "scales": k.scales,
		"sharing": float64(c.sharing), "thread_rows": float64(c.rows), "groups": float64(c.groups), "turns": float64(c.turns),
		"at_once": float64(c.atOnce), "loaded": float64(c.loaded), "scaled": float64(c.scaled), "iterations": float64(c.iterations), "shared": float64(c.shared),
	}
}
