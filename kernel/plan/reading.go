package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/target"
)

// Reader reads plans of one kernel over and over, as searches do.
type Reader struct {
	sink *ir.UOp
	desc *target.Desc
	axes []AxisPlan // without Opts

	loaded, stored map[int]bool // slots of buffers
}

// NewReader makes a reader of a kernel's plans.
func NewReader(sink *ir.UOp, desc *target.Desc) *Reader {
	r := &Reader{sink: sink, desc: desc, loaded: make(map[int]bool), stored: make(map[int]bool)}
	for _, u := range ir.Toposort(sink) {
		for i, from := range u.Src {
			if arg, ok := from.Arg.(ir.ParamArg); ok && from.Op == ir.OpParam {
				slots := r.loaded
				if u.Op == ir.OpStore && i == 0 {
					slots = r.stored
				}
				slots[arg.Slot] = true
			}
		}
	}
	for _, axis := range Axes(sink) {
		r.axes = append(r.axes, AxisPlan{Axis: axis, Rest: defaultRole(sink, axis)})
	}
	return r
}

// idle reports an Opt of a buffer that has nothing to do with what the kernel does with it.
func (r *Reader) idle(o BufferOpt) bool {
	if o.Kind == STREAM {
		return !r.stored[o.Slot]
	}
	return !r.loaded[o.Slot]
}

// Global is what Opts say about the whole kernel.
type Global struct {
	FMA     bool
	Groups  bool                // matrix instructions are those of warpgroups
	Buffers map[BufferOpt]int64 // -> amount
	Program program.Options     // of the program that is written
	Swaps   [][2]*ir.UOp
}

// BufferOpt is an Opt of a buffer, which a plan has or has not.
type BufferOpt struct {
	Kind OptKind
	Slot int
}

// Has reports an Opt of a buffer.
func (g *Global) Has(kind OptKind, slot int) bool {
	_, ok := g.Buffers[BufferOpt{kind, slot}]
	return ok
}

// BufferOpts lists the Opts of buffers by kind and slot.
func (g *Global) BufferOpts() []BufferOpt {
	return slices.SortedFunc(maps.Keys(g.Buffers), func(x, y BufferOpt) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Slot, y.Slot))
	})
}

// reading is a plan that is being distributed over the axes of a kernel.
type reading struct {
	sink   *ir.UOp
	desc   *target.Desc
	plans  []AxisPlan
	global Global
	row    *OptInfo // of the Opt being read
}

// defaultRole: store ranges of constant extent that every store has run over
// the grid, all others are loops.
func defaultRole(sink *ir.UOp, axis Axis) Role {
	if _, constant := axis.Size(); !constant || axis.Kind != StoreAxis {
		return Serial
	}
	if !everyStoreHas(sink, axis) {
		return Serial
	}
	return Grid
}

// everyStoreHas reports an axis along which all stores of a kernel run.
func everyStoreHas(sink *ir.UOp, axis Axis) bool {
	return !slices.ContainsFunc(sink.Src, func(store *ir.UOp) bool { return !slices.Contains(store.Ranges(), axis.Range) })
}

// axis finds the plan of an axis by name; nil where there is none.
func (r *reading) axis(name string) *AxisPlan {
	if i := slices.IndexFunc(r.plans, func(p AxisPlan) bool { return p.Axis.Name == name }); i >= 0 {
		return &r.plans[i]
	}
	return nil
}

// split notes the sub-axis of a splitting Opt.
func (r *reading) split(p *AxisPlan, opt Opt) error {
	role := r.row.role
	if r.desc.Kind == target.GPU && r.row.thread != NoRole {
		role = r.row.thread
	}
	if p.Pack {
		return fmt.Errorf("PACK has split %s", opt.Axis)
	}
	if err := p.within(opt, role); err != nil {
		return err
	}
	p.Segments = append(p.Segments, Segment{opt.Amount, role})
	return nil
}

// within checks the number of lanes or copies of one axis.
func (p *AxisPlan) within(opt Opt, role Role) error {
	size, constant := p.Axis.Size()
	n := opt.Amount
	if n == 0 {
		if !constant {
			return fmt.Errorf("%s has no constant extent: an amount is needed", opt.Axis)
		}
		n = size
		for _, seg := range p.Segments {
			n = max(n/max(seg.Size, 1), 1)
		}
	}
	limit := int64(math.MaxInt64)
	switch role {
	case Lane:
		limit = MaxLanes
	case Unroll:
		limit = MaxUnroll
	case Local, Group:
		limit = MaxThreads
	case Warp:
		limit = WarpSize
	}
	for _, seg := range p.Segments {
		if seg.Role == role {
			limit /= max(seg.Size, 1)
		}
	}
	if n > limit {
		return fmt.Errorf("%d elements of %s as %s, at most %d are allowed", n, opt.Axis, role, limit)
	}
	return nil
}

// paramsOf lists a kernel's buffers.
func paramsOf(sink *ir.UOp) (list []ir.ParamArg) {
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpParam {
			list = append(list, u.Arg.(ir.ParamArg))
		}
	}
	return list
}
