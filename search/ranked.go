package search

import (
	"cmp"
	"context"
	"math"
	goruntime "runtime"
	"slices"

	"tgc/kernel/plan"
)

// rankedBatch is how many candidates are lowered to be ordered by a model of cost.
const rankedBatch = 256

// batchOf is how many candidates are assembled before some are timed.
func batchOf(parallel int) int { return max(32, 4*parallel) }

// usualBatch is that of the machine.
func usualBatch() int { return batchOf(goruntime.GOMAXPROCS(0)) }

// tryRanked lowers all candidates and tries those first that the model expects to be fastest. It
// changes the order and nothing else: outcomes are in the order of the plans.
func (b *Bench) tryRanked(ctx context.Context, plans []plan.Plan) ([]Outcome, error) {
	list := make([]*lowered, len(plans))
	b.each(len(plans), func(i int) { list[i] = b.lowerUnlessLarge(ctx, plans[i]) })
	for i, l := range list {
		b.look(plans[i], l)
	}
	order := b.rank(list)
	known := make(map[int]Outcome)
	var failed error
	for part := range slices.Chunk(order, batchOf(b.options.parallel())) {
		some, lowered := make([]plan.Plan, len(part)), make([]*lowered, len(part))
		for i, at := range part {
			some[i], lowered[i] = plans[at], list[at]
		}
		out, err := b.tryInOrder(ctx, some, lowered)
		for i, o := range out {
			known[part[i]] = o
		}
		if failed = err; err != nil || b.lost {
			break
		}
	}
	var out []Outcome
	for i := range plans {
		if o, ok := known[i]; ok {
			out = append(out, o)
		}
	}
	return out, failed
}

// rank orders candidates by the model: what was left out, of which there is no program, first.
func (b *Bench) rank(list []*lowered) []int {
	order, scores := make([]int, len(list)), make([]float64, len(list))
	vars := b.points[len(b.points)/2]
	for i, l := range list {
		if order[i], scores[i] = i, math.Inf(-1); l.program != nil {
			scores[i] = b.options.Model.Score(FeaturesOf(l.program, l.size, b.kernel.Target, vars))
		}
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(scores[i], scores[k]) })
	return order
}
