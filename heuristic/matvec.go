package heuristic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tgc/internal/lists"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/target"
)

// Matvec plans of a CPU. Measured on one Zen 5 core (docs/bench): 32 lanes of k
// (two 512-bit registers), and per iteration a whole block of up to 256 weights,
// so that a block's scales are converted as one vector and its address is
// linear in the loop; half blocks were 10% slower, one or four registers of
// lanes 15 to 25%, a second row at once 5%.
const (
	matvecRegisters = 2   // of lanes along k
	matvecIteration = 128 // weights per iteration of the loop over k, where no block says otherwise
	matvecBlock     = 256 // the largest block that becomes one iteration
)

// tryMatvec recognises sums over a large operand that is streamed once while a
// small one is used again for every row.
func tryMatvec(a *analysis) proposal {
	if a.knobs.NoMatvec {
		return declined("switched-off", "TGC_MV=0")
	}
	weights, record := a.chosenWeights()
	if weights == nil {
		return proposal{record: record}
	}
	for _, w := range weights {
		if len(w.reuse) > 0 {
			return a.declinedFor(w.reuse[0], "reused", "%s is used for %d outputs each", w.name(), a.points(w.reuse))
		}
	}
	if i, ok := a.windowed(weights[0]); ok {
		return a.declinedFor(i, "window", "sums of %d points, of which neighbours along %s read near each other", a.points(weights[0].chain), a.axes[i].Name)
	}
	if i, ok := a.sharedRow(); ok && (a.desc.Kind != target.GPU || a.size(i) >= int64(a.desc.WarpSize)) {
		return a.declinedFor(i, "rows", "no sum depends on %s: its points share them", a.axes[i].Name)
	}
	if a.desc.Kind == target.GPU {
		return gpuMatvec(a, weights)
	}
	p := a.plan()
	if row := a.recordRow(weights); row >= 0 {
		return p.streams(weights, p.matvecRecords(weights, row))
	}
	if i := p.resultAxis(); i >= 0 && !a.lanesAlongRows(weights[0]) && p.chainLanes(weights[0].chain) == 1 {
		return a.declinedFor(i, "no-lanes", "sums whose terms lie apart, of which neighbours along %s may be lanes", a.axes[i].Name)
	}
	if a.lanesAlongRows(weights[0]) {
		return p.streams(weights, p.matvecRows(weights))
	}
	return p.streams(weights, p.matvecLanes(weights))
}

// streams is the plan of a product that reads its weights once.
func (p *planner) streams(weights []*operand, how string) proposal {
	return p.decidedByWeight(weights[0], "streams-weight", how).of("%s streamed once, x %s reused", p.describe(weights), size(p.partnerBytes(weights[0])))
}

// sharedRow finds a store axis on which no reduce depends: the rows of a norm
// and its derivative, whose elements share the folds of their row. Where a stage
// stands between (the tile of an epilogue), the sums do run along it.
func (a *analysis) sharedRow() (axis int, ok bool) {
	if len(a.stages) > 0 {
		return 0, false
	}
	for _, i := range a.axesOf(plan.StoreAxis) {
		if along, _, known := a.reducesAlong(i); known && len(along) == 0 && a.size(i) > 1 {
			return i, true
		}
	}
	return 0, false
}

// chosenWeights finds the weights of a kernel, or the record of why there are
// none.
func (a *analysis) chosenWeights() ([]*operand, Record) {
	weights := a.weights()
	if len(weights) > 0 {
		return weights, Record{}
	}
	if len(a.operands) == 0 {
		return nil, Record{Reason: "no-sum", Detail: "no ADD reduce reads a buffer"}
	}
	o := slices.MaxFunc(a.operands, func(x, y *operand) int { return cmp.Compare(x.total, y.total) })
	r := Record{Reason: "small-operand", Axis: o.name(), Value: o.total, Detail: fmt.Sprintf("%s, want %s", size(o.total), size(largeBytes))}
	switch {
	case o.total < largeBytes:
	case len(o.rows) == 0:
		r.Reason, r.Detail = "one-row", "no output range selects rows of it"
	case len(o.chain) == 0:
		r.Reason, r.Detail = "not-summed", "it does not vary along the sum"
	default:
		r.Reason, r.Detail = "no-partner", "nothing smaller is multiplied with it"
	}
	return nil, r
}

// decidedByWeight is the plan of a kernel that a weight decided, with how it takes it.
func (p *planner) decidedByWeight(w *operand, reason, how string) proposal {
	return proposal{opts: p.opts, why: how, record: Record{Axis: w.name(), Value: w.bytes, Applied: true, Reason: reason, Detail: how}}
}

// matvecLanes runs lanes along k: rows of the weight are contiguous.
func (p *planner) matvecLanes(weights []*operand) string {
	lanes, rows := matvecRegisters*lanesOf(p.desc), int64(1)
	if plain(weights[0]) && p.crowds(weights[0]) {
		lanes, rows = lanesOf(p.desc), p.crowdedRows(weights)
	}
	if n := int64(p.knobs.ThreadsPerRow); n > 0 {
		lanes = n
	}
	how := p.streamSums(weights, true, func(w *operand) (int64, int64) {
		return lanes, max(p.iteration(w)/(lanes*rows), p.lineCopies(w, lanes, rows))
	})
	if n := p.rowCopies(weights); n > 1 {
		how += fmt.Sprintf(", %d rows at once", n)
	}
	p.besideSums(weights)
	p.finish(weights)
	return how
}

// lineCopies is how many registers of several rows make a line of each: an iteration that asks for lines ahead would ask twice
// for each. One Zen 5 core, BF16, 2,048 rows of 8,192, 8 at once: half a line of each 27.6 GB/s, a whole one 31.8. Copies
// have sums of their own, for which half of the registers are.
func (p *planner) lineCopies(w *operand, lanes, rows int64) int64 {
	if rows == 1 || p.desc.PrefetchRows == 0 {
		return 1
	}
	return max(min(lineBytes/(lanes*int64(w.param.DType.Size())), int64(p.desc.VectorRegs)/2/rows), 1)
}

// iteration is the number of weights of one iteration: a block, if index
// expressions cut the innermost range into blocks.
func (a *analysis) iteration(w *operand) int64 {
	n := int64(matvecIteration)
	for _, c := range a.cuts[a.axes[w.chain[len(w.chain)-1]].Range] {
		if c > n && c <= matvecBlock && c%n == 0 {
			n = c
		}
	}
	return n
}

// maxStageCopies bounds the rows of a tile that are summed together.
const maxStageCopies = 2

// Rows that are summed at once where the activations alone nearly fill the L1 cache: each row would push them out. Words: Q6_K,
// K = 8192, 26 GB/s against 19.5. Plain numbers, which nothing has to decode: Zen 4 with AVX2, BF16, us of 2,048 rows, one and 8 at once:
// K = 3072 377 and 395, 4096 585 and 636, 6144 1,588 and 949, 8192 2,960 and 1,410, 11,264 4,090 and 2,070.
const (
	crowdedWords = 4
	crowdedPlain = 8
)

// crowdedRows is how many rows are summed at once, 1 where the L1 cache has room.
func (p *planner) crowdedRows(weights []*operand) int64 {
	switch w := weights[0]; {
	case !p.crowds(w):
		return 1
	case plain(w):
		return max(int64(crowdedPlain/len(p.matricesOf(weights))), 1)
	case p.packed():
		return crowdedWords
	}
	return 1
}

// crowds reports staged activations (with their sums, 5 bytes an element) of
// more than three quarters of the L1 cache.
func (p *planner) crowds(w *operand) bool {
	return p.points(w.chain)*p.points(w.reuse)*5 > int64(p.desc.CacheL1Bytes)*3/4
}

// oneStream reports a matrix that a core follows, row after row: two rows of a rotation at once would be two
// streams, each of which ends where its row does. Zen 4 with AVX2, BF16, 2048 x 2048, us of a query: one after the other 275, both 410.
func (p *planner) oneStream(weights []*operand) bool {
	return p.desc.PrefetchRows == 0 && plain(weights[0]) && !p.crowds(weights[0])
}

// plain reports weights whose elements are numbers of memory.
func plain(w *operand) bool { return w.rank() < packedRank }

// packed reports a plan whose lanes are words of packed bytes.
func (p *planner) packed() bool { return p.has(plan.PACK) }

// dotted reports a plan that sums bytes with dot instructions.
func (p *planner) dotted() bool { return p.has(plan.TC) }

func (p *planner) has(kind plan.OptKind) bool {
	return slices.ContainsFunc(p.opts, func(o plan.Opt) bool { return o.Kind == kind })
}

// packs lets lanes be 32-bit words of a packed weight, where its format has
// integers that a word keeps apart and half the L2 cache holds the activations:
// half the instructions of widening bytes (Q6_K 30 GB/s against 20 on one Zen 5
// core).
func (p *planner) packs(w *operand) bool {
	i := w.chain[len(w.chain)-1]
	if p.knobs.ThreadsPerRow > 0 || !p.packable(w, p.desc.VectorBytes) {
		return false
	}
	p.add(plan.PACK, p.axes[i].Name, 0)
	p.done[i] = true
	return true
}

// packable reports weights of which PACK makes lanes of registers of so many bytes, with room for the activations.
func (p *planner) packable(w *operand, vectorBytes int) bool {
	var staged analyse.RangeSet
	for _, o := range p.operands {
		if o.sum == w.sum && o.rank() < packedRank {
			staged = staged.Union(o.free)
		}
	}
	staged = staged.Meet(setOf(slices.Concat(w.chain, w.rows, w.reuse)))
	return len(w.chain) == 1 && 4*p.points(staged.List()) <= int64(p.desc.CacheL2Bytes)/2 &&
		shape.Packable(p.arena, p.sink, p.axes[w.chain[0]].Name, vectorBytes)
}

// matvecRows runs lanes along rows: they are what lies contiguously.
func (p *planner) matvecRows(weights []*operand) string {
	w := weights[0]
	i := p.innerRow(w)
	lanes := p.lanes(p.size(i), matvecRegisters*lanesOf(p.desc))
	p.split(plan.VECTOR, i, lanes)
	p.split(plan.UPCAST, i, p.copiesOf(i, 2))
	p.done[i] = true
	k := w.chain[len(w.chain)-1]
	copies := int64(1)
	if p.constant(k) {
		copies = powerOfTwoDivisor(p.size(k), 4)
		p.split(plan.UNROLL, k, copies)
	}
	p.leaveSums(weights)
	p.tileAxes(p.rowsOf(weights))
	p.lightReduces()
	p.finish(weights)
	return fmt.Sprintf("lanes %d of rows, %d steps of k unrolled", lanes, copies)
}

// lanesAlongRows reports a weight that is contiguous along rows, not along the
// sum: a transposed matrix.
func (a *analysis) lanesAlongRows(w *operand) bool {
	return !a.innerAxes(w).Has(w.chain[len(w.chain)-1]) && a.innerRow(w) >= 0
}

// innerRow is the row axis along which a weight is contiguous, -1 if none can
// become lanes.
func (a *analysis) innerRow(w *operand) int {
	inner := a.innerAxes(w)
	lanes := func(i int) bool {
		return inner.Has(i) && a.constant(i) && a.laneSafe(i) && a.axes[i].Kind == plan.StoreAxis
	}
	return lists.Last(w.rows, lanes, -1)
}

// rowCopies holds several rows at once, by knob.
func (p *planner) rowCopies(weights []*operand) int64 {
	n := int64(p.knobs.RowsPerThread)
	if n == 0 {
		n = p.crowdedRows(weights)
	}
	if n <= 1 && p.knobs.BlockSize <= 1 {
		return 1
	}
	i := p.lastStore(weights[0].rows)
	if i < 0 {
		return 1
	}
	copies := divisor(p.left(i), max(n, 1))
	p.split(plan.UPCAST, i, copies)
	if b := int64(p.knobs.BlockSize); b > 1 {
		p.split(plan.ROLL, i, divisor(p.left(i), b))
	}
	return copies
}

// stageInvariant computes once per worker what the loop over k needs besides
// the weight, unless that is a mere load. Lanes that are words of packed weights read it as it is.
func (p *planner) stageInvariant(weights ...*operand) {
	i, ok := p.invariantAxis(weights)
	if !ok || p.packed() {
		return
	}
	if stage := (plan.Opt{Kind: plan.STAGE, Axis: p.axes[i].Name}); !slices.Contains(p.opts, stage) {
		p.opts = append(p.opts, stage)
	}
}

// finish adds what every streaming plan has. Matrices whose bytes are summed share the distance at which their lines are
// asked for: two of them come as far in a time as one of twice the length. Gate and up in Q4_K, int8, one Zen 5 core, GB/s at 3, 4, 6 and
// 8 KiB each: 37.1, 39.0, 36.7, 34.7. Loops that make floats of weights read as fast at any of these.
func (p *planner) finish(weights []*operand) {
	p.rollUnits(weights)
	share := 1
	if p.dotted() {
		share = len(p.matricesOf(weights))
	}
	for _, w := range buffersOf(weights) {
		ahead := p.desc.PrefetchBytes
		if p.inRecords(w) || plain(w) {
			ahead = p.desc.PrefetchRows
		}
		if ahead == 0 {
			continue
		}
		p.add(plan.PREFETCH, w.name(), int64(ahead/share))
		if p.desc.PrefetchOnce {
			p.add(plan.ONCE, w.name(), 0)
		}
	}
	p.fma()
}

// fma allows contraction where the hardware has it.
func (p *planner) fma() {
	if p.desc.FMA {
		p.add(plan.FMA, "", 0)
	}
}

// describe lists weights: "W p2 [8192 x 2048] Q6_K 13.8 MB".
func (a *analysis) describe(weights []*operand) string {
	var parts []string
	for _, w := range a.matricesOf(weights) {
		parts = append(parts, fmt.Sprintf("%s [%d x %d] %s %s", w.name(), a.points(w.rows), a.points(w.chain), w.elem(), size(w.bytes)))
	}
	return "W " + strings.Join(parts, ", ")
}

// partnerBytes is what the sum of a weight reads besides weights.
func (a *analysis) partnerBytes(w *operand) int64 {
	bytes := int64(0)
	for _, o := range a.operands {
		if o.sum == w.sum && o != w && len(o.chain) > 0 && o.bytes < w.bytes {
			bytes += o.bytes
		}
	}
	if bytes == 0 { // computed in a stage
		bytes = 4 * a.points(w.chain)
	}
	return bytes
}

// size prints bytes with three digits.
func size(bytes int64) string {
	switch {
	case bytes >= 1e6:
		return fmt.Sprintf("%.3g MB", float64(bytes)/1e6)
	case bytes >= 1000:
		return fmt.Sprintf("%.3g KB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%d B", bytes)
}
