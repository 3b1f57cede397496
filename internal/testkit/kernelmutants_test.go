package testkit_test

import (
	"math"

	"tgc/ir"
	"tgc/packed"
	"tgc/schedule"
)

// kernelMutant is a typical mistake of a rule, as a change of one node of a
// kernel. A test suite that does not notice it is blind.
type kernelMutant struct {
	Name string
	Doc  string
	// at returns the changed node, or nil where the mistake cannot be made.
	at func(a *ir.Arena, u *ir.UOp) *ir.UOp
}

// kernelMutants lists the mistakes.
var kernelMutants = []kernelMutant{
	{"swapped nibble", "x>>(4*d) & 15 takes the other half of the byte", swapNibble},
	{"wrong field element", "a scale of the neighbouring group", wrongFieldElement},
	{"wrong block", "a field of the neighbouring block", wrongBlock},
	{"missing offset", "q + -32 without the -32", missingOffset},
	{"short range", "a reduce that leaves out its last element", shortRange},
	{"f16 accumulator", "terms of a sum rounded to f16", narrowTerms},
	{"maximum for sum", "a reduce with the wrong op", wrongReduceOp},
	{"dropped store", "a result that is not written", droppedStore},
	{"wrong cache row", "a row stored one further than it should", wrongRow},
	{"lane off by one", "the last index of a load is one too large", laneOffByOne},
	{"dropped factor", "x*y without y", droppedFactor},
	{"dropped mask", "WHERE(c, x, -inf) or WHERE(c, x, 0) without the condition", droppedMask},
	{"constant off", "a float constant 0.1% too large", nudgedConstant},
	{"subtracted", "x+y with the wrong sign", flippedSign},
	{"sums not rescaled", "an online softmax whose sums keep the old maximum", notRescaled},
	{"stage read shifted", "an element of a stage beside the right one", shiftedStage},
}

// mutations applies a mutant at every place of a schedule, at most limit
// places a kernel, and calls f with the mutated schedule and a description.
func (m *kernelMutant) mutations(a *ir.Arena, s *schedule.Schedule, limit int, f func(mutated *schedule.Schedule, where string)) (places int) {
	for i, launch := range s.Launches {
		for j, k := range launch.Kernels {
			var sites, changed []*ir.UOp
			for _, u := range ir.Toposort(k.AST) {
				if v := m.at(a, u); v != nil && v != u {
					sites, changed = append(sites, u), append(changed, v)
				}
			}
			for n := range sites {
				if len(sites) > limit && n*limit/len(sites) == (n-1)*limit/len(sites) && n > 0 {
					continue // an even choice of limit sites
				}
				places++
				ast := replaceNodes(a, k.AST, map[*ir.UOp]*ir.UOp{sites[n]: changed[n]})
				f(withKernel(s, i, j, ast), m.Name+" at "+ir.NodeText(sites[n])+" in "+k.Name)
			}
		}
	}
	return places
}

// withKernel is a schedule with another AST for one kernel.
func withKernel(s *schedule.Schedule, launch, index int, ast *ir.UOp) *schedule.Schedule {
	out := *s
	out.Launches = append([]schedule.Launch(nil), s.Launches...)
	kernels := append([]*schedule.Kernel(nil), s.Launches[launch].Kernels...)
	k := *kernels[index]
	k.AST = ast
	kernels[index] = &k
	out.Launches[launch] = schedule.Launch{Kernels: kernels}
	return &out
}

// replaceNodes rebuilds a graph with some nodes replaced.
func replaceNodes(a *ir.Arena, root *ir.UOp, with map[*ir.UOp]*ir.UOp) *ir.UOp {
	r := ir.Rebuild{Arena: a, Visit: func(*ir.UOp, []*ir.UOp) *ir.UOp { return nil }, Instead: func(u *ir.UOp) *ir.UOp { return with[u] }}
	return r.Do(root)
}

func swapNibble(a *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpAnd || !u.DType.IsInt() {
		return nil
	}
	shift := u.Src[0]
	if mask, ok := u.Src[1].Int(); !ok || mask != 15 || shift.Op != ir.OpShr {
		return nil
	}
	amount := a.Sub(a.ConstInt(u.DType, 4), shift.Src[1])
	return a.And(a.Binary(ir.OpShr, shift.Src[0], amount), u.Src[1])
}

func wrongFieldElement(a *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpField {
		return nil
	}
	arg := u.Arg.(ir.FieldArg)
	f, _ := packed.Lookup(arg.Format)
	fd, _ := f.Field(arg.Field)
	if fd.Count < 2 {
		return nil
	}
	j := a.Mod(a.Add(u.Src[3], a.Index(1)), a.Index(int64(fd.Count)))
	return a.With(u, []*ir.UOp{u.Src[0], u.Src[1], u.Src[2], j})
}

func wrongBlock(a *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpField {
		return nil
	}
	f, _ := packed.Lookup(u.Arg.(ir.FieldArg).Format)
	extents := u.Src[0].Src
	k, ok := extents[len(extents)-1].Int()
	if blocks := k / int64(f.BlockElems); !ok || blocks < 2 {
		return nil
	} else {
		block := a.Mod(a.Add(u.Src[2], a.Index(1)), a.Index(blocks))
		return a.With(u, []*ir.UOp{u.Src[0], u.Src[1], block, u.Src[3]})
	}
}

func missingOffset(_ *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpAdd || u.DType != ir.F32 {
		return nil
	}
	if c, ok := u.Src[1].Float(); !ok || c != math.Trunc(c) || c >= 0 {
		return nil
	}
	return u.Src[0]
}

func shortRange(a *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpReduce || !u.DType.IsFloat() {
		return nil // a rank or an index may not depend on the last element
	}
	r := u.ReduceRange()
	if n, ok := r.Src[0].Int(); ok && n < 2 {
		return nil
	}
	short := a.Range(1<<20+r.Arg.(ir.RangeArg).ID, a.Add(r.Src[0], a.Index(-1)))
	src := make([]*ir.UOp, len(u.Src))
	for i, s := range u.Src {
		src[i] = replaceNodes(a, s, map[*ir.UOp]*ir.UOp{r: short})
	}
	return a.With(u, src)
}

// isSum reports a plain float sum.
func isSum(u *ir.UOp) bool {
	return u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpAdd && u.DType == ir.F32
}

func narrowTerms(a *ir.Arena, u *ir.UOp) *ir.UOp {
	if !isSum(u) {
		return nil
	}
	return a.With(u, []*ir.UOp{a.Cast(a.Cast(u.Src[0], ir.F16), ir.F32), u.Src[1]})
}

func wrongReduceOp(a *ir.Arena, u *ir.UOp) *ir.UOp {
	switch {
	case isSum(u) && u.Src[0].Op != ir.OpWhere: // WHERE may leave one term
		return a.Reduce(ir.OpMax, u.Src[0], u.Src[1])
	case u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpMax:
		return a.Reduce(ir.OpMin, u.Src[0], u.Src[1])
	}
	return nil
}

// droppedStore writes behind the end of an axis, which writes nothing.
func droppedStore(a *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpStore {
		return nil
	}
	index := append([]*ir.UOp(nil), u.Indices()...)
	index[0] = a.Add(index[0], u.Src[0].Src[0])
	return a.Store(u.Src[0], u.Src[1], index, u.Ranges())
}

func wrongRow(a *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpStore {
		return nil
	}
	index := append([]*ir.UOp(nil), u.Indices()...)
	for i, x := range index {
		for _, n := range ir.Toposort(x) {
			if n.Op == ir.OpLoad {
				index[i] = a.Add(x, a.Index(1))
				return a.Store(u.Src[0], u.Src[1], index, u.Ranges())
			}
		}
	}
	return nil
}

// laneOffByOne reads the neighbour along the last axis that has one.
func laneOffByOne(a *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpLoad || !u.DType.IsFloat() || u.Src[0].Op == ir.OpStage {
		return nil
	}
	src := append([]*ir.UOp(nil), u.Src...)
	for k := len(src) - 1; k >= 1; k-- {
		if n, ok := u.Src[0].Src[k-1].Int(); ok && n > 1 {
			src[k] = a.Binary(ir.OpMin, a.Add(src[k], a.Index(1)), a.Index(n-1))
			return a.With(u, src)
		}
	}
	return nil
}

func droppedFactor(_ *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpMul || u.DType != ir.F32 {
		return nil
	}
	if c, ok := u.Src[1].Float(); ok && c == 1 {
		return nil
	}
	return u.Src[0]
}

func droppedMask(_ *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpWhere || !u.DType.IsFloat() {
		return nil
	}
	if c, ok := u.Src[2].Float(); !ok || !math.IsInf(c, -1) && c != 0 {
		return nil
	}
	return u.Src[1]
}

// nudgedConstant leaves out constants too small to matter (an epsilon) and the
// identities of maxima.
func nudgedConstant(a *ir.Arena, u *ir.UOp) *ir.UOp {
	c, ok := u.Float()
	if !ok || u.DType != ir.F32 || math.Abs(c) < 1e-3 || math.Abs(c) > 1e30 {
		return nil
	}
	return a.Const(u.DType, c*1.001)
}

func flippedSign(a *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpAdd || u.DType != ir.F32 || u.Src[1].Op == ir.OpArg {
		return nil // of a single element, what a lambda adds may be 0
	}
	if c, ok := u.Src[1].Float(); ok && math.Abs(c) < 1e-3 {
		return nil
	}
	return a.Sub(u.Src[0], u.Src[1])
}

// notRescaled drops the factor exp2(old maximum - new one) of the lambda.
func notRescaled(_ *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op == ir.OpMul && u.Src[0].Op == ir.OpArg && u.Src[1].Op == ir.OpExp2 {
		return u.Src[0]
	}
	return nil
}

func shiftedStage(a *ir.Arena, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpLoad || u.Src[0].Op != ir.OpStage {
		return nil
	}
	n, ok := u.Src[0].Src[len(u.Src)-1].Src[0].Int()
	if !ok || n < 2 {
		return nil
	}
	src := append([]*ir.UOp(nil), u.Src...)
	last := len(src) - 1
	src[last] = a.Binary(ir.OpMin, a.Add(src[last], a.Index(1)), a.Index(n-1))
	return a.With(u, src)
}
