package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tgc/ir"
	"tgc/target"
)

// Legality says whether a kernel accepts a plan on a target; the error names
// the Opt and the reason. Limits that need the digits (lanes of a value, copies)
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

// globalPlan is what Opts say about the whole kernel.
type Global struct {
	FMA      bool
	noLocals bool
	Prefetch map[int]int64
	Preload  map[int]bool
	Stream   map[int]bool
	Swaps    [][2]*ir.UOp
}

// readPlan distributes the Opts over the axes.
func Read(sink *ir.UOp, plan Plan, desc *target.Desc) ([]AxisPlan, Global, error) {
	axes := Axes(sink)
	global := Global{Prefetch: make(map[int]int64), Preload: make(map[int]bool), Stream: make(map[int]bool)}
	plans := make([]AxisPlan, len(axes))
	byName := make(map[string]*AxisPlan, len(axes))
	for i, axis := range axes {
		plans[i] = AxisPlan{Axis: axis, Rest: defaultRole(sink, axis)}
		byName[axis.Name] = &plans[i]
	}
	for i, opt := range plan.Opts {
		if err := readOpt(sink, opt, byName, &global, desc); err != nil {
			return nil, global, fmt.Errorf("kernel: plan: opt %d %q: %w", i, opt, err)
		}
	}
	if global.noLocals {
		for i := range plans {
			plans[i].dropLocals()
		}
	}
	return plans, global, nil
}

// dropLocals makes LOCAL digits loops.
func (p *AxisPlan) dropLocals() {
	for k := range p.Segments {
		if p.Segments[k].Role == Local {
			p.Segments[k].Role = Serial
		}
	}
}

// defaultRole: store ranges of constant extent that every store has run over
// the grid, all others are loops.
func defaultRole(sink *ir.UOp, axis Axis) Role {
	if _, constant := axis.Size(); !constant || axis.Kind != StoreAxis {
		return Serial
	}
	for _, store := range sink.Src {
		if !slices.Contains(store.Ranges(), axis.Range) {
			return Serial
		}
	}
	return Grid
}

func readOpt(sink *ir.UOp, opt Opt, byName map[string]*AxisPlan, global *Global, desc *target.Desc) error {
	info := opt.Kind.Info()
	if desc.Kind == target.CPU && !info.CPU || opt.Kind == MMA && !hasMatrices(desc) {
		return fmt.Errorf("refused on %s: %s", desc.Name, info.Refusal)
	}
	if info.Axis == axisBuffer {
		return readBufferOpt(sink, opt, global)
	}
	if opt.Kind == NOLOCALS {
		global.noLocals = true
	}
	if info.Axis == axisNone {
		global.FMA = global.FMA || opt.Kind == FMA
		return nil
	}
	p := byName[opt.Axis]
	if p == nil {
		return fmt.Errorf("no axis %q", opt.Axis)
	}
	if info.Axis == axisStore && p.Axis.Kind != StoreAxis {
		return fmt.Errorf("%s is no store axis", opt.Axis)
	}
	if info.Axis == axisPoint && p.Axis.Kind == ReduceAxis {
		return fmt.Errorf("%s is no axis of a store or stage", opt.Axis)
	}
	if info.Axis == axisReduce && p.Axis.Kind != ReduceAxis {
		return fmt.Errorf("%s is no reduce axis", opt.Axis)
	}
	if opt.Amount < 0 || opt.Amount > math.MaxInt32 {
		return fmt.Errorf("amount %d, want 0..2^31-1", opt.Amount)
	}
	role := info.role
	if desc.Kind == target.GPU && info.thread != NoRole {
		role = info.thread
	}
	return p.read(opt, info, role, byName, global)
}

func (p *AxisPlan) read(opt Opt, info *OptInfo, role Role, byName map[string]*AxisPlan, global *Global) error {
	switch opt.Kind {
	case STAGE:
		if p.Axis.Kind == StageAxis {
			return fmt.Errorf("%s is a stage already", opt.Axis)
		}
		p.Stage, p.StageAmount = true, max(p.StageAmount, opt.Amount)
		return nil
	case PACK:
		if len(p.Segments) > 0 {
			return fmt.Errorf("%s is split already", opt.Axis)
		}
		p.Pack = true
		return nil
	case PADTO:
		p.PadTo = opt.Amount
		return nil
	case TILE:
		if len(p.Segments) == 0 || p.Tile > 0 {
			return fmt.Errorf("want one, after Opts that split %s", opt.Axis)
		}
		p.Tile = len(p.Segments)
		return nil
	case THREAD:
		if p.Rest != Grid {
			return fmt.Errorf("%s has no constant extent or is not in every store: it cannot be a grid axis", opt.Axis)
		}
		return nil
	case SWAP:
		other := byName["s"+strconv.FormatInt(opt.Amount, 10)]
		if other == nil {
			return fmt.Errorf("no axis s%d", opt.Amount)
		}
		global.Swaps = append(global.Swaps, [2]*ir.UOp{p.Axis.Range, other.Axis.Range})
		return nil
	}
	if role == NoRole {
		return nil
	}
	if p.Pack {
		return fmt.Errorf("PACK has split %s", opt.Axis)
	}
	if opt.Kind == ROLL && opt.Amount == 0 {
		p.Rest = Serial
		return nil
	}
	if opt.Kind == TC {
		if opt.Amount != 0 && opt.Amount != WordElements || len(p.Segments) > 0 {
			return fmt.Errorf("want the lowest %d points of %s", WordElements, opt.Axis)
		}
		opt.Amount, p.Dot = WordElements, true
	}
	if opt.Kind == MMA {
		opt.Amount = MatrixPoints
	}
	if err := p.within(opt, role); err != nil {
		return err
	}
	if _, constant := p.Axis.Size(); info.top && (role == Group || constant) {
		if !constant {
			return fmt.Errorf("%s has no constant extent", opt.Axis)
		}
		p.Top = append(p.Top, Segment{opt.Amount, role})
		return nil
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
		return fmt.Errorf("%d points of %s as %s, at most %d are allowed", n, opt.Axis, role, limit)
	}
	return nil
}

func readBufferOpt(sink *ir.UOp, opt Opt, global *Global) error {
	slot, err := strconv.Atoi(strings.TrimPrefix(opt.Axis, "p"))
	if err != nil || !strings.HasPrefix(opt.Axis, "p") {
		return fmt.Errorf("buffer %q, want p<slot>", opt.Axis)
	}
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpParam && u.Arg.(ir.ParamArg).Slot == slot {
			switch opt.Kind {
			case PREFETCH:
				global.Prefetch[slot] = opt.Amount
			case STREAM:
				global.Stream[slot] = true
			default:
				global.Preload[slot] = true
			}
			return nil
		}
	}
	return fmt.Errorf("no buffer in slot %d", slot)
}
