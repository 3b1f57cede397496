package search

import (
	"slices"

	"tgc/kernel/plan"
)

// Moves of several Opts at once: what belongs together is drawn anew, among what the plan says of all else.

// redrawn is a plan in which the Opts of something that belongs together are drawn by chance again: those of an axis, of
// a sum, of an array and what fills it, of all points or of what is of no axis. Threads of a block may then be others.
func (d *drafts) redrawn(p plan.Plan) plan.Plan {
	own := d.together()
	t := d.begin()
	t.opts = nil
	for _, o := range p.Opts {
		if i := d.axis(o); i >= 0 && !own[i] || i < 0 && len(own) > 0 {
			t.keep(o, i)
		}
	}
	if now := d.threadsOf(p); now > 1 && t.rng.Float64() < usually {
		t.block = now
	}
	if len(own) == 0 {
		t.kernel()
	}
	t.reduces(func(i int) bool { return own[i] })
	for i, x := range slices.Backward(d.free.Axes) {
		if own[i] && x.Kind == plan.StoreAxis {
			t.store(i)
		}
	}
	for _, stage := range d.stages {
		if own[stage[0]] {
			t.stage(stage)
		}
	}
	return d.reader.Keep(t.opts)
}

// together draws axes that are to be drawn anew; none is what is of no axis.
func (d *drafts) together() map[int]bool {
	own := make(map[int]bool)
	add := func(list []int) {
		for _, i := range list {
			own[i] = true
		}
	}
	points := func() {
		for i, x := range d.free.Axes {
			if x.Kind == plan.StoreAxis {
				own[i] = true
			}
		}
	}
	switch n := d.rng.IntN(8); {
	case n < 3:
		i := d.rng.IntN(len(d.free.Axes))
		own[i] = true
		for j := range d.free.Axes {
			own[j] = own[j] || n > 0 && d.alike(i, j)
		}
	case n == 3 && len(d.sums) > 0:
		add(d.sums[d.rng.IntN(len(d.sums))].List())
	case n == 4 && len(d.stages) > 0:
		add(d.stages[d.rng.IntN(len(d.stages))])
	case n == 5 && len(d.stages) > 0: // an array, and the sums of which it is made
		stage := d.stages[d.rng.IntN(len(d.stages))]
		add(stage)
		for _, sum := range d.sums {
			if slices.ContainsFunc(stage, sum.Has) {
				add(sum.List())
			}
		}
	case n == 6:
		points()
		for _, stage := range d.stages {
			add(stage)
		}
	case n == 7:
		return own
	default:
		points()
	}
	// arrays are drawn as a whole
	for _, stage := range d.stages {
		if slices.ContainsFunc(stage, func(i int) bool { return own[i] }) {
			add(stage)
		}
	}
	return own
}

// axis is the number of the one that an Opt is of; -1: none.
func (d *drafts) axis(o plan.Opt) int {
	return slices.IndexFunc(d.free.Axes, func(x plan.Axis) bool { return x.Name == o.Axis })
}

// threadsOf is the largest number of threads that points and a sum of a plan share.
func (d *drafts) threadsOf(p plan.Plan) int64 {
	t := d.begin()
	for _, o := range p.Opts {
		if i := d.axis(o); i >= 0 {
			t.keep(o, i)
		}
	}
	most := t.points()
	for _, sum := range d.sums {
		most = max(most, product(sum, t.threads))
	}
	return most
}

// keep has an Opt that a plan had before.
func (t *draft) keep(o plan.Opt, i int) {
	t.opts = append(t.opts, o)
	if i < 0 || o.Amount < 1 {
		return
	}
	switch o.Kind {
	case plan.TC, plan.VECTOR:
		t.lanes[i] *= o.Amount
	case plan.WARP:
		t.warps[i] *= o.Amount
		t.threads[i] *= o.Amount
	case plan.GROUP, plan.LOCAL:
		t.threads[i] *= o.Amount
	case plan.UNROLL, plan.UPCAST:
	default:
		return
	}
	t.left[i] = (t.left[i] + o.Amount - 1) / o.Amount
}
