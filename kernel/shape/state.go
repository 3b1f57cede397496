package shape

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/rewrite"
	"tgc/target"
)

// State is a kernel while its plan is carried out: what the shaping steps hand on.
type State struct {
	Arena   *ir.Arena
	Desc    *target.Desc
	Plan    plan.Plan
	Sink    *ir.UOp
	Axes    []Axis      // in the order of plan.Axes, then those that steps add; nil until the plan is read
	Options plan.Global // what the plan says about the whole kernel
	Threads int64       // of a block, for which the plan asks; 1 on a CPU
	Tile    *MatrixTile // of MMA; nil without
	Kernel  *Kernel     // nil until all ranges are in order

	subAxes
	gates  [][]*ir.UOp // by store: conditions under which an element exists
	simp   *rewrite.Simplifier
	bounds *ir.Bounds
}

// Axis is an axis of the kernel and what becomes of it.
type Axis struct {
	plan.AxisPlan
	Fragment bool    // STAGE of a kernel with MMA: fragments are read from shared-memory tiles
	Limit    *ir.UOp // from this element on all are identities; nil: unknown
	Split    *Split  // nil until the axis is split
}

// subAxes notes the ranges that steps make.
type subAxes struct {
	roles  map[*ir.UOp]plan.Role
	order  map[*ir.UOp]orderKey
	dots   map[*ir.UOp]bool // dot instructions sum over them
	rising map[*ir.UOp]bool // a limit grows with them
	next   int              // the id of the next new range
}

// orderKey sorts ranges: by axis, then high sub-axes first.
type orderKey struct{ axis, subAxis int }

// NewState is a kernel and a plan of which nothing has been done.
func NewState(a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc) *State {
	return &State{Arena: a, Desc: desc, Plan: chosen, Sink: sink,
		subAxes: subAxes{roles: make(map[*ir.UOp]plan.Role), order: make(map[*ir.UOp]orderKey), dots: make(map[*ir.UOp]bool), rising: make(map[*ir.UOp]bool)},
		gates:   make([][]*ir.UOp, len(sink.Src)), simp: rewrite.NewSimplifier(a), bounds: ir.NewBounds()}
}

// newAxis is an axis that a step adds: a loop, but for its segments.
func newAxis(name string, kind plan.AxisKind, r *ir.UOp, segments []plan.Segment) Axis {
	return Axis{AxisPlan: plan.AxisPlan{Axis: plan.Axis{Name: name, Kind: kind, Range: r}, Rest: plan.Serial, Segments: segments}}
}

// newRange makes a range.
func (st *State) newRange(extent *ir.UOp) *ir.UOp {
	r := st.Arena.Range(st.next, extent)
	st.next++
	return r
}

// place notes the role of a range and where it stands in the order.
func (st *State) place(r *ir.UOp, role plan.Role, at orderKey) *ir.UOp {
	st.roles[r], st.order[r] = role, at
	return r
}

// ceilDiv is (x + n - 1) / n.
func (st *State) ceilDiv(x *ir.UOp, n int64) *ir.UOp {
	a := st.Arena
	return st.simp.Do(a.Div(a.Add(x, a.Index(n-1)), a.Index(n)))
}

// axesLeft are the axes whose ranges a kernel still has.
func axesLeft(sink *ir.UOp, axes []Axis) []Axis {
	have := lists.Set(analyse.RangesIn(sink))
	return lists.Filter(axes, func(p Axis) bool { return have[p.Axis.Range] })
}

// planError is the error of a plan that a kernel does not accept.
func planError(format string, args ...any) error { return fmt.Errorf("kernel: plan: "+format, args...) }
