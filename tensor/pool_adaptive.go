package tensor

import (
	"slices"

	"tgc/ir"
)

// AdaptiveAvgPool is the mean in windows over the last axes of t, as many on each as sizes
// says: window i of n elements goes from floor(i*n/size) to ceil((i+1)*n/size).
func (t *Tensor) AdaptiveAvgPool(sizes ...int) *Tensor {
	return t.adaptive(sizes, 0, func(x *Tensor, k int, counts *Tensor) *Tensor { return x.Sum(k).Div(counts) })
}

// AdaptiveMaxPool is the largest element of the windows of AdaptiveAvgPool.
func (t *Tensor) AdaptiveMaxPool(sizes ...int) *Tensor {
	return t.adaptive(sizes, 1, func(x *Tensor, k int, _ *Tensor) *Tensor { return x.Max(k) })
}

// adaptive folds the windows of one axis after the other; what a shorter window lacks is 0,
// or the least value for maxima.
func (t *Tensor) adaptive(sizes []int, least int, fold func(x *Tensor, k int, counts *Tensor) *Tensor) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	first := t.Rank() - len(sizes)
	if first < 0 || len(sizes) == 0 {
		return t.graph.fail("", "%s to %v; want sizes for its last axes", t, sizes)
	}
	return t.widelyIf(least == 0, func(x *Tensor) *Tensor {
		for i, size := range sizes {
			n := x.Extent(first + i)
			if size < 1 || n < 1 {
				return x.graph.fail("", "%s to %v; want at least one window of an element", t, sizes)
			}
			x = x.adaptiveAxis(first+i, n, size, least, fold)
		}
		return x
	})
}

// widelyIf is widely where a function rounds several times.
func (t *Tensor) widelyIf(rounds bool, f func(x *Tensor) *Tensor) *Tensor {
	if rounds {
		return t.widely(f)
	}
	return f(t)
}

// adaptiveAxis gathers the elements of each window of axis k beside each other: no more
// than twice as many as there are, and one a window.
func (t *Tensor) adaptiveAxis(k, n, size, least int, fold func(x *Tensor, k int, counts *Tensor) *Tensor) *Tensor {
	starts, counts, longest := make([]int, size), make([]float64, size), 0
	for i := range starts {
		starts[i] = i * n / size
		counts[i] = float64((i*n+n+size-1)/size - starts[i])
		longest = max(longest, int(counts[i]))
	}
	at, inside := make([]float64, size*longest), make([]float64, size*longest)
	for i, start := range starts {
		for j := range longest {
			at[i*longest+j] = float64(min(start+j, n-1))
			if j < int(counts[i]) {
				inside[i*longest+j] = 1
			}
		}
	}
	shape := slices.Repeat([]int{1}, t.Rank()-k+1)
	shape[0], shape[1] = size, longest
	x := t.Gather(k, t.graph.Table(ir.I32, at, size, longest))
	missing := t.scalar(0)
	if least > 0 {
		missing = t.least()
	}
	x = t.graph.Table(ir.U8, inside, shape...).Truth().Where(x, missing)
	column := slices.Repeat([]int{1}, t.Rank()-k)
	column[0] = size
	return fold(x, k+1, t.graph.Table(t.DType(), counts, column...))
}
