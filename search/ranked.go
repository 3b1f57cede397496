package search

import (
	"cmp"
	"context"
	"math"
	goruntime "runtime"
	"slices"

	"tgc/kernel/plan"
	"tgc/target"
)

// rankedBatch is how many candidates are lowered to be ordered by a model of cost.
const rankedBatch = 256

// rankFor has candidates ordered where a model was learned, and where a search begins with drafts, most
// of which are slow.
func (o *BenchOptions) rankFor(options *Options) {
	if o.Ranked = o.Model != nil || options.Scratch; o.Ranked {
		options.Batch = rankedBatch
	}
}

// batchOf is how many candidates are assembled before some are timed.
func batchOf(parallel int) int { return max(32, 4*parallel) }

// usualBatch is that of the machine.
func usualBatch() int { return batchOf(goruntime.GOMAXPROCS(0)) }

// tryRanked lowers all candidates and tries those first that are expected to be fastest. It
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

// rank orders candidates by what is expected: what was left out, of which there is no program, first.
func (b *Bench) rank(list []*lowered) []int {
	order, scores := make([]int, len(list)), make([]float64, len(list))
	score := b.score()
	for i, l := range list {
		if order[i], scores[i] = i, math.Inf(-1); l.program != nil {
			scores[i] = score(l)
		}
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(scores[i], scores[k]) })
	return order
}

// Numbers of the estimate of a GPU's programs, fitted to the order of 18,000 times of 242 kernels on an H200
// (planbench -learn's files): instructions that a multiprocessor begins in a cycle, threads with which it does so
// most of the time and by which power it does less with fewer, cycles of a thread's own instruction, of a barrier and
// of a register that it has no room for, and by which power blocks that wait for others take longer.
const (
	issued        = 141
	hidingThreads = 393
	hidingPower   = 0.43
	ownCycles     = 3.2
	barrierCycles = 200
	spillCycles   = 13
	wavesPower    = 0.32
	tailPower     = 0.11
)

// estimate orders programs where nothing was learned: by how long a thread waits for what it computes from
// and goes on, and by the instructions of all. It holds for plans that differ by factors, as those do from which a
// search starts.
func (f *Features) estimate(desc *target.Desc) float64 {
	all, blocks := math.Exp(f[featureAll]), math.Exp(f[featureBlocks])
	workers := min(blocks, float64(max(desc.Cost.Workers, 1)))
	if desc.Kind != target.GPU {
		return all / workers
	}
	issue := all / workers / issued / math.Pow(min(1, math.Exp(f[featureResident])/hidingThreads), hidingPower)
	spilled := max(math.Exp(f[featureLive])+spareRegisters-unitRegisters/math.Exp(f[featureThreads]), 0)
	alone := math.Expm1(f[featurePath]) + ownCycles*math.Exp(f[featureThread]) + barrierCycles*math.Expm1(f[featureBarriers]) + spillCycles*spilled
	return issue + alone*math.Exp(wavesPower*f[featureWaves]+tailPower*f[featureTail])
}
