package kernel

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
	_, _, err := readPlan(sink, plan, desc)
	return err
}

// Limits on one axis, so that a plan from a database cannot explode.
const (
	maxLanes  = 256
	maxCopies = 1024

	warpSize   = 32
	maxThreads = 1024 // of a block
)

// globalPlan is what Opts say about the whole kernel.
type globalPlan struct {
	fma      bool
	noLocals bool
	prefetch map[int]int64
	preload  map[int]bool
	stream   map[int]bool
	swaps    [][2]*ir.UOp
}

// readPlan distributes the Opts over the axes.
func readPlan(sink *ir.UOp, plan Plan, desc *target.Desc) ([]axisPlan, globalPlan, error) {
	axes := Axes(sink)
	global := globalPlan{prefetch: make(map[int]int64), preload: make(map[int]bool), stream: make(map[int]bool)}
	plans := make([]axisPlan, len(axes))
	byName := make(map[string]*axisPlan, len(axes))
	for i, axis := range axes {
		plans[i] = axisPlan{axis: axis, rest: defaultRole(sink, axis)}
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
func (p *axisPlan) dropLocals() {
	for k := range p.segments {
		if p.segments[k].role == roleLocal {
			p.segments[k].role = roleSerial
		}
	}
}

// defaultRole: store ranges of constant extent that every store has run over
// the grid, all others are loops.
func defaultRole(sink *ir.UOp, axis Axis) role {
	if _, constant := axis.Size(); !constant || axis.Kind != StoreAxis {
		return roleSerial
	}
	for _, store := range sink.Src {
		if !slices.Contains(store.Ranges(), axis.Range) {
			return roleSerial
		}
	}
	return roleGrid
}

func readOpt(sink *ir.UOp, opt Opt, byName map[string]*axisPlan, global *globalPlan, desc *target.Desc) error {
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
		global.fma = global.fma || opt.Kind == FMA
		return nil
	}
	p := byName[opt.Axis]
	if p == nil {
		return fmt.Errorf("no axis %q", opt.Axis)
	}
	if info.Axis == axisStore && p.axis.Kind != StoreAxis {
		return fmt.Errorf("%s is no store axis", opt.Axis)
	}
	if info.Axis == axisPoint && p.axis.Kind == ReduceAxis {
		return fmt.Errorf("%s is no axis of a store or stage", opt.Axis)
	}
	if info.Axis == axisReduce && p.axis.Kind != ReduceAxis {
		return fmt.Errorf("%s is no reduce axis", opt.Axis)
	}
	if opt.Amount < 0 || opt.Amount > math.MaxInt32 {
		return fmt.Errorf("amount %d, want 0..2^31-1", opt.Amount)
	}
	role := info.role
	if desc.Kind == target.GPU && info.thread != roleNone {
		role = info.thread
	}
	return p.read(opt, info, role, byName, global)
}

func (p *axisPlan) read(opt Opt, info *OptInfo, role role, byName map[string]*axisPlan, global *globalPlan) error {
	switch opt.Kind {
	case STAGE:
		if p.axis.Kind == StageAxis {
			return fmt.Errorf("%s is a stage already", opt.Axis)
		}
		p.stage, p.panel = true, max(p.panel, opt.Amount)
		return nil
	case PACK:
		if len(p.segments) > 0 {
			return fmt.Errorf("%s is split already", opt.Axis)
		}
		p.pack = true
		return nil
	case PADTO:
		p.padTo = opt.Amount
		return nil
	case TILE:
		if len(p.segments) == 0 || p.tile > 0 {
			return fmt.Errorf("want one, after Opts that split %s", opt.Axis)
		}
		p.tile = len(p.segments)
		return nil
	case THREAD:
		if p.rest != roleGrid {
			return fmt.Errorf("%s has no constant extent or is not in every store: it cannot be a grid axis", opt.Axis)
		}
		return nil
	case SWAP:
		other := byName["s"+strconv.FormatInt(opt.Amount, 10)]
		if other == nil {
			return fmt.Errorf("no axis s%d", opt.Amount)
		}
		global.swaps = append(global.swaps, [2]*ir.UOp{p.axis.Range, other.axis.Range})
		return nil
	}
	if role == roleNone {
		return nil
	}
	if p.pack {
		return fmt.Errorf("PACK has split %s", opt.Axis)
	}
	if opt.Kind == ROLL && opt.Amount == 0 {
		p.rest = roleSerial
		return nil
	}
	if opt.Kind == TC {
		if opt.Amount != 0 && opt.Amount != wordElements || len(p.segments) > 0 {
			return fmt.Errorf("want the lowest %d points of %s", wordElements, opt.Axis)
		}
		opt.Amount, p.dot = wordElements, true
	}
	if opt.Kind == MMA {
		opt.Amount = matrixPoints
	}
	if err := p.within(opt, role); err != nil {
		return err
	}
	if _, constant := p.axis.Size(); info.top && (role == roleGroup || constant) {
		if !constant {
			return fmt.Errorf("%s has no constant extent", opt.Axis)
		}
		p.top = append(p.top, segment{opt.Amount, role})
		return nil
	}
	p.segments = append(p.segments, segment{opt.Amount, role})
	return nil
}

// within checks the number of lanes or copies of one axis.
func (p *axisPlan) within(opt Opt, role role) error {
	size, constant := p.axis.Size()
	n := opt.Amount
	if n == 0 {
		if !constant {
			return fmt.Errorf("%s has no constant extent: an amount is needed", opt.Axis)
		}
		n = size
		for _, seg := range p.segments {
			n = max(n/max(seg.size, 1), 1)
		}
	}
	limit := int64(math.MaxInt64)
	switch role {
	case roleLane:
		limit = maxLanes
	case roleUnroll:
		limit = maxCopies
	case roleLocal, roleGroup:
		limit = maxThreads
	case roleWarp:
		limit = warpSize
	}
	for _, seg := range p.segments {
		if seg.role == role {
			limit /= max(seg.size, 1)
		}
	}
	if n > limit {
		return fmt.Errorf("%d points of %s as %s, at most %d are allowed", n, opt.Axis, role, limit)
	}
	return nil
}

func readBufferOpt(sink *ir.UOp, opt Opt, global *globalPlan) error {
	slot, err := strconv.Atoi(strings.TrimPrefix(opt.Axis, "p"))
	if err != nil || !strings.HasPrefix(opt.Axis, "p") {
		return fmt.Errorf("buffer %q, want p<slot>", opt.Axis)
	}
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpParam && u.Arg.(ir.ParamArg).Slot == slot {
			switch opt.Kind {
			case PREFETCH:
				global.prefetch[slot] = opt.Amount
			case STREAM:
				global.stream[slot] = true
			default:
				global.preload[slot] = true
			}
			return nil
		}
	}
	return fmt.Errorf("no buffer in slot %d", slot)
}
