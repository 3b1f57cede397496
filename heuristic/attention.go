package heuristic

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/kernel"
	"tgc/target"
)

// Attention plans of a CPU: lanes along the privatised range (the output's head
// dimension) and along the range of the score's sum, one point of the cache
// after the other. Query heads that share a cache row share its loads.
const (
	attentionLanes     = 64 // f32 lanes of one accumulator
	attentionRegisters = 16 // vector registers of accumulators
	attentionUnits     = 8  // work units that must remain
)

// tryAttention recognises a tuple reduce of which some components have ranges
// of their own.
func tryAttention(a *analysis) ([]kernel.Opt, string, Record) {
	tuple, private := a.privatised()
	if tuple == nil {
		return declined("no-private-range", "no tuple reduce has components over ranges of their own")
	}
	if a.desc.Kind == target.GPU {
		return gpuAttention(a, tuple, private)
	}
	p := a.plan()
	t := a.index[tuple.ReduceRange()]
	p.done[t] = true
	lanes, registers := int64(1), int64(1)
	for k := len(private) - 1; k >= 0; k-- {
		i := private[k]
		p.done[i] = true
		if p.axes[i].Kind != kernel.StoreAxis || !p.constant(i) {
			continue
		}
		if lanes == 1 && p.laneSafe(i) {
			lanes = powerOfTwoDivisor(p.size(i), attentionLanes)
			p.split(kernel.VECTOR, i, lanes)
		}
		if n := p.left(i); n > 1 && registers*n*max(lanes/lanesOf(p.desc), 1) <= attentionRegisters {
			p.split(kernel.UPCAST, i, n)
			registers *= n
		}
		p.roll(i)
	}
	scores := p.scoreSums(tuple)
	for _, i := range scores {
		p.chain([]int{i}, attentionLanes, 4)
	}
	shared := p.shareRows(tuple, registers*max(lanes/lanesOf(p.desc), 1))
	p.lightReduces()
	p.fma()
	how := fmt.Sprintf("lanes %d of %s, %d sums inside the loop over %s, %d queries share a row", lanes, a.axes[private[len(private)-1]].Name, len(scores), a.axes[t].Name, shared)
	why := fmt.Sprintf("tuple reduce of %d components over up to %d points; %s", tuple.Arg.(ir.ReduceArg).N, a.size(t), how)
	return p.opts, why, Record{Axis: a.axes[t].Name, Value: a.size(t), Applied: true, Reason: "private-range", Detail: how}
}

// privatised finds the first tuple reduce with axes that only some components
// have.
func (a *analysis) privatised() (tuple *ir.UOp, private []int) {
	for _, u := range a.order {
		if !isTuple(u) {
			continue
		}
		values := u.ReduceValues()
		own := axisSet(nil)
		for _, v := range values {
			own = own.union(a.free[v])
		}
		own = own.minus(a.free[values[0]]).without(a.index[u.ReduceRange()])
		if !own.empty() {
			return u, own.list()
		}
	}
	return nil, nil
}

// scoreSums are the axes of sums inside a tuple, innermost first, over which
// all reads are contiguous.
func (p *planner) scoreSums(tuple *ir.UOp) []int {
	var out []int
	for _, v := range tuple.ReduceValues() {
		for _, u := range ir.Toposort(v) {
			if !isSum(u) {
				continue
			}
			i := p.index[u.ReduceRange()]
			if !slices.Contains(out, i) && p.constant(i) && p.laneSafe(i) && p.unitStrideIn(u, i) {
				out = append(out, i)
			}
			p.done[i] = true
		}
	}
	return out
}

// unitStrideIn is unitStride of the loads below a node.
func (a *analysis) unitStrideIn(root *ir.UOp, axis int) bool {
	for _, u := range ir.Toposort(root) {
		if u.Op == ir.OpLoad && u.Src[0].Op != ir.OpTable && a.dependsByIndex(u, axis) && a.stride(u, axis) != 1 {
			return false
		}
	}
	return true
}

// shareRows makes copies over a scope axis on which the values of the
// privatised components do not depend: grouped query heads read one row.
func (p *planner) shareRows(tuple *ir.UOp, registers int64) int64 {
	values := tuple.ReduceValues()
	own := axisSet(nil)
	for _, v := range values[1:] {
		own = own.union(p.free[v])
	}
	units := int64(1)
	for _, i := range p.axesOf(kernel.StoreAxis) {
		if p.constant(i) && !p.done[i] {
			units = satMul(units, p.size(i))
		}
	}
	for _, i := range p.axesOf(kernel.StoreAxis) {
		if p.done[i] || own.has(i) || !p.free[values[0]].has(i) || !p.constant(i) {
			continue
		}
		n := powerOfTwoDivisor(p.size(i), max(attentionRegisters/registers, 1))
		if n > 1 && units/n >= attentionUnits {
			p.split(kernel.UPCAST, i, n)
			return n
		}
	}
	return 1
}
