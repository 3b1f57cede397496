package shape

import (
	"slices"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// hoister moves expressions inside reduces into STAGEs: the STAGE Opt.
type hoister struct {
	st     *State
	free   *plan.Free
	store  analyse.RangeSet // ranges of stores
	wanted func(free analyse.RangeSet) bool
	inner  func(free analyse.RangeSet) analyse.RangeSet // which free ranges index the stage
	serial analyse.RangeSet                             // ranges whose copy in the stage is a loop
	lanes  analyse.RangeSet                             // of stores: innermost in the stage, so that lanes lie side by side
	dots   map[*ir.UOp]bool                             // ranges whose sums are dots
	tiled  map[*ir.UOp]bool                             // of those, the ones of tile instructions
	plans  []Axis

	replace map[*ir.UOp]*ir.UOp
	staged  []*ir.UOp                       // the keys of replace in order
	renamed map[*ir.UOp]map[*ir.UOp]*ir.UOp // ranges of a staged value -> those of its stage
	seen    map[*ir.UOp]bool
	fresh   []Axis
}

func newHoister(st *State, sink *ir.UOp) (*hoister, error) {
	free, err := plan.NewFree(sink)
	if err != nil {
		return nil, err
	}
	return &hoister{st: st, free: free, store: free.OfKind(plan.StoreAxis), replace: make(map[*ir.UOp]*ir.UOp),
		renamed: make(map[*ir.UOp]map[*ir.UOp]*ir.UOp), seen: make(map[*ir.UOp]bool)}, nil
}

// cheap reports little arithmetic on elements of stages: a scale times a constant.
func (h *hoister) cheap(u *ir.UOp) bool {
	if h.st.Threads < 2 {
		return false
	}
	operations, loads := 0, 0
	for _, x := range analyse.OutsideStages(u) {
		switch {
		case x.Op == ir.OpReduce || x.Op == ir.OpField || x.Op == ir.OpLoad && x.Src[0].Op != ir.OpStage:
			return false
		case x.Op == ir.OpLoad:
			loads++
		case x.DType != ir.Idx && x.Op.IsElementwise():
			operations++
		}
	}
	return loads > 0 && operations <= cheapOperations
}

func storable(u *ir.UOp) bool {
	if u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpInvalid {
		return false
	}
	return u.DType.IsFloat() || u.DType.IsInt()
}

// works reports an expression that computes something worth storing: more than
// loads (of stages, too), conversions and index arithmetic. What is computed from
// indices alone, such as the bit of each lane, is a constant where lanes are.
func works(u *ir.UOp) bool {
	moves := func(x *ir.UOp) bool { return x.DType == ir.Idx || x.DType == ir.Bool || x.Op == ir.OpStage }
	reads := func(x *ir.UOp) bool { return x.Op == ir.OpLoad || x.Op == ir.OpField || x.Op == ir.OpReduce }
	return !moves(u) && analyse.Any(u, reads) && slices.ContainsFunc(ir.ToposortWithin(moves, u), func(x *ir.UOp) bool {
		return x.Op == ir.OpReduce || x.Op == ir.OpField || x.Op.IsElementwise() && x.Op != ir.OpCast && x.Op != ir.OpBitcast && x.Op != ir.OpWhere
	})
}

// cheapOperations is how much arithmetic on what lies in stages is not worth a
// stage of its own, which costs the threads of a block a barrier.
const cheapOperations = 2
