package ir

import (
	"cmp"
	"slices"
)

// Compare is a total order of nodes by structure: never by address or
// creation. Leaves order readably (constants last, ranges and variables by id
// or name), everything else by hash; equal hashes of different nodes are told
// apart by walking both graphs.
func Compare(x, y *UOp) int {
	if x == y {
		return 0
	}
	if c := compareNode(x, y); c != 0 {
		return c
	}
	if c := cmp.Compare(x.hash, y.hash); c != 0 {
		return c
	}
	return compareGraphs(x, y)
}

// compareNode orders by what stands in the node itself.
func compareNode(x, y *UOp) int {
	if x.Op != y.Op {
		return cmp.Compare(orderRank(x.Op), orderRank(y.Op))
	}
	if c := cmp.Compare(x.DType, y.DType); c != 0 {
		return c
	}
	if c := compareArg(x.Arg, y.Arg); c != 0 {
		return c
	}
	return cmp.Compare(len(x.Src), len(y.Src))
}

// orderRank puts ranges first, then variables, other nodes, and constants.
func orderRank(op Op) int {
	switch op {
	case OpRange:
		return 0
	case OpVar:
		return 1
	case OpConst:
		return int(numOps) + 2
	}
	return int(op) + 2
}

// compareArg orders args of the same op.
func compareArg(x, y Arg) int {
	if x == y {
		return 0
	}
	switch a := x.(type) {
	case IntArg:
		if b, ok := y.(IntArg); ok {
			return cmp.Compare(a, b)
		}
	case FloatArg:
		if b, ok := y.(FloatArg); ok {
			return cmp.Compare(a, b)
		}
	case RangeArg:
		if b, ok := y.(RangeArg); ok {
			return cmp.Compare(a.ID, b.ID)
		}
	case ParamArg:
		if b, ok := y.(ParamArg); ok {
			return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Format, b.Format), cmp.Compare(boolWord(a.Constant), boolWord(b.Constant)))
		}
	case VarArg:
		if b, ok := y.(VarArg); ok && a.Name != b.Name {
			return cmp.Compare(a.Name, b.Name)
		}
	case FieldArg:
		if b, ok := y.(FieldArg); ok {
			return cmp.Or(cmp.Compare(a.Format, b.Format), cmp.Compare(a.Field, b.Field))
		}
	}
	return cmp.Compare(argText(x), argText(y))
}

// compareGraphs walks two graphs in step until they differ. It meets only
// nodes whose hashes collide, so it hardly ever runs.
func compareGraphs(x, y *UOp) int {
	type pair struct{ x, y *UOp }
	seen := make(map[pair]bool)
	stack := []pair{{x, y}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if p.x == p.y || seen[p] {
			continue
		}
		seen[p] = true
		if c := compareNode(p.x, p.y); c != 0 {
			return c
		}
		for i := len(p.x.Src) - 1; i >= 0; i-- {
			stack = append(stack, pair{p.x.Src[i], p.y.Src[i]})
		}
	}
	return 0
}

// SortNodes sorts by Compare.
func SortNodes(nodes []*UOp) { slices.SortFunc(nodes, Compare) }
