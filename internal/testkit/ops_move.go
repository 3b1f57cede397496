package testkit

import (
	"pgregory.net/rapid"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// moveOps rename positions.
var moveOps = []maker{
	{"reshape", 3, reshapeOp},
	{"permute", 2, permuteOp},
	{"expand", 2, expandOp},
	{"pad", 1, padOp},
	{"shrink", 2, shrinkOp},
	{"flip", 1, flipOp},
	{"cat", 1, catOp},
	{"shift", 1, shiftOp},
	{"interleave", 1, interleaveOp},
	{"read again", 1, readAgainOp},
}

func (b *builder) any(rank int) *tensor.Tensor {
	return b.pick("value", func(t *tensor.Tensor) bool { return t.Rank() >= rank })
}

// reshapeOp regroups the elements; symbolic extents only gain axes of 1.
func reshapeOp(b *builder) *tensor.Tensor {
	x := b.any(0)
	shape, ok := constantShape(x)
	if !ok {
		return x.Unsqueeze(b.intRange("axis", 0, x.Rank()))
	}
	rest := lists.Product(shape)
	var out []int
	for rest > 1 && len(out) < 3 {
		d := rapid.SampledFrom(divisors(rest)).Draw(b.t, "factor")
		out = append(out, d)
		rest /= d
	}
	if rest > 1 || b.chance("trailing 1") {
		out = append(out, rest)
	}
	return x.Reshape(out...)
}

func divisors(n int) []int {
	var list []int
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			list = append(list, d)
		}
	}
	return list
}

func permuteOp(b *builder) *tensor.Tensor {
	x := b.any(2)
	if x == nil {
		return nil
	}
	axes := lists.Upto(x.Rank())
	return x.Permute(rapid.Permutation(axes).Draw(b.t, "axes")...)
}

// expandOp repeats along a new axis or one of extent 1.
func expandOp(b *builder) *tensor.Tensor {
	x := b.any(0)
	if x.Rank() >= 4 {
		return nil
	}
	k := b.intRange("axis", 0, x.Rank())
	x = x.Unsqueeze(k)
	shape := x.Shape()
	shape[k] = b.g.Dims(b.intRange("repeats", 1, 4))[0]
	return x.ExpandDims(shape...)
}

func padOp(b *builder) *tensor.Tensor {
	x, _ := b.solid(1)
	if x == nil {
		return nil
	}
	return x.Pad(b.axis(x), b.intRange("before", 0, 2), b.intRange("after", 0, 2))
}

func shrinkOp(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil {
		return nil
	}
	k := b.axis(x)
	offset := b.intRange("offset", 0, shape[k]-1)
	return x.SliceInts(k, offset, b.intRange("extent", 1, shape[k]-offset))
}

func flipOp(b *builder) *tensor.Tensor {
	x := b.any(1)
	if x == nil {
		return nil
	}
	return x.Flip(b.axis(x))
}

// catOp joins values that differ along one axis at most.
func catOp(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil {
		return nil
	}
	k := b.axis(x)
	y := b.pick("other", func(t *tensor.Tensor) bool {
		other, ok := constantShape(t)
		if !ok || t.DType() != x.DType() || len(other) != len(shape) {
			return false
		}
		for i := range shape {
			if i != k && other[i] != shape[i] {
				return false
			}
		}
		return true
	})
	return x.Cat(k, y)
}

// shiftOp is x minus x moved by one: an index that leaves the range.
func shiftOp(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil || shape[len(shape)-1] < 2 {
		return nil
	}
	moved := x.SliceInts(-1, 0, shape[len(shape)-1]-1).Pad(-1, 1, 0)
	return x.Sub(moved)
}

// interleaveOp treats neighbours as pairs and swaps or multiplies them.
func interleaveOp(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil || shape[len(shape)-1]%2 != 0 {
		return nil
	}
	n := shape[len(shape)-1]
	pairs := append(append([]int{}, shape[:len(shape)-1]...), n/2, 2)
	axis := -1
	if b.chance("halves") {
		pairs[len(pairs)-2], pairs[len(pairs)-1] = 2, n/2
		axis = -2
	}
	y := x.Reshape(pairs...)
	first, second := y.SliceInts(axis, 0, 1), y.SliceInts(axis, 1, 1)
	if b.chance("product") {
		return first.Mul(second).Squeeze(axis)
	}
	return second.Cat(axis, first.Neg()).Reshape(shape...)
}

// readAgainOp reads a stored value, or an input, a second time and computes with
// both readings.
func readAgainOp(b *builder) *tensor.Tensor {
	x := b.float(0)
	if x == nil {
		return nil
	}
	stored := x
	if x.Node().Op != ir.OpBuffer {
		stored = x.Contiguous()
	}
	after := b.any(0)
	again := b.g.Wrap(b.g.Arena().Make(ir.OpAfter, x.DType(), nil, stored.Node(), after.Node()))
	if b.chance("both") {
		return again.Sin().Add(x.Sin())
	}
	return again.Abs()
}
