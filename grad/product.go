package grad

import (
	"tgc/ir"
	"tgc/tensor"
)

// productBlock is the extent up to which every product of "all but one" is
// taken by itself, with extent^2 multiplications in one kernel. Longer axes are
// cut into blocks of it: 16 multiplications an element and level, and few levels.
const productBlock = 16

// others is, at every element, the product of the other elements along the
// axes. It divides by nothing, so zeros are no special case and it can be
// differentiated again.
func others(x *tensor.Tensor, axes []int) *tensor.Tensor {
	shape := x.Shape()
	order, inverse := axesLast(len(shape), axes)
	moved := x.Permute(order...)
	kept := moved.Shape()[:len(shape)-len(axes)]
	n := x.Graph().Arena().Index(1)
	for _, axis := range axes {
		n = x.Graph().Arena().Mul(n, shape[axis])
	}
	flat := reshaped(moved, append(append([]*ir.UOp(nil), kept...), n))
	return reshaped(othersInRow(flat), moved.Shape()).Permute(inverse...)
}

// axesLast is a permutation that moves axes to the end, and its inverse.
func axesLast(rank int, axes []int) (order, inverse []int) {
	last := make([]bool, rank)
	for _, axis := range axes {
		last[axis] = true
	}
	for _, late := range []bool{false, true} {
		for k := range rank {
			if last[k] == late {
				order = append(order, k)
			}
		}
	}
	inverse = make([]int, rank)
	for k, axis := range order {
		inverse[axis] = k
	}
	return order, inverse
}

// othersInRow is others along the last axis.
func othersInRow(x *tensor.Tensor) *tensor.Tensor {
	n, constant := x.Dim(-1).Int()
	if !constant || n <= productBlock {
		return othersInBlock(x)
	}
	shape := x.Shape()
	rank := len(shape)
	blocks := (n + productBlock - 1) / productBlock
	a := x.Graph().Arena()
	kept := shape[: rank-1 : rank-1]
	block := reshaped(paddedByOnes(x, int(blocks*productBlock-n)), append(kept, a.Index(blocks), a.Index(productBlock)))
	outside := othersInRow(block.Prod(-1)).Unsqueeze(-1)
	all := reshaped(othersInBlock(block).Mul(outside), append(kept, a.Index(blocks*productBlock)))
	return all.SliceInts(-1, 0, int(n))
}

// paddedByOnes makes the last axis longer.
func paddedByOnes(x *tensor.Tensor, more int) *tensor.Tensor {
	if more == 0 {
		return x
	}
	old := x.Extent(-1)
	padded := x.Pad(-1, 0, more)
	position := x.Graph().Iota(ir.I32, padded.Dim(-1))
	inside := position.Lt(x.Graph().Scalar(ir.I32, float64(old)))
	return inside.Where(padded, x.Graph().Scalar(x.DType(), 1))
}

// othersInBlock takes each product by itself: element i is the product over j
// of x[j] where j differs from i, else 1.
func othersInBlock(x *tensor.Tensor) *tensor.Tensor {
	g := x.Graph()
	position := g.Iota(ir.I32, x.Dim(-1))
	same := position.Unsqueeze(-1).Eq(position)
	return same.Where(g.Scalar(x.DType(), 1), x.Unsqueeze(-2)).Prod(-1)
}
