package tensor

import (
	"math"
	"math/bits"
	"math/cmplx"

	"tgc/ir"
)

// Complex is a tensor of complex numbers: two of one shape and dtype. Where Imag is nil, all
// numbers are real.
type Complex struct{ Real, Imag *Tensor }

// FFT is the discrete Fourier transform of t along an axis: the sum of t[j] e^(-2 pi i jk/n)
// for each k. It is made of matrix products of up to 32 columns with factors between them, in
// some n (sum of n's factors up to 32) operations; where n has a prime factor above 64, as a
// convolution of a power of two of elements.
func (t *Tensor) FFT(axis int) Complex { return Complex{Real: t}.FFT(axis) }

// RFFT is the first n/2+1 elements of FFT, which for real numbers determine the others.
func (t *Tensor) RFFT(axis int) Complex {
	k, ok := t.transformed(axis)
	if !ok {
		return Complex{t.bad(), t.bad()}
	}
	if n := t.Extent(k); n%2 != 0 || n <= direct {
		return t.FFT(k).each(func(x *Tensor) *Tensor { return x.SliceInts(k, 0, n/2+1) })
	}
	return Complex{Real: t}.along(k, Complex.transformReals)
}

// FFT is Tensor.FFT of complex numbers.
func (c Complex) FFT(axis int) Complex { return c.transformAlong(axis, -1) }

// IFFT is the inverse of FFT: that with e^(+2 pi i jk/n), divided by n.
func (c Complex) IFFT(axis int) Complex {
	k, ok := c.Real.transformed(axis)
	if !ok {
		return Complex{c.Real.bad(), c.Real.bad()}
	}
	scale := 1 / float64(c.Real.Extent(k))
	return c.transformAlong(k, 1).each(func(x *Tensor) *Tensor { return x.MulScalar(scale) })
}

// IRFFT is the inverse of RFFT, of n elements; the first imaginary part is not read, nor the
// last for even n.
func (c Complex) IRFFT(axis, n int) *Tensor {
	k, ok := c.Real.transformed(axis)
	if !ok {
		return c.Real.bad()
	}
	half := n/2 + 1
	if n < 1 || c.Real.Extent(k) != half {
		return c.Real.graph.fail("", "%s to %d elements of axis %d; want %d here", c.Real, n, k, half)
	}
	rest := func(x *Tensor) *Tensor { return x.SliceInts(k, 1, n-half).Flip(k) }
	whole := Complex{Real: c.Real.Cat(k, rest(c.Real))}
	if c.Imag != nil {
		whole.Imag = c.Imag.Cat(k, rest(c.Imag).Neg())
	}
	return whole.IFFT(k).Real
}

// Mul is the product of complex numbers.
func (c Complex) Mul(d Complex) Complex {
	switch {
	case d.Imag == nil && c.Imag == nil:
		return Complex{Real: c.Real.Mul(d.Real)}
	case d.Imag == nil:
		return Complex{c.Real.Mul(d.Real), c.Imag.Mul(d.Real)}
	case c.Imag == nil:
		return Complex{c.Real.Mul(d.Real), c.Real.Mul(d.Imag)}
	}
	return Complex{c.Real.Mul(d.Real).Sub(c.Imag.Mul(d.Imag)), c.Real.Mul(d.Imag).Add(c.Imag.Mul(d.Real))}
}

// each applies f to both parts.
func (c Complex) each(f func(x *Tensor) *Tensor) Complex {
	if c.Imag == nil {
		return Complex{Real: f(c.Real)}
	}
	return Complex{f(c.Real), f(c.Imag)}
}

// transformed checks an axis to transform.
func (t *Tensor) transformed(axis int) (k int, ok bool) {
	if !t.ok() {
		return 0, false
	}
	k, ok = normalAxis(axis, t.Rank())
	if ok {
		n, constant := t.shape()[k].Int()
		ok = constant && n > 0
	}
	if !ok {
		t.graph.fail("", "axis %d of %s; want one of constant size from 1 on", axis, t)
	}
	return k, ok
}

func (c Complex) transformAlong(axis, sign int) Complex {
	k, ok := c.Real.transformed(axis)
	if ok && c.Imag != nil {
		_, ok = c.Imag.transformed(axis)
		if ok && shapeText(c.Real.shape()) != shapeText(c.Imag.shape()) {
			c.Real.graph.fail("", "real part %s, imaginary part %s; want one shape", c.Real, c.Imag)
			ok = false
		}
	}
	if !ok {
		return Complex{c.Real.bad(), c.Real.bad()}
	}
	return c.along(k, func(c Complex) Complex { return c.transform(float64(sign)) })
}

// along transforms an axis as the last one, in floats of at least 32 bits.
func (c Complex) along(axis int, transform func(c Complex) Complex) Complex {
	dtype := c.Real.DType()
	c = transform(c.each(func(x *Tensor) *Tensor {
		if !dtype.IsFloat() || isShort(dtype) {
			x = x.Cast(ir.F32)
		}
		return x.MoveAxis(axis, -1)
	}))
	return c.each(func(x *Tensor) *Tensor {
		if x = x.MoveAxis(-1, axis); isShort(dtype) {
			x = x.Cast(dtype)
		}
		return x
	})
}

// transformReals gives the first n/2+1 of the transform of n real numbers along the last axis, from
// that of half as many complex ones z[j] = x[2j] + i x[2j+1]: those of the even and odd elements
// are (z + z') / 2 and (z - z') / 2i, where z'[k] is the conjugate of z[n/2-k].
func (c Complex) transformReals() Complex {
	g, n := c.Real.graph, c.Real.Extent(-1)
	half := n / 2
	pairs := c.Real.rows(c.Real.Rank()-1, half, 2)
	part := func(i int) *Tensor { return pairs.SliceInts(-1, i, 1).Squeeze(-1) }
	z := Complex{part(0), part(1)}.transform(-1).each(func(x *Tensor) *Tensor { // half elements come round
		return x.Repeat(2).SliceInts(-1, 0, half+1).MulScalar(0.5)
	})
	back := z.each(func(x *Tensor) *Tensor { return x.Flip(-1) })
	even := Complex{z.Real.Add(back.Real), z.Imag.Sub(back.Imag)}
	odd := Complex{z.Imag.Add(back.Imag), back.Real.Sub(z.Real)}.Mul(g.roots(z.Real.DType(), 2, half+1, -1, n).each(func(x *Tensor) *Tensor {
		return x.SliceInts(0, 1, 1).Squeeze(0)
	}))
	return Complex{even.Real.Add(odd.Real), even.Imag.Add(odd.Imag)}
}

// Sizes up to direct are one matrix product, and so are primes up to directPrime.
const (
	direct      = 32
	directPrime = 64
)

// transform transforms the last axis.
func (c Complex) transform(sign float64) Complex {
	c = c.each(func(x *Tensor) *Tensor { return x.Unsqueeze(-1) }).transformRows(sign)
	return c.each(func(x *Tensor) *Tensor { return x.Squeeze(-1) })
}

// transformRows transforms the last axis but one. For n = a b, element b j1 + j2 goes to k1 + a k2:
// transforms of a over j1, factors e^(j2 k1 / n), transforms of b over j2, of rows [k1, columns]
// each. So products read and store along neighbours, and results are in order.
func (c Complex) transformRows(sign float64) Complex {
	g, n, columns := c.Real.graph, c.Real.Extent(-2), c.Real.Extent(-1)
	a := factor(n)
	switch {
	case n <= direct, a == 1 && n <= directPrime:
		return g.roots(c.Real.DType(), n, n, sign, n).times(c)
	case a == 1:
		return c.each(func(x *Tensor) *Tensor { return x.Transpose(-1, -2) }).chirp(sign).each(func(x *Tensor) *Tensor { return x.Transpose(-1, -2) })
	}
	b, axis := n/a, c.Real.Rank()-2
	c = c.each(func(x *Tensor) *Tensor { return x.Flatten(-2, -1).rows(axis, a, b*columns) })
	c = g.roots(c.Real.DType(), a, a, sign, a).times(c)
	c = c.each(func(x *Tensor) *Tensor { return x.rows(axis+1, b, columns) })
	c = c.Mul(g.roots(c.Real.DType(), a, b, sign, n).each(func(x *Tensor) *Tensor { return x.Unsqueeze(-1) }))
	c = c.each(func(x *Tensor) *Tensor { return x.Transpose(-2, -3).Contiguous().Flatten(-2, -1) })
	return c.transformRows(sign).each(func(x *Tensor) *Tensor { return x.Flatten(-2, -1).rows(axis, n, columns) })
}

// factor is a divisor of n up to direct, 1 where there is none: such that the products that are
// needed are few, and of about one size.
func factor(n int) int {
	products := math.Ceil(math.Log(float64(n))/math.Log(direct) - 1e-9)
	even := math.Pow(float64(n), 1/products) - 1e-9
	best := 1
	for d := 2; d <= direct; d++ {
		if n%d == 0 {
			best = d
			if float64(d) >= even {
				break
			}
		}
	}
	return best
}

// times is a product of complex matrices, by real ones.
func (c Complex) times(d Complex) Complex {
	if d.Imag == nil {
		return Complex{c.Real.MatMul(d.Real), c.Imag.MatMul(d.Real)}.each((*Tensor).Contiguous)
	}
	re := c.Real.MatMul(d.Real).Sub(c.Imag.MatMul(d.Imag))
	im := c.Imag.MatMul(d.Real).Add(c.Real.MatMul(d.Imag))
	return Complex{re, im}.each((*Tensor).Contiguous)
}

// roots is e^(sign 2 pi i jk/n) for j below rows and k below columns.
func (g *Graph) roots(dtype ir.DType, rows, columns int, sign float64, n int) Complex {
	list := make([]complex128, 0, rows*columns)
	for j := range rows {
		for k := range columns {
			list = append(list, cmplx.Rect(1, sign*2*math.Pi*float64(j*k%n)/float64(n)))
		}
	}
	return g.complexTable(dtype, list, rows, columns)
}

func (g *Graph) complexTable(dtype ir.DType, list []complex128, shape ...int) Complex {
	re, im := make([]float64, len(list)), make([]float64, len(list))
	for i, z := range list {
		re[i], im[i] = real(z), imag(z)
	}
	return Complex{g.Table(dtype, re, shape...), g.Table(dtype, im, shape...)}
}

// chirp transforms a prime number of elements: as jk = (j^2 + k^2 - (k-j)^2) / 2, the sum over j
// is a convolution with e^(-i pi j^2 / n), which a power of two of elements carries out.
func (c Complex) chirp(sign float64) Complex {
	g, dtype, n := c.Real.graph, c.Real.DType(), c.Real.Extent(-1)
	long := 1 << bits.Len(uint(2*n-2))
	wave, other := make([]complex128, n), make([]complex128, long)
	for j := range n {
		wave[j] = cmplx.Rect(1, sign*math.Pi*float64(j*j%(2*n))/float64(n))
		other[j] = cmplx.Conj(wave[j])
		other[(long-j)%long] = other[j]
	}
	factors := g.complexTable(dtype, wave, n)
	padded := c.Mul(factors).each(func(x *Tensor) *Tensor { return x.Pad(-1, 0, long-n) })
	product := padded.transform(-1).Mul(g.complexTable(dtype, powerOfTwoFFT(other), long))
	back := product.transform(1).each(func(x *Tensor) *Tensor { return x.SliceInts(-1, 0, n).MulScalar(1 / float64(long)) })
	return back.Mul(factors)
}

// powerOfTwoFFT transforms constants.
func powerOfTwoFFT(list []complex128) []complex128 {
	n := len(list)
	if n == 1 {
		return list
	}
	halves := [2][]complex128{}
	for i, z := range list {
		halves[i%2] = append(halves[i%2], z)
	}
	even, odd := powerOfTwoFFT(halves[0]), powerOfTwoFFT(halves[1])
	out := make([]complex128, n)
	for k := range n / 2 {
		turned := odd[k] * cmplx.Rect(1, -2*math.Pi*float64(k)/float64(n))
		out[k], out[k+n/2] = even[k]+turned, even[k]-turned
	}
	return out
}
