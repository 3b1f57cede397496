package shape

import (
	"fmt"
	"slices"
	"sort"

	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/rewrite"
	"tgc/target"
)

// planned is a kernel whose ranges all are digits with a role: what lowering
// reads. The plan's splits are in it as one substitution of every range.
type Kernel struct {
	Arena    *ir.Arena
	Sink     *ir.UOp
	Stores   []Store
	Tile     *MatrixTile   // of MMA; nil without
	Ranges   []*ir.UOp     // every RANGE, outer before inner, high digits before low
	Roles    []plan.Role   // by index into ranges
	Dots     plan.RangeSet // of ranges: sums over them may be dot instructions
	FMA      bool
	Prefetch map[int]int64 // slot -> bytes ahead
	Preload  map[int]bool  // by slot
	Stream   map[int]bool  // by slot
	Desc     *target.Desc
	Simplify *rewrite.Simplifier
	Bounds   *ir.Bounds
	Rising   plan.RangeSet // of ranges: of work units, towards whose end loops are longer
}

// plannedStore is a STORE and the conditions of its padded ranges.
type Store struct {
	Node  *ir.UOp
	Gates []*ir.UOp
}

// digit is a range that stands for part of a split one.
type SubAxis struct {
	Range  *ir.UOp
	Stride int64
	Role   plan.Role
}

// split says what replaces a range.
type Split struct {
	SubAxes []SubAxis // high to low; empty where the extent is 1
	Value   *ir.UOp   // the sum of digits times strides
	Gate    *ir.UOp   // value < extent, nil where every point exists
	Tile    int64     // digits of a smaller stride are a tile of a softmax; 1: none
}

type applier struct {
	arena  *ir.Arena
	desc   *target.Desc
	simp   *rewrite.Simplifier
	bounds *ir.Bounds
	nextID int
	roles  map[*ir.UOp]plan.Role
	order  map[*ir.UOp]orderKey
	dots   map[*ir.UOp]bool // digits that dot instructions sum
	splits map[*ir.UOp]*Split
	gates  [][]*ir.UOp      // by store
	rising map[*ir.UOp]bool // digits with which a limit grows
	// threads is the number of threads of a block that the plan asks for, 1 on
	// a CPU.
	threads int64
}

// orderKey sorts ranges: by axis, then high digits first.
type orderKey struct{ axis, digit int }

// apply checks the plan and turns a kernel into a planned one.
func Apply(a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc) (*Kernel, error) {
	plans, global, err := plan.Read(sink, chosen, desc)
	if err != nil {
		return nil, err
	}
	ap := &applier{arena: a, desc: desc, simp: rewrite.NewSimplifier(a), bounds: ir.NewBounds(),
		roles: make(map[*ir.UOp]plan.Role), dots: make(map[*ir.UOp]bool), order: make(map[*ir.UOp]orderKey), gates: make([][]*ir.UOp, len(sink.Src)), rising: make(map[*ir.UOp]bool)}
	for _, p := range plans {
		ap.nextID = max(ap.nextID, p.Axis.Range.Arg.(ir.RangeArg).ID+1)
	}
	if err := ap.checkTiles(sink, plans); err != nil {
		return nil, err
	}
	ap.threads = plannedThreads(sink, plans)
	sink = ap.inlineStages(sink)
	if hasMatrix(plans) {
		plans = fragmentStages(plans)
		sink = ap.inlineFactors(ap.joinOffsets(sink, plans), plans)
		ap.threads = plannedThreads(sink, plansOf(sink, plans))
	}
	sink = ap.expand(sink, plans)
	sink = ap.regroup(reorderStores(a, sink, global.Swaps), plans, global.FMA)
	sink, plans = ap.shareConstants(sink, plans)
	sink, plans = ap.hoistInvariant(sink, plans)
	if sink, err = ap.rebuildAxes(sink, plans, plan.StoreAxis); err != nil {
		return nil, err
	}
	tile, err := ap.tileOf(plans)
	if err != nil {
		return nil, err
	}
	plans = rebind(sink, plans)
	sink, plans = ap.hoistPanels(sink, plans)
	if err := ap.planPacks(sink, plans); err != nil {
		return nil, err
	}
	plans = ap.limitLoops(sink, plans)
	if sink, err = ap.rebuildAxes(sink, plans, plan.ReduceAxis, plan.StageAxis); err != nil {
		return nil, err
	}
	ap.findPoints(plans, tile)
	sink = ap.flattenChains(ap.floatSums(ap.packSums(sink, plans), tile), tile)
	if sink, err = ap.panels(sink, tile); err != nil {
		return nil, err
	}
	if sink, err = ap.spreadPoints(sink, tile); err != nil {
		return nil, err
	}
	sink = ap.skipLoops(sink)
	p, err := ap.finish(sink, global)
	if err != nil || tile == nil {
		return p, err
	}
	p.Tile = tile
	if !slices.Contains(p.Ranges, tile.Point) {
		p.Ranges, p.Roles = append(p.Ranges, tile.Point), append(p.Roles, plan.Lane)
	}
	return p, nil
}

// plannedThreads is the number of threads a block for which a plan asks: those
// that share points, or those that share a reduce, times those along all that it
// depends on.
func plannedThreads(sink *ir.UOp, plans []plan.AxisPlan) int64 {
	free, err := plan.NewFree(sink)
	if err != nil {
		return 1
	}
	count := func(p plan.AxisPlan) int64 {
		n := int64(1)
		for _, seg := range append(p.Segments[:len(p.Segments):len(p.Segments)], p.Top...) {
			if seg.Role.IsThread() {
				n *= seg.Size
			}
		}
		return n
	}
	at := make(map[int]int64) // threads along axes of stores and reduces
	most, atPoints := int64(1), int64(1)
	for _, p := range plans {
		n := count(p)
		switch p.Axis.Kind {
		case plan.StageAxis:
			most = max(most, n)
			continue
		case plan.StoreAxis:
			atPoints *= n
		}
		at[free.Index(p.Axis.Range)] = n
	}
	most = max(most, atPoints)
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpReduce {
			continue
		}
		n := max(at[free.Index(u.ReduceRange())], 1)
		for _, i := range free.Sets.Of(u).List() {
			n *= max(at[i], 1)
		}
		most = max(most, n)
	}
	return min(most, plan.MaxThreads)
}

// plansOf are the plans of axes that a kernel still has.
func plansOf(sink *ir.UOp, plans []plan.AxisPlan) []plan.AxisPlan {
	have := make(map[*ir.UOp]bool)
	for _, u := range ir.Toposort(sink) {
		have[u] = u.Op == ir.OpRange
	}
	var out []plan.AxisPlan
	for _, p := range plans {
		if have[p.Axis.Range] {
			out = append(out, p)
		}
	}
	return out
}

// planPacks turns PACK Opts into segments.
func (ap *applier) planPacks(sink *ir.UOp, plans []plan.AxisPlan) error {
	for i := range plans {
		p := &plans[i]
		if !p.Pack {
			continue
		}
		segments, ok := packDigits(sink, p.Axis.Range, plan.Boundaries(ap.arena, sink)[p.Axis.Range], int64(ap.desc.VectorBytes/4))
		if !ok {
			return packError(p.Axis.Name)
		}
		p.Segments = segments
	}
	return nil
}

// rebuildAxes splits the axes of some kinds in one substitution.
func (ap *applier) rebuildAxes(sink *ir.UOp, plans []plan.AxisPlan, kinds ...plan.AxisKind) (*ir.UOp, error) {
	cuts := plan.Boundaries(ap.arena, sink)
	ap.splits = make(map[*ir.UOp]*Split)
	for i, p := range plans {
		for _, kind := range kinds {
			if p.Axis.Kind != kind {
				continue
			}
			s, err := ap.splitAxis(i, p, cuts[p.Axis.Range])
			if err != nil {
				return nil, err
			}
			ap.splits[p.Axis.Range] = s
		}
	}
	return ap.simp.Do(ap.rebuild(sink)), nil
}

// splitAxis cuts one axis into digits. Within lanes and copies it also cuts at
// the boundaries of index expressions, so that indices become linear.
func (ap *applier) splitAxis(position int, p plan.AxisPlan, cuts []int64) (*Split, error) {
	a, r := ap.arena, p.Axis.Range
	extent := r.Src[0]
	if p.PadTo > 1 {
		extent = a.Mul(ap.ceilDiv(extent, p.PadTo), a.Index(p.PadTo))
	}
	size, constant := extent.Int()
	at, s := int64(1), &Split{}
	var digits []SubAxis
	add := func(stride, n int64, role plan.Role) {
		digits = append(digits, SubAxis{Range: ap.newRange(a.Index(n)), Stride: stride, Role: role})
	}
	for k, seg := range p.Segments {
		if k == p.Tile {
			s.Tile = at
		}
		n := seg.Size
		if n == 0 {
			if !constant {
				return nil, fmt.Errorf("kernel: plan: %s: %s without an amount needs a constant extent", p.Axis.Name, seg.Role)
			}
			n = max((size+at-1)/at, 1)
		}
		if constant && at*n > size && p.PadTo <= 1 && at*n >= 2*size {
			return nil, fmt.Errorf("kernel: plan: %s: %d points in digits, the extent is %d", p.Axis.Name, at*n, size)
		}
		if n == 1 {
			continue
		}
		lo := at
		if seg.Role == plan.Lane || seg.Role == plan.Unroll {
			for _, c := range plan.ChainWithin(cuts, at, at*n) {
				add(lo, c/lo, seg.Role)
				lo = c
			}
		}
		add(lo, at*n/lo, seg.Role)
		if p.Dot && len(digits) == 1 && at == 1 {
			ap.dots[digits[0].Range] = n == plan.WordElements
		}
		at *= n
	}
	if p.Tile == len(p.Segments) {
		s.Tile = at
	}
	rest := ap.ceilDiv(extent, at)
	for k := len(p.Top) - 1; k >= 0; k-- {
		rest = ap.ceilDiv(rest, p.Top[k].Size)
	}
	if !rest.IsInt(1) || len(digits)+len(p.Top) == 0 || p.Tile == len(p.Segments) && p.Tile > 0 {
		passes := rest
		if p.Limit != nil {
			passes = ap.simp.Do(a.Binary(ir.OpMin, rest, ap.ceilDiv(p.Limit, at)))
		}
		digits = append(digits, SubAxis{Range: ap.newRange(passes), Stride: at, Role: p.Rest})
		if n, ok := rest.Int(); ok && len(p.Top) > 0 {
			at *= max(n, 1)
		}
	}
	for k := len(p.Top) - 1; k >= 0; k-- {
		if p.Top[k].Size == 1 {
			continue
		}
		add(at, p.Top[k].Size, p.Top[k].Role)
		at *= p.Top[k].Size
	}
	s.Value = a.Index(0)
	for i := len(digits) - 1; i >= 0; i-- {
		d := digits[i]
		s.SubAxes = append(s.SubAxes, d)
		s.Value = a.Add(s.Value, a.Mul(d.Range, a.Index(d.Stride)))
		ap.roles[d.Range] = d.Role
		ap.order[d.Range] = orderKey{position, len(digits) - i}
	}
	exact := ap.bounds.Of(r.Src[0]).DivisibleBy(at) && p.PadTo <= 1
	if !exact {
		s.Gate = a.Lt(s.Value, r.Src[0])
		if p.Axis.Kind == plan.StageAxis {
			return nil, fmt.Errorf("kernel: plan: %s: digits of %d points do not divide a stage's extent", p.Axis.Name, at)
		}
		if p.Axis.Kind == plan.StoreAxis && hasLane(digits) {
			return nil, fmt.Errorf("kernel: plan: %s: VECTOR of a store range must divide its extent", p.Axis.Name)
		}
	}
	return s, nil
}

func hasLane(digits []SubAxis) bool {
	for _, d := range digits {
		if d.Role == plan.Lane {
			return true
		}
	}
	return false
}

// ceilDiv is (x + n - 1) / n.
func (ap *applier) ceilDiv(x *ir.UOp, n int64) *ir.UOp {
	a := ap.arena
	return ap.simp.Do(a.Div(a.Add(x, a.Index(n-1)), a.Index(n)))
}

func (ap *applier) newRange(extent *ir.UOp) *ir.UOp {
	r := ap.arena.Range(ap.nextID, extent)
	ap.nextID++
	return r
}

// rebuild substitutes ap.splits in a kernel.
func (ap *applier) rebuild(sink *ir.UOp) *ir.UOp {
	a := ap.arena
	done := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(sink) {
		src := make([]*ir.UOp, len(u.Src))
		for i, s := range u.Src {
			src[i] = done[s]
		}
		switch {
		case u.Op == ir.OpRange && ap.splits[u] != nil:
			done[u] = ap.splits[u].Value
		case u.Op == ir.OpReduce && ap.splits[u.ReduceRange()] != nil:
			done[u] = ap.rebuildReduce(u, src)
		case u.Op == ir.OpStage:
			done[u] = a.Make(u.Op, u.DType, u.Arg, append(src[:1:1], ap.digitRanges(u.Src[1:])...)...)
		case u.Op == ir.OpLoad && u.Src[0].Op == ir.OpStage:
			done[u] = a.Load(src[0], ap.digitIndices(u.Src[0].Src[1:], src[1:])...)
		case u.Op == ir.OpStore:
			n := 2 + int(u.Arg.(ir.IntArg))
			done[u] = a.Make(u.Op, u.DType, u.Arg, append(src[:n:n], ap.digitRanges(u.Src[n:])...)...)
		default:
			done[u] = a.With(u, src)
		}
	}
	for i, store := range sink.Src {
		ap.gates[i] = append(ap.gates[i], ap.gatesOf(store.Ranges())...)
	}
	return done[sink]
}

func (ap *applier) digitRanges(ranges []*ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	for _, r := range ranges {
		s := ap.splits[r]
		if s == nil {
			out = append(out, r)
			continue
		}
		for _, d := range s.SubAxes {
			out = append(out, d.Range)
		}
	}
	return out
}

func (ap *applier) gatesOf(ranges []*ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	for _, r := range ranges {
		if s := ap.splits[r]; s != nil && s.Gate != nil {
			out = append(out, s.Gate)
		}
	}
	return out
}

// digitIndices splits a stage's index per split range: digit i of index x is
// x/stride, modulo the digit's extent except for the highest.
func (ap *applier) digitIndices(ranges, index []*ir.UOp) []*ir.UOp {
	a := ap.arena
	var out []*ir.UOp
	for k, r := range ranges {
		s := ap.splits[r]
		if s == nil {
			out = append(out, index[k])
			continue
		}
		for i, d := range s.SubAxes {
			x := a.Div(index[k], a.Index(d.Stride))
			if i > 0 {
				x = a.Mod(x, d.Range.Src[0])
			}
			out = append(out, x)
		}
	}
	return out
}

// rebuildReduce nests a reduce over the digits of its range, high digit
// outermost. An element of the monoid is a partial result, so a tuple nests
// through its projections.
func (ap *applier) rebuildReduce(u *ir.UOp, src []*ir.UOp) *ir.UOp {
	a := ap.arena
	arg := u.Arg.(ir.ReduceArg)
	s := ap.splits[u.ReduceRange()]
	values := append([]*ir.UOp(nil), src[:arg.N]...)
	tuple := arg.Op == ir.OpInvalid
	if s.Gate != nil {
		for i, v := range values {
			identity := PlainIdentity(a, arg.Op, v.DType)
			if tuple {
				identity = src[arg.N+1+i]
			}
			values[i] = ap.gated(s, v, identity)
		}
	}
	if tuple {
		identity, lambda := src[arg.N+1:2*arg.N+1], src[2*arg.N+1:]
		if c, softmax := a.IsSoftmax(u); softmax && s.Tile > 1 {
			return ap.tiledReduce(c, s, values, identity, lambda)
		}
		return ap.nestTuple(values, s, identity, lambda)
	}
	out := values[0]
	for _, d := range s.nest() {
		out = a.Reduce(arg.Op, out, d.Range)
	}
	return out
}

// nest orders the digits of a reduce, innermost first. Threads come last: each
// first sums up its own points.
func (s *Split) nest() []SubAxis {
	var inner, threads []SubAxis
	for i := len(s.SubAxes) - 1; i >= 0; i-- {
		if d := s.SubAxes[i]; d.Role.IsThread() {
			threads = append(threads, d)
		} else {
			inner = append(inner, d)
		}
	}
	return append(inner, threads...)
}

// plainIdentity is the neutral element of a plain reduce.
func PlainIdentity(a *ir.Arena, op ir.Op, d ir.DType) *ir.UOp {
	switch op {
	case ir.OpMul:
		return a.ConstInt(d, 1)
	case ir.OpMax, ir.OpMin:
		return a.ConstScalar(d, ir.ReduceIdentity(op, d))
	}
	return a.ConstInt(d, 0)
}

// finish collects ranges with their roles and the stores.
func (ap *applier) finish(sink *ir.UOp, global plan.Global) (*Kernel, error) {
	p := &Kernel{Arena: ap.arena, Sink: sink, FMA: global.FMA, Prefetch: global.Prefetch, Preload: global.Preload, Stream: global.Stream, Desc: ap.desc, Simplify: ap.simp, Bounds: ap.bounds}
	for i, store := range sink.Src {
		p.Stores = append(p.Stores, Store{Node: store, Gates: ap.gates[i]})
	}
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpRange {
			p.Ranges = append(p.Ranges, u)
		}
	}
	sort.SliceStable(p.Ranges, func(i, j int) bool {
		x, y := ap.order[p.Ranges[i]], ap.order[p.Ranges[j]]
		if x.axis != y.axis {
			return x.axis < y.axis
		}
		return x.digit < y.digit
	})
	for _, r := range p.Ranges {
		role := ap.roles[r]
		if role == plan.NoRole {
			return nil, fmt.Errorf("kernel: range %d has no axis", r.Arg.(ir.RangeArg).ID)
		}
		if _, constant := r.Src[0].Int(); !constant && role != plan.Serial {
			return nil, fmt.Errorf("kernel: plan: range %d has no constant extent and cannot be %s", r.Arg.(ir.RangeArg).ID, role)
		}
		if ap.dots[r] {
			p.Dots.Add(len(p.Roles))
		}
		if ap.rising[r] && role == plan.Grid {
			p.Rising.Add(len(p.Roles))
		}
		p.Roles = append(p.Roles, role)
	}
	return p, nil
}
