package plan

import (
	"fmt"
	"slices"

	"tgc/ir"
)

// AxisKind tells where a range of a kernel stands.
type AxisKind uint8

// The kinds of axis.
const (
	StoreAxis AxisKind = iota
	ReduceAxis
	StageAxis
)

var axisKinds = [...]string{"store", "reduce", "stage"}

func (k AxisKind) String() string { return axisKinds[k] }

// ParseAxisKind is the inverse of String.
func ParseAxisKind(name string) (AxisKind, bool) {
	i := slices.Index(axisKinds[:], name)
	return AxisKind(max(i, 0)), i >= 0
}

// Axis is a range of a kernel under a stable name: s0, s1, .. for the ranges of
// the stores in loop order, r0, r1, .. for reduces and z0, z1, .. for stages in
// the order in which a walk from the stores meets them, outer before inner. So
// the names depend on structure only.
type Axis struct {
	Name  string
	Kind  AxisKind
	Range *ir.UOp
}

// Size is the extent where it is a constant.
func (x Axis) Size() (n int64, ok bool) { return x.Range.Src[0].Int() }

// Axes lists the axes of a kernel: stores, reduces, stages.
func Axes(sink *ir.UOp) []Axis {
	var lists [3][]*ir.UOp
	seen := make(map[*ir.UOp]bool)
	add := func(kind AxisKind, r *ir.UOp) {
		if r.Op == ir.OpRange && !seen[r] {
			seen[r] = true
			lists[kind] = append(lists[kind], r)
		}
	}
	for _, store := range sink.Src {
		for _, r := range store.Ranges() {
			add(StoreAxis, r)
		}
	}
	for _, u := range Preorder(sink) {
		switch u.Op {
		case ir.OpReduce:
			add(ReduceAxis, u.ReduceRange())
		case ir.OpStage:
			for _, z := range u.Src[1:] {
				add(StageAxis, z)
			}
		}
	}
	var axes []Axis
	for kind, prefix := range []string{"s", "r", "z"} {
		for i, r := range lists[kind] {
			axes = append(axes, Axis{Name: fmt.Sprintf("%s%d", prefix, i), Kind: AxisKind(kind), Range: r})
		}
	}
	return axes
}

// Preorder lists the nodes under root, each before its sources (a reversed
// post-order, so of two nested reduces the outer one comes first).
func Preorder(root *ir.UOp) []*ir.UOp {
	var seen ir.Visited
	var out []*ir.UOp
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if !seen.Add(u) {
			return
		}
		for _, s := range slices.Backward(u.Src) { // so that the left one comes first in the end
			visit(s)
		}
		out = append(out, u)
	}
	visit(root)
	slices.Reverse(out)
	return out
}
