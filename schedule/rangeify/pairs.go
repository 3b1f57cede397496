package rangeify

import (
	"math/bits"
	"slices"

	"tgc/ir"
)

// Pairs: what is computed of elements and of their partners along axes of two, step after step, needs
// elements of one tile only, those that differ in these axes alone. No step is then worth a value: the kernel
// that stores the last one stores whole tiles (unroll-pairs), and computes each step once for each element.

// mostPairDigits bounds a tile: what is computed of so many digits needs up to 2^mostPairDigits elements.
const mostPairDigits = 8

// pairDigits are the digits along which what computes one value reads a tensor turned around: by how far
// apart, as a power of two, partners lie in the order of the elements, which a RESHAPE keeps.
type pairDigits struct {
	apart uint64
	bad   bool // it is read otherwise, too
}

// findPairs lists elementwise tensors that are steps within tiles.
func findPairs(shapes *extents, order []*ir.UOp) map[*ir.UOp]bool {
	plain, steps := plainTensors(order), make(map[*ir.UOp]bool)
	of := make(map[*ir.UOp]pairDigits, len(order))
	for _, u := range slices.Backward(order) {
		own := of[u]
		switch {
		case u.Op == ir.OpReshape:
		case u.Op == ir.OpFlip:
			turned, ok := turnedDigits(shapes, u)
			own.apart, own.bad = own.apart|turned, own.bad || !ok
		case !u.Op.IsElementwise():
			own = pairDigits{bad: u.Op != ir.OpContiguous && u.Op != ir.OpCopy && u.Op != ir.OpAssign}
		case !own.bad && own.apart != 0 && plain[u] && bits.OnesCount64(own.apart) <= mostPairDigits:
			steps[u] = true
		case own.apart != 0:
			own = pairDigits{} // a value of its own
		}
		for _, src := range u.Src {
			if isTensor(src) {
				of[src] = pairDigits{apart: of[src].apart | own.apart, bad: of[src].bad || own.bad}
			}
		}
	}
	return steps
}

// turnedDigits are those that a FLIP of axes of two turns around.
func turnedDigits(shapes *extents, u *ir.UOp) (apart uint64, ok bool) {
	shape := shapes.Of(u)
	for _, axis := range u.Arg.(ir.AxesArg).List() {
		n := elements(shape[axis+1:])
		if !shape[axis].IsInt(2) || n <= 0 || n&(n-1) != 0 {
			return 0, false
		}
		apart |= uint64(n)
	}
	return apart, true
}

// plainTensors are those that are computed of stored ones without folds and gathers.
func plainTensors(order []*ir.UOp) map[*ir.UOp]bool {
	plain := make(map[*ir.UOp]bool, len(order))
	for _, u := range order {
		switch {
		case isStorage(u) || u.Op == ir.OpContiguous || u.Op == ir.OpCopy || u.Op == ir.OpIota || u.Op == ir.OpConst || u.Op == ir.OpVar:
			plain[u] = true
		case u.Op.IsElementwise() || u.Op.IsMovement():
			plain[u] = true
			for _, src := range u.Src {
				plain[u] = plain[u] && plain[src]
			}
		}
	}
	return plain
}
