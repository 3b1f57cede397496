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

// Legality says whether a kernel accepts a plan on a target; the error names
// the Opt and the reason. Limits that need the sub-axes (lanes of a value, copies)
// are checked when the plan is lowered.
func Legality(sink *ir.UOp, plan Plan, desc *target.Desc) error {
	_, _, err := Read(sink, plan, desc)
	return err
}

// Limits on one axis, so that a plan from a database cannot explode.
const (
	MaxLanes  = 256
	MaxUnroll = 1024

	WarpSize   = 32
	MaxThreads = 1024 // of a block
)

// Global is what Opts say about the whole kernel.
type Global struct {
	FMA     bool
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

// Read distributes the Opts over the axes.
func Read(sink *ir.UOp, plan Plan, desc *target.Desc) ([]AxisPlan, Global, error) {
	return NewReader(sink, desc).read(plan)
}

func (k *Reader) read(plan Plan) ([]AxisPlan, Global, error) {
	r := &reading{sink: k.sink, desc: k.desc, plans: slices.Clone(k.axes),
		global: Global{Buffers: make(map[BufferOpt]int64)}}
	for i, opt := range plan.Opts {
		if err := r.opt(opt); err != nil {
			return nil, r.global, fmt.Errorf("kernel: plan: opt %d %q: %w", i, opt, err)
		}
	}
	for i, opt := range plan.Opts {
		if idle := opt.Kind.Info().idle; idle != nil && idle(r) != "" {
			return nil, r.global, fmt.Errorf("kernel: plan: opt %d %q has no effect: %s", i, opt, idle(r))
		}
	}
	return r.plans, r.global, nil
}

// defaultRole: store ranges of constant extent that every store has run over
// the grid, all others are loops.
func defaultRole(sink *ir.UOp, axis Axis) Role {
	if _, constant := axis.Size(); !constant || axis.Kind != StoreAxis {
		return Serial
	}
	if slices.ContainsFunc(sink.Src, func(store *ir.UOp) bool { return !slices.Contains(store.Ranges(), axis.Range) }) {
		return Serial
	}
	return Grid
}

// axis finds the plan of an axis by name; nil where there is none.
func (r *reading) axis(name string) *AxisPlan {
	if i := slices.IndexFunc(r.plans, func(p AxisPlan) bool { return p.Axis.Name == name }); i >= 0 {
		return &r.plans[i]
	}
	return nil
}

func (r *reading) opt(opt Opt) error {
	info := opt.Kind.Info()
	r.row = info
	if !opt.Kind.On(r.desc) {
		return fmt.Errorf("refused on %s: %s", r.desc.Name, info.Refusal)
	}
	switch info.Axis {
	case axisNone:
		if info.sets != program.NoOption {
			return r.choose(opt)
		}
		return info.read(r, nil, opt)
	case axisBuffer:
		slot, err := r.buffer(opt)
		if err == nil && info.read != nil {
			err = info.read(r, nil, opt)
		}
		r.global.Buffers[BufferOpt{opt.Kind, slot}] = opt.Amount
		return err
	}
	p := r.axis(opt.Axis)
	if p == nil {
		return fmt.Errorf("no axis %q", opt.Axis)
	}
	kind := p.Axis.Kind
	switch {
	case info.Axis == axisStore && kind != StoreAxis:
		return fmt.Errorf("%s is no store axis", opt.Axis)
	case info.Axis == axisElement && kind == ReduceAxis:
		return fmt.Errorf("%s is no axis of a store or stage", opt.Axis)
	case info.Axis == axisReduce && kind != ReduceAxis:
		return fmt.Errorf("%s is no reduce axis", opt.Axis)
	case opt.Amount < 0 || opt.Amount > math.MaxInt32:
		return fmt.Errorf("amount %d, want 0..2^31-1", opt.Amount)
	}
	if info.read != nil {
		return info.read(r, p, opt)
	}
	return r.split(p, opt)
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
