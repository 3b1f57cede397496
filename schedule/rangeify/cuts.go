package rangeify

import (
	"slices"
	"tgc/ir"
	"tgc/schedule/expr"
)

// reader says who reads a tensor: the first consumer met through movement ops,
// whether there is a second one or it reads several positions, and whether some way leads
// through EXPAND.
type reader struct {
	first, as *ir.UOp // and what it reads
	several   bool
	apart     bool
	expanded  bool
	folds     bool // somebody folds it
	padded    bool // some way leads through PAD
	turned    bool // some way makes rows of columns
}

// findCuts lists the pointwise tensors that become values, and says who reads each tensor.
// With lanes, what lies elsewhere than side by side is a value wherever it is read several
// times, or lies so twice over (a gather of columns): whether it is stored is a question of its price.
// What is a step within tiles of pairs is none.
func findCuts(shapes *extents, order []*ir.UOp, lanes bool, pairs map[*ir.UOp]bool) (cut map[*ir.UOp]bool, readers map[*ir.UOp]*reader) {
	readers = make(map[*ir.UOp]*reader, len(order))
	apart := make(map[*ir.UOp]bool) // what others than stages of rows read
	for _, u := range slices.Backward(order) {
		within := u.Op == ir.OpStageRow || (u.Op.IsElementwise() || u.Op.IsMovement()) && !apart[u]
		for k, src := range u.Src {
			if !isTensor(src) {
				continue
			}
			apart[src] = apart[src] || !within
			r := readers[src]
			if r == nil {
				r = &reader{}
				readers[src] = r
			}
			r.add(throughMovement(shapes, u, src, readers[u]), raisesMultiplicity(shapes, u, k))
		}
	}
	trivial := make(map[*ir.UOp]int)
	cut = make(map[*ir.UOp]bool)
	for _, u := range order {
		trivial[u] = trivialOps(u, trivial)
		r := readers[u]
		switch {
		case pairs[u]: // in its reader
		case r != nil && isTurned(shapes, u):
			cut[u] = r.multiplies() || (lanes || namesEach(shapes, u)) && (r.several || r.apart) || lanes && r.turned
		case r != nil && isTransposed(shapes, u):
			worth := r.several && r.folds
			if lanes {
				worth = r.several || r.apart || r.padded || r.gathers()
			}
			cut[u] = worth && !isPacked(u) && !r.multiplies()
		case r != nil && isInterleaved(shapes, u):
			cut[u] = lanes
		case u.Op == ir.OpStageRow:
			cut[u] = apart[u]
		case !apart[u] && u.Op.IsElementwise(): // steps of a row's stages
		case r == nil || trivial[u] >= 0 || takesAll(shapes, u) || isOneHot(u, trivial):
		case u.Op == ir.OpPad || u.Op == ir.OpFlip:
			cut[u] = (r.multiplies() || lanes && r.turned && isStorage(u.Src[0])) && !repeats(shapes, u) // an operand of a tiled product is read as it lies
		case (u.Op.IsElementwise() || u.Op == ir.OpGather) && !isStorage(u):
			cut[u] = r.several || r.expanded || lanes && r.apart || r.padded && takesExpanded(shapes, u, trivial)
		}
	}
	return cut, readers
}

// multiplies reports an operand of a product of matrices.
func (r *reader) multiplies() bool {
	return r.expanded && r.first != nil && r.first.Op == ir.OpMul
}

// gathers reports a tensor of which a buffer names rows or elements.
func (r *reader) gathers() bool { return r.first != nil && r.first.Op == ir.OpGather }

// stores reports a tensor that one assignment reads, and nothing else.
func (r *reader) stores() bool {
	return r != nil && r.first != nil && r.first.Op == ir.OpAssign && !r.several
}

// onlyStored finds the tensors with a buffer of their own that nothing reads but the one
// assignment that stores them: that is their buffer.
func onlyStored(order []*ir.UOp) map[*ir.UOp]bool {
	uses, stored := make(map[*ir.UOp]int), make(map[*ir.UOp]bool)
	for _, u := range order {
		for k, src := range u.Src {
			if uses[src]++; uses[src] == 1 && u.Op == ir.OpAssign && k == 1 {
				stored[src] = src.Op == ir.OpContiguous || src.Op == ir.OpCopy
			} else {
				delete(stored, src)
			}
		}
	}
	return stored
}

// repeats reports a movement of a tensor that holds elements more than once: the
// windows of a convolution, which are not worth a buffer.
func repeats(shapes *extents, u *ir.UOp) bool {
	for u.Op.IsMovement() && !isTurned(shapes, u) { // a ring is cut out of two of itself
		if u.Op == ir.OpExpand {
			return true
		}
		u = u.Src[0]
	}
	return false
}

func (r *reader) add(other reader, expanded bool) {
	if r.first == nil {
		r.first, r.as = other.first, other.as
	} else if r.first != other.first {
		r.several = true
	} else if r.as != other.as {
		r.apart = true
	}
	r.several, r.apart = r.several || other.several, r.apart || other.apart
	r.expanded = r.expanded || other.expanded || expanded
	r.folds = r.folds || other.folds
	r.padded = r.padded || other.padded
	r.turned = r.turned || other.turned
}

// throughMovement is who reads the element of src, which u reads, when u only renames
// positions, else u itself.
func throughMovement(shapes *extents, u, src *ir.UOp, of *reader) reader {
	if u.Op.IsMovement() || u.Op == ir.OpDetach {
		var through reader
		if of != nil {
			through = *of
		}
		through.padded = through.padded || u.Op == ir.OpPad
		through.turned = through.turned || isTransposed(shapes, u)
		return through
	}
	return reader{first: u, as: src, folds: u.Op == ir.OpReduceAxes}
}

// raisesMultiplicity reports that consumer u reads points of source k more
// than once: through a true EXPAND, a GATHER, or a broadcast coordinate.
func raisesMultiplicity(shapes *extents, u *ir.UOp, k int) bool {
	switch u.Op {
	case ir.OpGather:
		return k == 0
	case ir.OpScan:
		return true // every element is in as many sums as stand behind it
	case ir.OpExpand:
		from := shapes.Of(u.Src[0])
		for i, extent := range shapes.Of(u) {
			if extent != from[i] {
				return true
			}
		}
	}
	return false
}

// takesExpanded reports an operation on what is the same for many of its points and is computed:
// rows divided by their sums. Its loops are those of its operands; behind a PAD they are others.
func takesExpanded(shapes *extents, u *ir.UOp, trivial map[*ir.UOp]int) bool {
	return slices.ContainsFunc(u.Src, func(x *ir.UOp) bool {
		expanded := false
		for ; x.Op.IsMovement(); x = x.Src[0] {
			expanded = expanded || x.Op == ir.OpExpand && raisesMultiplicity(shapes, x, 0)
		}
		return expanded && trivial[x] < 0 && !isStorage(x)
	})
}

// isStorage reports a tensor that only widens what a buffer holds, or rounds what is packed: reading it
// again costs a cast, and storing it would unpack weights into memory.
func isStorage(u *ir.UOp) bool {
	switch {
	case u.Op == ir.OpBuffer || u.Op == ir.OpAssign || u.Op == ir.OpDecode || u.Op == ir.OpTable || u.Op == ir.OpAfter:
		return true
	case u.Op.IsMovement() || u.Op == ir.OpDetach:
		return isStorage(u.Src[0])
	case u.Op == ir.OpCast:
		return (u.DType.Size() >= u.Src[0].DType.Size() || isPacked(u.Src[0])) && isStorage(u.Src[0])
	}
	return false
}

// isTurned reports elements that lie elsewhere than side by side: a ring that begins
// anywhere but where it is cut, rows or elements of a buffer that another one names. An
// operand of a tiled product is read as it lies.
func isTurned(shapes *extents, u *ir.UOp) bool {
	switch u.Op {
	case ir.OpShrink:
		x := u.Src[0]
		return x.Op == ir.OpReshape && x.Src[0].Op == ir.OpExpand && elements(shapes.Of(u)) <= elements(shapes.Of(x.Src[0].Src[0]))
	case ir.OpGather:
		return takesAll(shapes, u) && len(shapes.Of(u.Src[0]))-int(u.Arg.(ir.IntArg)) <= 2 && !isPacked(u.Src[0])
	}
	return false
}

// namesEach reports a gather of single elements, not of rows.
func namesEach(shapes *extents, u *ir.UOp) bool {
	return u.Op == ir.OpGather && elements(shapes.Of(u)) == elements(shapes.Of(u.Src[1]))
}

// isTransposed reports rows that were columns.
func isTransposed(shapes *extents, u *ir.UOp) bool {
	if u.Op != ir.OpPermute {
		return false
	}
	order := u.Arg.(ir.AxesArg)
	last := len(order) - 1
	return last > 0 && int(order[last]) != last && !expr.IsUnit(shapes.Of(u)[last])
}

// isInterleaved reports elements that are repeated one by one: neighbours are the same element.
func isInterleaved(shapes *extents, u *ir.UOp) bool {
	if u.Op != ir.OpReshape || u.Src[0].Op != ir.OpExpand {
		return false
	}
	to, from := shapes.Of(u.Src[0]), shapes.Of(u.Src[0].Src[0])
	last := len(to) - 1
	own := shapes.Of(u)
	return last > 0 && expr.IsUnit(from[last]) && !expr.IsUnit(to[last]) && len(own) > 0 && own[len(own)-1] != to[last]
}

// isPacked reports movements of a packed buffer.
func isPacked(u *ir.UOp) bool {
	for u.Op.IsMovement() || u.Op == ir.OpCast || u.Op == ir.OpDetach {
		u = u.Src[0]
	}
	return u.Op == ir.OpDecode
}

// isOneHot reports which positions are those that a buffer holds: a comparison for each
// element of a tensor with an axis more than the buffer.
func isOneHot(u *ir.UOp, trivial map[*ir.UOp]int) bool {
	if u.Op != ir.OpCmpEq {
		return false
	}
	x, y := u.Src[0], u.Src[1]
	return trivial[x] >= 0 && isStorage(y) || trivial[y] >= 0 && isStorage(x)
}

// takesAll reports a gather of storage that takes as much as there is or more, the
// matrices of a mixture for each of many groups of tokens, say: what it takes is
// read where it lies. One that takes less, rows of an embedding, is worth a buffer.
func takesAll(shapes *extents, u *ir.UOp) bool {
	return u.Op == ir.OpGather && isStorage(u.Src[0]) && elements(shapes.Of(u)) >= elements(shapes.Of(u.Src[0]))
}

// elements is the size of a shape; 0 where it is symbolic.
func elements(shape []*ir.UOp) int64 {
	total := int64(1)
	for _, extent := range shape {
		n, _ := extent.Int()
		total = expr.Saturate(total, n)
	}
	return total
}

// isTensor leaves out sources that are extents (Idx scalars of reshape etc.).
func isTensor(u *ir.UOp) bool { return u.Op != ir.OpConst && u.Op != ir.OpVar }

// maxTrivialOps bounds expressions of constants, positions and symbols that
// are always recomputed: masks and index arithmetic.
const maxTrivialOps = 16

// trivialOps counts the operations of an expression whose leaves are CONST, VAR
// and IOTA and that has no expensive operation; -1 for any other.
func trivialOps(u *ir.UOp, memo map[*ir.UOp]int) int {
	count := 0
	switch {
	case u.Op == ir.OpConst || u.Op == ir.OpVar || u.Op == ir.OpIota:
		return 0
	case u.Op.IsMovement():
		return memo[u.Src[0]]
	case !u.Op.IsElementwise() || expr.OperationCost(u.Op) > 1:
		return -1
	}
	for _, src := range u.Src {
		n := memo[src]
		if n < 0 {
			return -1
		}
		count += n
	}
	if count+1 > maxTrivialOps {
		return -1
	}
	return count + 1
}
