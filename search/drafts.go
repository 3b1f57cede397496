package search

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// drafts draws whole plans by chance: one says something of every axis, as plans do that are good.
// Single moves do not lead there from the empty plan, since most Opts pay only beside others: a
// stage that one thread fills takes longer than what threads save elsewhere. Drafts know the
// kernel's axes and the target's numbers, and no price.
type drafts struct {
	reader *plan.Reader
	desc   *target.Desc
	rng    *rand.Rand
	free   *plan.Free
	sums   []analyse.RangeSet // of each reduce: its axis and those that it depends on
	around []analyse.RangeSet // of each axis of a sum: the sums that it stands in
	stages [][]int            // axes of each, outer before inner
	fields analyse.RangeSet   // axes along which packed weights are read
	slots  []string           // of constant buffers
}

func newDrafts(sink *ir.UOp, desc *target.Desc, seed uint64) (*drafts, error) {
	free, err := plan.NewFree(sink)
	if err != nil {
		return nil, err
	}
	d := &drafts{reader: plan.NewReader(sink, desc), desc: desc, rng: rand.New(rand.NewPCG(seed, 5)), free: free, around: make([]analyse.RangeSet, len(free.Axes))}
	var summed analyse.RangeSet
	for i, x := range free.Axes {
		if x.Kind == plan.ReduceAxis {
			summed.Add(i)
		}
	}
	for _, u := range ir.Toposort(sink) {
		switch arg, param := u.Arg.(ir.ParamArg); {
		case u.Op == ir.OpReduce:
			own := free.Index.Of(u.ReduceRange())
			d.sums = append(d.sums, free.Of(u).With(own))
			d.around[own] = d.around[own].Union(free.Of(u).Meet(summed))
		case u.Op == ir.OpField:
			d.fields = d.fields.Union(free.Of(u))
		case u.Op == ir.OpStage:
			d.stages = append(d.stages, lists.Map(u.Src[1:], free.Index.Of))
		case param && u.Op == ir.OpParam && arg.Constant:
			d.slots = append(d.slots, "p"+strconv.Itoa(arg.Slot))
		}
	}
	return d, nil
}

// draftCode bounds how much code a draft has in any sum, in registers of lanes and copies: what is good
// has little, and larger programs are refused for their size after they were lowered.
const draftCode = 256

// leastDrafts are drawn at least: of a small kernel most say what others have said.
const leastDrafts = 256

// draw makes up to n plans that the kernel accepts, which all say something else.
func (d *drafts) draw(n int) (list []plan.Plan) {
	seen := make(map[string]bool)
	for range max(2*n, leastDrafts) {
		p := d.one()
		c, err := d.reader.Canonical(p)
		if err == nil && c.Copies <= mostCopies && d.code(p) <= draftCode && !seen[c.Text] && len(list) < n {
			seen[c.Text] = true
			list = append(list, p)
		}
	}
	return list
}

// code is the largest amount of code of a sum.
func (d *drafts) code(p plan.Plan) (most int64) {
	for _, sum := range d.sums {
		lanes, copies := int64(1), int64(1)
		for _, o := range p.Opts {
			i := slices.IndexFunc(d.free.Axes, func(x plan.Axis) bool { return x.Name == o.Axis })
			if i < 0 || !sum.Has(i) {
				continue
			}
			switch o.Kind {
			case plan.TC, plan.VECTOR:
				lanes *= max(o.Amount, 1)
			case plan.UNROLL, plan.UPCAST:
				copies *= max(o.Amount, 1)
			}
		}
		if d.desc.Kind != target.GPU {
			lanes = (lanes + wordLanes - 1) / wordLanes
		}
		most = max(most, lanes*copies)
	}
	return most
}

// draft is a plan that is being drawn.
type draft struct {
	*drafts
	sure    float64 // part of its decisions that are the likelier ones
	block   int64   // threads that it should have
	across  bool    // lanes are points, not what packed weights are summed along
	threads []int64 // along each axis
	warps   []int64 // of them those of one warp
	left    []int64 // points of each axis
	lanes   []int64 // of a value, along each axis
	opts    []plan.Opt
}

// begin begins a draft that says nothing yet.
func (d *drafts) begin() *draft {
	n := len(d.free.Axes)
	t := &draft{drafts: d, sure: d.rng.Float64(), threads: slices.Repeat([]int64{1}, n), warps: slices.Repeat([]int64{1}, n), lanes: slices.Repeat([]int64{1}, n), left: make([]int64, n), block: 1}
	if d.desc.Kind == target.GPU {
		t.block = int64(d.desc.WarpSize) << d.rng.IntN(6)
	} else {
		t.across = d.rng.IntN(2) == 0
	}
	for i, x := range d.free.Axes {
		t.left[i], _ = x.Size()
	}
	return t
}

// one draws a plan.
func (d *drafts) one() plan.Plan {
	t := d.begin()
	t.reduces(func(int) bool { return true })
	for i, x := range slices.Backward(d.free.Axes) {
		if x.Kind == plan.StoreAxis {
			t.store(i)
		}
	}
	for _, own := range d.stages {
		t.stage(own)
	}
	t.kernel()
	return d.reader.Keep(t.opts)
}

// chance decides with so much probability; drafts that are sure of what they do decide for what is likelier. Of
// some thirty decisions that must all be good ones, few are otherwise.
func (t *draft) chance(p float64) bool {
	if t.rng.Float64() < t.sure {
		return p >= 0.5
	}
	return t.rng.Float64() < p
}

// take gives n points of an axis to an Opt, and reports whether the kernel accepts that.
func (t *draft) take(kind plan.OptKind, i int, n int64) bool {
	if n < 2 || !kind.On(t.desc) {
		return false
	}
	next := append(slices.Clone(t.opts), plan.Opt{Kind: kind, Axis: t.free.Axes[i].Name, Amount: n})
	if _, err := t.reader.Canonical(plan.Plan{Opts: next}); err != nil {
		return false
	}
	t.opts = next
	t.left[i] = (t.left[i] + n - 1) / n
	switch kind {
	case plan.TC, plan.VECTOR:
		t.lanes[i] *= n
	case plan.WARP:
		t.warps[i] *= n
		t.threads[i] *= n
	case plan.GROUP, plan.LOCAL:
		t.threads[i] *= n
	}
	return true
}

// power draws a power of two that divides n, at most most: the largest with some chance.
func (t *draft) power(n, most int64, largest float64) int64 {
	p := int64(1)
	for n > 0 && n%(2*p) == 0 && 2*p <= most {
		p *= 2
	}
	for p > 1 && !t.chance(largest) {
		p /= 2
	}
	return p
}

// factor draws a divisor of n from 2 to most, or 1.
func (t *draft) factor(n, most int64) int64 {
	var list []int64
	for f := int64(2); f <= min(n, most); f++ {
		if n%f == 0 {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return 1
	}
	return list[t.rng.IntN(len(list))]
}

// product of numbers of axes.
func product(set analyse.RangeSet, of []int64) int64 {
	n := int64(1)
	for _, i := range set.List() {
		n *= of[i]
	}
	return n
}

// room is how many more threads may share an axis, beside those of all axes that it is summed with.
func (t *draft) room(i int, most int64, of []int64) int64 {
	for _, sum := range t.sums {
		if sum.Has(i) {
			most = min(most, max(t.block/product(sum, t.threads), 1))
			if of != nil {
				most = min(most, int64(t.desc.WarpSize)/product(sum, of))
			}
		}
	}
	return max(most, 1)
}

// lanesLeft is how many lanes an axis may have beside those of all axes that it is summed with.
func (t *draft) lanesLeft(i int) int64 {
	most := int64(wordLanes)
	if t.desc.Kind != target.GPU {
		most *= 4 // registers of them
	}
	for _, sum := range t.sums {
		if sum.Has(i) {
			most = min(most, max(most/product(sum, t.lanes), 1))
		}
	}
	return most
}

// nest says whether an axis has sums inside, and whether it stands in one.
func (d *drafts) nest(i int) (inside, outside bool) {
	return slices.ContainsFunc(d.around, func(around analyse.RangeSet) bool { return around.Has(i) }), !d.around[i].Empty()
}

// Chances of a draft.
const (
	usually    = 0.8
	often      = 0.6
	sometimes  = 0.3
	seldom     = 0.1
	smallAxis  = 8  // points that copies may take
	largeGroup = 8  // parts of a block, copies of a loop
	wordLanes  = 16 // of f32 on a thread
)

// reduces draws the Opts of some sums. One that stands where another does, over as many points, often says the same:
// both read what the other reads, as the products of weights and the sums that their offsets are multiplied by.
func (t *draft) reduces(some func(i int) bool) {
	drawn := make([][]plan.Opt, len(t.free.Axes))
	for i, x := range slices.Backward(t.free.Axes) {
		if x.Kind != plan.ReduceAxis || !some(i) {
			continue
		}
		before := len(t.opts)
		if like := t.like(i, drawn); len(like) > 0 && t.chance(usually) {
			for _, o := range like {
				t.take(o.Kind, i, o.Amount)
			}
		} else {
			t.reduce(i)
		}
		drawn[i] = t.opts[before:len(t.opts):len(t.opts)]
	}
}

// like are the Opts of a sum that was drawn and stands in the same sums over as many points; none: there is no such sum. Where lanes
// are points, one that reads a weight has no lanes that another one has.
func (t *draft) like(i int, drawn [][]plan.Opt) []plan.Opt {
	for j := i + 1; j < len(drawn); j++ {
		if len(drawn[j]) > 0 && t.alike(i, j) && (!t.across || t.fields.Has(i) == t.fields.Has(j)) {
			return drawn[j]
		}
	}
	return nil
}

// alike says whether two axes are of sums that stand in the same sums over as many points.
func (d *drafts) alike(i, j int) bool {
	x, y := d.free.Axes[i], d.free.Axes[j]
	n, _ := x.Size()
	m, _ := y.Size()
	return x.Kind == plan.ReduceAxis && y.Kind == plan.ReduceAxis && n == m && d.around[i] == d.around[j]
}

// reduce draws the Opts of a sum: lanes where nothing is inside, then lanes of a warp, then groups
// and copies.
func (t *draft) reduce(i int) {
	inside, outside := t.nest(i)
	if t.packed(i, outside) {
		return
	}
	if !inside {
		if t.chance(usually) && t.left[i]%4 == 0 {
			t.take(plan.TC, i, 4)
		}
		if !t.across || !t.fields.Has(i) {
			t.take(plan.VECTOR, i, t.power(t.left[i], t.lanesLeft(i), often))
		}
	}
	if t.left[i] <= smallAxis && t.chance(often) && inside {
		t.take(plan.UNROLL, i, t.left[i])
	}
	t.take(plan.WARP, i, t.power(t.left[i], t.room(i, int64(t.desc.WarpSize), t.warps), usually))
	if !outside && t.chance(sometimes) {
		t.take(plan.GROUP, i, t.factor(t.left[i], t.room(i, largeGroup, nil)))
	}
	switch {
	case t.left[i] <= smallAxis && t.chance(usually):
		t.take(plan.UNROLL, i, t.left[i])
	case t.chance(sometimes):
		t.take(plan.UNROLL, i, t.factor(t.left[i], largeGroup))
	}
}

// packed draws PACK of an axis, which decides those inside.
func (t *draft) packed(i int, outside bool) bool {
	if outside || t.desc.Kind == target.GPU || !t.fields.Has(i) || !t.chance(seldom) {
		return false
	}
	next := append(slices.Clone(t.opts), plan.Opt{Kind: plan.PACK, Axis: t.free.Axes[i].Name, Amount: int64(t.rng.IntN(3))})
	if _, err := t.reader.Canonical(plan.Plan{Opts: next}); err != nil {
		return false
	}
	t.opts = next
	return true
}

// store draws the Opts of an axis of points: lanes, points of a thread, threads.
func (t *draft) store(i int) {
	inner := i+1 == len(t.free.Axes) || t.free.Axes[i+1].Kind != plan.StoreAxis
	summed := slices.ContainsFunc(t.sums, func(sum analyse.RangeSet) bool { return sum.Has(i) })
	lanes := usually
	if summed && t.desc.Kind == target.GPU {
		lanes = seldom
	} else if summed && !t.across {
		lanes = sometimes
	}
	if inner && t.chance(lanes) {
		t.take(plan.VECTOR, i, t.power(t.left[i], t.lanesLeft(i), often))
	}
	if t.chance(often) {
		t.take(plan.UPCAST, i, min(int64(2+t.rng.IntN(3)), t.left[i]))
	}
	n := min(t.room(i, max(t.block/t.points(), 1), nil), t.left[i])
	if n > 1 && t.chance(sometimes) {
		n = (n + 1) / 2
	}
	t.take(plan.LOCAL, i, n)
}

// points is how many threads axes of points have.
func (t *draft) points() int64 {
	n := int64(1)
	for i, x := range t.free.Axes {
		if x.Kind == plan.StoreAxis {
			n *= t.threads[i]
		}
	}
	return n
}

// stage draws the Opts of the axes of an array: threads that the sums inside leave fill it.
func (t *draft) stage(own []int) {
	for k, i := range slices.Backward(own) {
		if t.threads[i] > 1 {
			continue // of another stage, too
		}
		lanes := often
		if t.across && t.fields.Has(i) {
			lanes = usually
		}
		if k == len(own)-1 && t.chance(lanes) {
			t.take(plan.VECTOR, i, t.power(t.left[i], t.lanesLeft(i), lanes))
		}
		shared := int64(1)
		for _, j := range own {
			shared *= t.threads[j]
		}
		t.take(plan.LOCAL, i, min(t.left[i], t.room(i, max(t.block/shared, 1), nil)))
		if t.left[i] <= smallAxis && t.chance(usually) {
			t.take(plan.UNROLL, i, t.left[i])
		}
	}
}

// kernel draws what is of no axis, and values that are computed in front of a sum.
func (t *draft) kernel() {
	for i, x := range t.free.Axes {
		if _, outside := t.nest(i); x.Kind == plan.ReduceAxis && !outside && t.chance(often) {
			t.opts = append(t.opts, plan.Opt{Kind: plan.STAGE, Axis: x.Name})
		}
	}
	if t.chance(usually) {
		t.opts = append(t.opts, plan.Opt{Kind: plan.FMA})
	}
	for _, slot := range t.slots {
		if t.chance(often) && plan.PRELOAD.On(t.desc) {
			t.opts = append(t.opts, plan.Opt{Kind: plan.PRELOAD, Axis: slot})
		}
		if t.chance(often) && t.desc.Kind != target.GPU {
			t.opts = append(t.opts, plan.Opt{Kind: plan.PREFETCH, Axis: slot, Amount: ahead[t.rng.IntN(len(ahead))]})
		}
	}
}
