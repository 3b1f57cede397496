package tensor

import (
	"slices"

	"tgc/ir"
)

// ScatterReduce says how ScatterElementsReduce joins values that meet.
type ScatterReduce uint8

// The ways to join values.
const (
	ScatterSum ScatterReduce = iota
	ScatterProd
	ScatterMean // of integers: rounded down
	ScatterMax
	ScatterMin
)

var scatterReduces = [...]struct {
	name string
	op   ir.Op
}{
	{"sum", ir.OpAdd}, {"prod", ir.OpMul}, {"mean", ir.OpAdd}, {"max", ir.OpMax}, {"min", ir.OpMin},
}

// String is the reduction's name.
func (r ScatterReduce) String() string {
	if int(r) < len(scatterReduces) {
		return scatterReduces[r].name
	}
	return "unknown"
}

// ScatterElements is t with elements replaced: along axis 0,
// out[index[i][j]][j] = src[i][j] (torch.scatter). index has t's rank, may be
// shorter than t off the axis, and src is at least as long. Of equal indices
// the last wins; indices out of range write nothing.
func (t *Tensor) ScatterElements(axis int, index, src *Tensor) *Tensor {
	s, ok := t.scattering("scatter", axis, index, src)
	if !ok {
		return t.bad()
	}
	if s.src.Extent(s.axis) == 0 {
		return t
	}
	point := t.graph.alongAxis(s.matches.Rank(), s.axis+1, s.src.Extent(s.axis))
	last := s.matches.Where(point, point.identity(ir.OpMax)).Max(s.axis + 1)
	return t.graph.Scalar(ir.I32, -1).Lt(last).Where(s.src.GatherElements(s.axis, last), t)
}

// ScatterElementsReduce is t with elements joined: along axis 0, element
// out[k][j] joins all src[i][j] with index[i][j] = k, and t[k][j] too if
// includeSelf holds; where none meets it is t's (torch.scatter_reduce).
func (t *Tensor) ScatterElementsReduce(axis int, index, src *Tensor, reduce ScatterReduce, includeSelf bool) *Tensor {
	s, ok := t.scattering("scatter_reduce", axis, index, src)
	if !ok {
		return t.bad()
	}
	if int(reduce) >= len(scatterReduces) {
		return t.graph.fail("scatter_reduce", "reduction %d", reduce)
	}
	return s.join(reduce, includeSelf)
}

// ScatterElementsAdd is ScatterElementsReduce that adds to t.
func (t *Tensor) ScatterElementsAdd(axis int, index, src *Tensor) *Tensor {
	return t.ScatterElementsReduce(axis, index, src, ScatterSum, true)
}

// IndexAdd is t with slices of src added: along axis 0, out[index[p]] += src[p].
// index is a vector; equal indices add up, those out of range add nothing.
func (t *Tensor) IndexAdd(axis int, index, src *Tensor) *Tensor {
	if !t.ok() || !index.ok() || !src.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || index.Rank() != 1 || !index.DType().IsInt() || src.Rank() != t.Rank() || src.DType() != t.DType() {
		return t.graph.fail("index_add", "%s, index %s and values %s along axis %d", t, index, src, axis)
	}
	want := t.Shape()
	want[k] = index.Dim(0)
	if !slices.Equal(src.shape(), want) {
		return t.graph.fail("index_add", "values %s, want %s for %s along axis %d", src, shapeText(want), t, k)
	}
	ones := slices.Repeat([]int{1}, t.Rank())
	row := ones
	row[k] = index.Extent(0)
	if !index.DType().IsSigned() {
		index = index.Cast(ir.I64)
	}
	return t.scatterTo(k, index.Reshape(row...).expandTo(want), src).join(ScatterSum, true)
}

// scattered is a scatter along one axis: matches says, with the values' axis right
// after the target's, which value goes to which element.
type scattered struct {
	into    *Tensor
	axis    int
	src     *Tensor // as long as the target off the axis
	matches *Tensor // Bool
}

// scattering checks the arguments of a scatter of elements. Off the axis, index
// and values are padded to t's shape, with indices of no element.
func (t *Tensor) scattering(op string, axis int, index, src *Tensor) (scattered, bool) {
	if !t.ok() || !index.ok() || !src.ok() {
		return scattered{}, false
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || !index.DType().IsInt() || index.Rank() != t.Rank() || src.Rank() != t.Rank() || src.DType() != t.DType() {
		t.graph.fail(op, "%s at %s along axis %d from %s; want integers and one rank and dtype", t, index, axis, src)
		return scattered{}, false
	}
	if !index.DType().IsSigned() {
		index = index.Cast(ir.I64)
	}
	pads := make([][2]int, t.Rank())
	for i := range pads {
		n := index.Extent(i)
		if n > src.Extent(i) || i != k && n > t.Extent(i) {
			t.graph.fail(op, "index %s is longer on axis %d than %s or values %s", index, i, t, src)
			return scattered{}, false
		}
		src = src.SliceInts(i, 0, n)
		if i != k {
			pads[i][1] = t.Extent(i) - n
		}
	}
	index = index.PadAll(pads, PadOptions{Value: -1})
	return t.scatterTo(k, index, src.PadAll(pads, PadOptions{})), true
}

// scatterTo is the scatter of values at indices of their own shape.
func (t *Tensor) scatterTo(k int, index, src *Tensor) scattered {
	element := t.graph.axisIota(index.DType(), t.shape(), k)
	return scattered{into: t, axis: k, src: src, matches: index.Unsqueeze(k).Eq(element.Unsqueeze(k + 1))}
}

// join folds the values that go to each element. Halves are folded in f32.
func (s scattered) join(reduce ScatterReduce, includeSelf bool) *Tensor {
	op := scatterReduces[reduce].op
	self, src := s.into.wide(), s.src.wide()
	identity := src.identity(op)
	folded := s.matches.Where(src.Unsqueeze(s.axis), identity).reduce(op, false, []int{s.axis + 1})
	dtype := self.DType()
	hits := s.matches.Where(s.matches.graph.Scalar(ir.I32, 1), s.matches.graph.Scalar(ir.I32, 0)).Sum(s.axis + 1)
	some := hits.scalar(0).Lt(hits)
	if includeSelf {
		folded = self.binary(op, folded)
		hits = hits.AddScalar(1)
	}
	if reduce == ScatterMean {
		folded = folded.divide(hits.Maximum(hits.scalar(1)).Cast(dtype))
	}
	if !includeSelf {
		folded = some.Where(folded, self)
	}
	return folded.Cast(s.into.DType())
}

// divide is the quotient, of integers rounded down.
func (t *Tensor) divide(u *Tensor) *Tensor {
	if t.DType().IsFloat() {
		return t.Div(u)
	}
	return t.FloorDiv(u)
}

// identity is the neutral element of a reduce, a scalar of t's dtype.
func (t *Tensor) identity(op ir.Op) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	return t.graph.wrap(t.graph.arena.ConstScalar(t.DType(), ir.ReduceIdentity(op, t.DType())))
}

// wide is t in the dtype in which its sums are taken: f32 for shorter floats.
func (t *Tensor) wide() *Tensor {
	if t.ok() && t.DType().IsFloat() && t.DType().Size() < ir.F32.Size() {
		return t.Cast(ir.F32)
	}
	return t
}
