package shape

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// stageInvariants stages, once per worker, what loops over reduce axes with a
// STAGE Opt compute without any store range that has several points in a worker: x[k]*g[k]
// of a matrix-vector product with a folded norm.
func stageInvariants(st *State, sink *ir.UOp, plans []Axis) (*ir.UOp, []Axis) {
	h, err := newHoister(st, sink)
	if err != nil {
		return sink, plans // order-ranges reports it
	}
	var over analyse.RangeSet
	for _, p := range plans {
		if p.Stage && p.Axis.Kind == plan.ReduceAxis {
			over.Add(h.free.Index.Of(p.Axis.Range))
		}
	}
	if over.Empty() {
		return sink, plans
	}
	outside := h.copiesOf(plans).Union(gridAxes(st, h.free, sink, plans))
	h.store = h.store.Minus(outside)
	h.wanted = func(free analyse.RangeSet) bool { return free.Meet(h.store).Empty() && !free.Meet(over).Empty() }
	h.inner = func(free analyse.RangeSet) analyse.RangeSet { return free.Minus(outside) }
	return h.run(sink, plans)
}

// copiesOf are the store axes on a GPU whose points are all copies of a thread, such as the tokens of a batch: what differs along them
// no row differs in.
func (h *hoister) copiesOf(plans []Axis) (copies analyse.RangeSet) {
	if h.st.Threads < 2 {
		return copies
	}
	for _, p := range plans {
		n, constant := p.Axis.Size()
		if p.Axis.Kind != plan.StoreAxis || !constant || len(p.Segments) != 1 || p.Segments[0].Role != plan.Unroll || p.Segments[0].Size != n {
			continue
		}
		copies.Add(h.free.Index.Of(p.Axis.Range))
	}
	return copies
}

// stageStoreTiles stages what depends on a store axis with a STAGE Opt and on
// reduce ranges, but on no other store range within a work unit: the decoded
// weights of a tile of rows, used again by every token. Where lanes run along the
// axis, mere loads are staged too: copies of columns that lie side by side. The threads of a block fill one panel over
// all such axes; on a CPU each axis has its own.
func stageStoreTiles(st *State, sink *ir.UOp, plans []Axis) (*ir.UOp, []Axis) {
	staged := lists.Filter(plans, func(p Axis) bool { return p.Stage && p.Axis.Kind == plan.StoreAxis })
	if st.Threads > 1 && len(staged) > 0 {
		return stageStoreTile(st, sink, plans, staged)
	}
	for i := range staged {
		sink, plans = stageStoreTile(st, sink, plans, staged[i:i+1])
	}
	return sink, plans
}

// gridSubAxes are the sub-axes of store axes that number work units: within one
// they are constants.
func (h *hoister) gridSubAxes(plans []Axis) (grid analyse.RangeSet) {
	for _, p := range plans {
		if p.Axis.Kind != plan.StoreAxis || p.Split == nil {
			continue
		}
		for _, d := range p.Split.SubAxes {
			if i, ok := h.free.Index.Get(d.Range); ok && d.Role == plan.Grid {
				grid.Add(i)
			}
		}
	}
	return grid
}

// stageStoreTile stages what depends on some store axes, within a work unit.
func stageStoreTile(st *State, sink *ir.UOp, plans, staged []Axis) (*ir.UOp, []Axis) {
	h, err := newHoister(st, sink)
	if err != nil {
		return sink, plans // order-ranges reports it
	}
	scope, reduces, own := h.gridSubAxes(plans), h.free.OfKind(plan.ReduceAxis), analyse.RangeSet{}
	var tiled analyse.RangeSet
	for _, p := range plans {
		if i, ok := h.free.Index.Get(p.Axis.Range); ok && p.Tile > 0 && st.Desc.Kind != target.GPU {
			tiled.Add(i)
		}
	}
	most := int64(0)
	for _, p := range staged {
		most = max(most, p.StageAmount)
		for _, d := range p.Split.SubAxes {
			i, ok := h.free.Index.Get(d.Range)
			if !ok {
				continue
			}
			own.Add(i)
			switch d.Role {
			case plan.Grid:
			case plan.Lane:
				h.lanes.Add(i)
			default:
				h.serial.Add(i)
			}
		}
	}
	h.wanted = func(free analyse.RangeSet) bool {
		mine := free.Meet(h.store)
		return !mine.Meet(own).Empty() && mine.Minus(own).Minus(scope).Empty() && !free.Meet(reduces).Empty() && free.Meet(tiled).Empty()
	}
	h.inner = func(free analyse.RangeSet) analyse.RangeSet {
		return free.Minus(scope).Minus(h.outerReduces(free.Meet(reduces), most))
	}
	return h.run(sink, plans)
}

// outerReduces are the outer ones of some reduce ranges, such that the others
// have at most so many points (0: any number): a panel is made anew in each
// iteration of their loops.
func (h *hoister) outerReduces(reduces analyse.RangeSet, most int64) analyse.RangeSet {
	outer := analyse.RangeSet{}
	if most == 0 {
		return outer
	}
	points := int64(1)
	list := reduces.List()
	for k := len(list) - 1; k >= 0; k-- {
		n, constant := h.free.Ranges[list[k]].Src[0].Int()
		if !constant || points*max(n, 1) > most {
			for _, i := range list[:k+1] {
				outer.Add(i)
			}
			break
		}
		points *= max(n, 1)
	}
	return outer
}

func (h *hoister) run(sink *ir.UOp, plans []Axis) (*ir.UOp, []Axis) {
	h.dots, h.tiled, h.plans = make(map[*ir.UOp]bool), make(map[*ir.UOp]bool), plans
	for _, p := range plans {
		h.dots[p.Axis.Range], h.tiled[p.Axis.Range] = p.Dot, p.Has(plan.Tiled)
	}
	for _, store := range sink.Src {
		h.visit(store, false)
	}
	if len(h.replace) == 0 {
		return sink, plans
	}
	if h.st.Threads > 1 {
		h.readEachOther()
	}
	return h.st.Arena.Substitute(sink, h.replace), append(plans, h.fresh...)
}

// readEachOther lets the value of a stage read what lies in another one: the sum
// of a group of activations, the activations.
func (h *hoister) readEachOther() {
	a := h.st.Arena
	nested := make(map[*ir.UOp]*ir.UOp)
	for _, u := range h.staged {
		read := h.replace[u]
		others := make(map[*ir.UOp]*ir.UOp)
		inside := make(map[*ir.UOp]bool)
		for _, x := range ir.Toposort(u) {
			inside[x] = x != u
			if h.replace[x] != nil && x != u {
				others[x] = h.replace[x]
			}
		}
		for _, v := range h.staged {
			if v != u {
				h.sameElsewhere(u, v, inside, others)
			}
		}
		if len(others) == 0 {
			continue
		}
		stage := read.Src[0]
		src := append([]*ir.UOp{a.Substitute(a.Substitute(u, others), h.renamed[u])}, stage.Src[1:]...)
		nested[u] = a.Load(a.Make(ir.OpStage, stage.DType, ir.StageArg{}, src...), read.Src[1:]...)
	}
	for u, read := range nested {
		h.replace[u] = read
	}
}

// sameElsewhere finds in u the staged value v over another range: the same
// activations in a sum that has a range of its own.
func (h *hoister) sameElsewhere(u, v *ir.UOp, inside map[*ir.UOp]bool, others map[*ir.UOp]*ir.UOp) {
	for _, x := range ir.Toposort(u) {
		if x.Op != ir.OpReduce || x.Arg.(ir.ReduceArg).Op == ir.OpInvalid {
			continue
		}
		h.renameInto(u, v, x.ReduceRange(), inside, others)
	}
}

func (h *hoister) renameInto(u, v, to *ir.UOp, inside map[*ir.UOp]bool, others map[*ir.UOp]*ir.UOp) {
	a := h.st.Arena
	for _, from := range h.free.Ranges {
		if h.renamed[v][from] == nil || from == to || from.Src[0] != to.Src[0] || h.renamed[u][from] != nil {
			continue
		}
		rename := map[*ir.UOp]*ir.UOp{from: to}
		if same := a.Substitute(v, rename); inside[same] {
			others[same] = a.Substitute(h.replace[v], rename)
		}
	}
}

// visit finds the largest wanted expressions inside reduces that depend on a
// store range.
func (h *hoister) visit(u *ir.UOp, inside bool) {
	if h.seen[u] {
		return
	}
	free := h.free.Of(u)
	wanted := inside && h.wanted(free) && storable(u)
	var narrow *ir.UOp
	if wanted {
		narrow = h.dotByte(u)
	}
	if narrow != nil && narrow != u.Src[0] {
		h.stageByte(u, narrow)
		h.seen[u] = true
		return
	}
	if wanted && narrow == nil {
		if !h.cheap(u) && (works(u) || !free.Meet(h.lanes).Empty()) && !h.stageSum(u) && !h.stageFactor(u) {
			h.stage(u)
		}
		h.seen[u] = true
		return
	}
	if inside {
		h.seen[u] = true
	}
	if u.Op == ir.OpReduce && !free.Meet(h.store).Empty() {
		inside = true
	}
	for _, s := range u.Src {
		if s.Op != ir.OpRange {
			h.visit(s, inside)
		}
	}
}

// stage replaces u by a read of a STAGE over copies of its inner ranges.
func (h *hoister) stage(u *ir.UOp) {
	if h.turns(u) {
		h.stagePanel(u)
		return
	}
	a := h.st.Arena
	free := h.inner(h.free.Of(u))
	inner := append(free.Minus(h.lanes).List(), free.Meet(h.lanes).List()...)
	bytes, points := int64(max(u.DType.Size(), 1)), int64(1)
	rename := make(map[*ir.UOp]*ir.UOp)
	var ranges, index []*ir.UOp
	for _, i := range inner {
		r := h.free.Ranges[i]
		n, constant := r.Src[0].Int()
		if !constant {
			return
		}
		bytes, points = bytes*max(n, 1), points*max(n, 1)
		rename[r] = h.st.newRange(r.Src[0])
		ranges, index = append(ranges, rename[r]), append(index, r)
	}
	if bytes > stageLimit(h.st) || len(ranges) == 0 {
		return
	}
	cuts := plan.Boundaries(a, u)
	threads := h.st.Threads / h.threadsInside(u)
	for k, z := range slices.Backward(ranges) {
		p := h.stagePlan(z, nil)
		if k == len(ranges)-1 && !h.serial.Has(inner[k]) {
			lanes := h.st.Desc.VectorBytes / u.DType.Size()
			if h.holdsDot(u) || threads > 1 && points <= threads && holdsSum(u) {
				lanes = 1 // the bytes that a dot sums are its lanes; a thread of its own makes each sum
			}
			p.Segments = stageSegments(z, cuts[index[k]], lanes)
		}
		if threads > 1 {
			p.Segments, threads = shareSegments(h.st, z, p.Segments, threads)
		}
		h.fresh = append(h.fresh, p)
	}
	src := append([]*ir.UOp{a.Substitute(u, rename)}, ranges...)
	h.renamed[u] = rename
	h.staged = append(h.staged, u)
	h.replace[u] = a.Load(a.Make(ir.OpStage, u.DType, ir.StageArg{}, src...), index...)
}

// threadsInside is how many threads share the sums of one element of a stage. Those of
// other stages, and those that are the same for all elements, are made elsewhere.
func (h *hoister) threadsInside(u *ir.UOp) int64 {
	most := int64(1)
	for _, x := range analyse.OutsideStages(u) {
		if x.Op != ir.OpReduce || x.Arg.(ir.ReduceArg).Op == ir.OpInvalid || h.free.Of(x).Empty() {
			continue
		}
		if p := h.planOf(x.ReduceRange()); p != nil {
			most = max(most, p.Threads())
		}
	}
	return most
}

// holdsDot reports an expression with a sum that is a dot.
func (h *hoister) holdsDot(u *ir.UOp) bool {
	return analyse.Any(u, func(x *ir.UOp) bool { return x.Op == ir.OpReduce && h.dots[x.ReduceRange()] })
}

// holdsSum reports an expression with a reduce.
func holdsSum(u *ir.UOp) bool {
	return analyse.Any(u, func(x *ir.UOp) bool { return x.Op == ir.OpReduce })
}

// stageLimit is the most bytes that a hoisted stage may take.
func stageLimit(st *State) int64 {
	if st.Desc.Kind == target.GPU {
		return int64(st.Desc.SharedBytes / 2)
	}
	return int64(st.Desc.CacheL2Bytes / 2)
}

// shareSegments lets threads of a block fill a stage along a range: they take
// neighbouring groups of lanes. It returns how many threads are left for outer
// ranges.
func shareSegments(st *State, z *ir.UOp, segments []plan.Segment, threads int64) ([]plan.Segment, int64) {
	n, _ := z.Src[0].Int()
	var out []plan.Segment
	if len(segments) > 0 && segments[0].Role == plan.Lane {
		out = append(out, segments[0])
		n /= segments[0].Size
	}
	if t := plan.PartsOf(threads, n); t > 1 {
		out = append(out, plan.Segment{Size: t, Role: plan.Local})
		threads /= t
		n = (n + t - 1) / t
	}
	if c := st.loadsAtOnce(n); threads == 1 && c > 1 {
		out = append(out, plan.Segment{Size: c, Role: plan.Unroll})
	}
	return out, threads
}

// stageSegments is how a hoisted stage is filled along its last range: lanes,
// and copies up to the largest sub-axis of its indices (a block of weights).
func stageSegments(z *ir.UOp, cuts []int64, lanes int) []plan.Segment {
	n, _ := z.Src[0].Int()
	v := powerOfTwoIn(n, int64(min(lanes, 16)))
	var segments []plan.Segment
	if v > 1 {
		segments = append(segments, plan.Segment{Size: v, Role: plan.Lane})
	}
	copies := int64(1)
	for _, c := range cuts {
		if c%v == 0 && n%c == 0 && c/v <= 16 {
			copies = c / v
		}
	}
	if len(cuts) == 0 {
		copies = powerOfTwoIn(n/v, 4)
	}
	if copies > 1 {
		segments = append(segments, plan.Segment{Size: copies, Role: plan.Unroll})
	}
	return segments
}
