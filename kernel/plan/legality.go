package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"

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

// Extend adds the Opts that a kernel accepts after those of the plan.
func (p Plan) Extend(sink *ir.UOp, with []Opt, desc *target.Desc) Plan {
	var opts []Opt
	for _, opt := range with {
		if opt.Axis != EveryBuffer {
			opts = append(opts, opt)
			continue
		}
		for _, arg := range paramsOf(sink) {
			opt.Axis = "p" + strconv.Itoa(arg.Slot)
			opts = append(opts, opt)
		}
	}
	return NewReader(sink, desc).extend(p, opts)
}

// extend adds the Opts of a list that the kernel accepts after those before.
func (r *Reader) extend(p Plan, opts []Opt) Plan {
	for _, o := range opts {
		longer := Plan{append(slices.Clone(p.Opts), o)}
		if _, _, err := r.read(longer); err == nil {
			p = longer
		}
	}
	return p
}
