package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tgc/ir"
	"tgc/target"
)

// What the Opts say that do more, or other things, than to split off a sub-axis: the
// read functions of the table's rows.

// readDot reads TC: the lowest elements are lanes of a dot.
func readDot(r *reading, p *AxisPlan, opt Opt) error {
	if opt.Amount != 0 && opt.Amount != WordElements || len(p.Segments) > 0 {
		return fmt.Errorf("want the lowest %d elements of %s", WordElements, opt.Axis)
	}
	opt.Amount = WordElements
	if err := r.split(p, opt); err != nil {
		return err
	}
	p.Dot = true
	return nil
}

// readCluster reads CLUSTER: all of a kernel's sums that blocks share have the same blocks.
func readCluster(r *reading, p *AxisPlan, opt Opt) error {
	if n := opt.Amount; n < 2 || n > r.desc.Clusters() || n&(n-1) != 0 {
		return fmt.Errorf("%d blocks, want a power of two up to %d", n, r.desc.Clusters())
	}
	for i := range r.plans {
		for _, seg := range r.plans[i].Segments {
			if seg.Role == Cluster && (&r.plans[i] == p || seg.Size != opt.Amount) {
				return fmt.Errorf("%d blocks share %s", seg.Size, r.plans[i].Axis.Name)
			}
		}
	}
	return r.split(p, opt)
}

func readMatrix(r *reading, p *AxisPlan, opt Opt) error {
	if r.desc.Kind == target.GPU {
		switch opt.Amount {
		case 0:
			opt.Amount = MatrixPoints
		case WidePoints:
		default:
			return fmt.Errorf("amount %d: a warp sums %d at once, or %d", opt.Amount, MatrixPoints, WidePoints)
		}
		return r.split(p, opt)
	}
	size, constant := p.Axis.Size()
	if opt.Amount == 0 {
		opt.Amount = size
	}
	if !constant || opt.Amount < WordElements || opt.Amount > TilePoints || opt.Amount%WordElements != 0 || size%opt.Amount != 0 || len(p.Segments) > 0 {
		return fmt.Errorf("%d elements of %s, want the lowest, a multiple of %d up to %d that divides them", opt.Amount, opt.Axis, WordElements, TilePoints)
	}
	p.Dot = true
	return r.split(p, opt)
}

func readRoll(r *reading, p *AxisPlan, opt Opt) error {
	if opt.Amount != 0 {
		return r.split(p, opt)
	}
	if p.Pack {
		return fmt.Errorf("PACK has split %s", opt.Axis)
	}
	p.Rest = Serial
	return nil
}

func readGrid(r *reading, p *AxisPlan, opt Opt) error {
	switch _, constant := p.Axis.Size(); {
	case constant:
		return fmt.Errorf("%s has a constant extent: what is left of it is on the grid", opt.Axis)
	case !everyStoreHas(r.sink, p.Axis):
		return fmt.Errorf("not every store has %s", opt.Axis)
	case slices.ContainsFunc(p.Segments, func(s Segment) bool { return s.Role == Grid }):
		return fmt.Errorf("a plan says it once")
	}
	return r.split(p, opt)
}

func readStage(_ *reading, p *AxisPlan, opt Opt) error {
	if p.Axis.Kind == StageAxis {
		return fmt.Errorf("%s is a stage already", opt.Axis)
	}
	p.Stage, p.StageAmount = true, max(p.StageAmount, opt.Amount)
	return nil
}

func readPack(r *reading, p *AxisPlan, opt Opt) error {
	words := int64(r.desc.VectorBytes / WordElements)
	switch n := opt.Amount; {
	case len(p.Segments) > 0:
		return fmt.Errorf("%s is split already", opt.Axis)
	case n == words:
		return fmt.Errorf("has no effect: %d words are what a register holds", words)
	case n > words || n&(n-1) != 0:
		return fmt.Errorf("%d words, want a power of two below %d", n, words)
	}
	p.Pack, p.PackWords = true, opt.Amount
	if p.PackWords == 0 {
		p.PackWords = words
	}
	return nil
}

func readTile(r *reading, p *AxisPlan, opt Opt) error {
	if len(p.Segments) == 0 || p.Tile > 0 {
		return fmt.Errorf("want one, after Opts that split %s", opt.Axis)
	}
	p.Tile, p.Apart = len(p.Segments), opt.Amount == 1
	size, constant := p.Axis.Size()
	tile := int64(1)
	for _, s := range p.Segments {
		tile *= s.Size // 0 is all
	}
	switch {
	case opt.Amount > 1:
		return fmt.Errorf("amount %d, want 1 or none", opt.Amount)
	case p.Apart && r.desc.Kind == target.GPU:
		return errors.New("threads of a GPU run whole tiles")
	case p.Apart && constant && (tile == 0 || size%tile == 0):
		return fmt.Errorf("all elements of %s are in tiles", opt.Axis)
	}
	return nil
}

func readScatter(_ *reading, p *AxisPlan, _ Opt) error {
	p.Scatter = true
	return nil
}

func readSwap(r *reading, p *AxisPlan, opt Opt) error {
	other := r.axis("s" + strconv.FormatInt(opt.Amount, 10))
	if other == nil {
		return fmt.Errorf("no axis s%d", opt.Amount)
	}
	r.global.Swaps = append(r.global.Swaps, [2]*ir.UOp{p.Axis.Range, other.Axis.Range})
	return nil
}

func readFMA(r *reading, _ *AxisPlan, _ Opt) error {
	r.global.FMA = true
	return nil
}

func readGroups(r *reading, _ *AxisPlan, _ Opt) error {
	r.global.Groups = true
	return nil
}

// choose notes an option of the program.
func (r *reading) choose(opt Opt) error {
	option := r.row.sets
	switch n := opt.Amount; {
	case n < int64(option.Least()) || n > int64(option.Most()):
		return fmt.Errorf("amount %d, want %d..%d", n, option.Least(), option.Most())
	case r.row.amounts != nil && !slices.Contains(r.row.amounts(r.desc), int(n)):
		return fmt.Errorf("amount %d, the target has %v", n, r.row.amounts(r.desc))
	case n == int64(option.Usual()):
		return fmt.Errorf("has no effect: it is so without the Opt")
	case r.global.Program[option] != 0:
		return fmt.Errorf("a plan says it once")
	default:
		r.global.Program[option] = int(n)
		return nil
	}
}

// buffer is the slot that an Opt names.
func (r *reading) buffer(opt Opt) (slot int, err error) {
	slot, err = strconv.Atoi(strings.TrimPrefix(opt.Axis, "p"))
	if err != nil || !strings.HasPrefix(opt.Axis, "p") {
		return 0, fmt.Errorf("buffer %q, want p<slot>", opt.Axis)
	}
	if r.param(slot) == nil {
		return 0, fmt.Errorf("no buffer in slot %d", slot)
	}
	return slot, nil
}

// readCache checks the policy of a weight's loads.
func readCache(r *reading, _ *AxisPlan, opt Opt) error {
	slot, _ := r.buffer(opt)
	switch {
	case opt.Amount < 1 || opt.Amount > int64(len(r.row.words)):
		return fmt.Errorf("policy %d, want 1..%d", opt.Amount, len(r.row.words))
	case r.param(slot).Format == "":
		return fmt.Errorf("%s is no packed weight: the kernel before may have written it", opt.Axis)
	}
	return nil
}

func readOnce(r *reading, _ *AxisPlan, opt Opt) error {
	if slot, _ := r.buffer(opt); !r.global.Has(PREFETCH, slot) {
		return fmt.Errorf("no PREFETCH %s comes before", opt.Axis)
	}
	return nil
}

// param is the buffer of a slot; nil: there is none.
func (r *reading) param(slot int) *ir.ParamArg {
	params := paramsOf(r.sink)
	if i := slices.IndexFunc(params, func(p ir.ParamArg) bool { return p.Slot == slot }); i >= 0 {
		return &params[i]
	}
	return nil
}
