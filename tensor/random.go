package tensor

import (
	"math"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// Random makes random tensors. Every element is a function of a key, the number of the
// call and the element's place alone: a hash (Threefry-2x32 with 20 rounds, Salmon et al.
// 2011), and arithmetic that every device rounds alike. So a seed gives the same numbers, to
// the bit, on every device, whatever else the graph computes, and a backward pass sees those
// of its forward pass.
type Random struct {
	key   *Tensor // u32, rank 0
	calls int
}

// Random makes random tensors from a seed: the same in every run.
func (g *Graph) Random(seed uint32) *Random {
	return &Random{key: g.Scalar(ir.U32, float64(seed))}
}

// RandomFrom makes random tensors from a key, a u32 of one element that a run may change:
// a count of steps, say. Different keys give independent numbers.
func (g *Graph) RandomFrom(key *Tensor) *Random {
	switch {
	case key == nil:
		g.fail("", "the key is nil")
		return &Random{key: &Tensor{graph: g}}
	case key.ok() && (key.DType() != ir.U32 || key.count(nil) != 1):
		return &Random{key: g.fail("", "key %s, want u32 of one element", key)}
	}
	return &Random{key: key.Reshape()}
}

// Bits are random words (u32).
func (r *Random) Bits(shape ...int) *Tensor {
	g := r.key.graph
	if !r.key.ok() {
		return r.key.bad()
	}
	count := lists.Product(shape)
	if len(shape) > 0 && slices.Min(shape) < 0 {
		return g.fail("", "shape %v; want no extent below 0", shape)
	}
	if count < 0 || count > math.MaxUint32 {
		return g.fail("", "shape %v; want at most %d elements", shape, uint32(math.MaxUint32))
	}
	r.calls++
	stream := r.key.Rng(g.Scalar(ir.U32, float64(r.calls)))
	return stream.Rng(g.Iota(ir.U32, g.Dims(count)[0])).Reshape(shape...)
}

// Uniform are f32 evenly spread over low .. high: low and multiples of (high-low)/2^24
// above it, rounded once; high itself only where that rounds to it.
func (r *Random) Uniform(low, high float64, shape ...int) *Tensor {
	const bits = 24 // of an f32's fraction
	unit := r.Bits(shape...).shiftedRight(32 - bits).Cast(ir.F32)
	if !unit.ok() {
		return unit
	}
	return unit.fma(unit.scalar((high-low)/(1<<bits)), unit.scalar(low))
}

// Normal are f32 of the normal distribution of this mean and standard deviation. The
// largest distance from the mean is 6.3 deviations.
func (r *Random) Normal(mean, deviation float64, shape ...int) *Tensor {
	if r.key.ok() && !(deviation >= 0) {
		return r.key.graph.fail("", "deviation %v; want at least 0", deviation)
	}
	bits := r.Bits(shape...)
	if !bits.ok() {
		return bits
	}
	z := normalQuantile(bits)
	return z.fma(z.scalar(deviation), z.scalar(mean))
}

// Integers are i32 from low to high-1, each as likely as the others to 1 in 2^32 of
// their number.
func (r *Random) Integers(low, high int, shape ...int) *Tensor {
	g := r.key.graph
	if low >= high || low < math.MinInt32 || high > math.MaxInt32+1 {
		return g.fail("", "from %d to below %d; want at least one number, of 32 bits", low, high)
	}
	bits := r.Bits(shape...)
	if !bits.ok() || high-low > math.MaxUint32 { // all words there are
		return bits.AddScalar(float64(uint32(low))).Bitcast(ir.I32)
	}
	return bits.binary(ir.OpMulHi, g.Scalar(ir.U32, float64(high-low))).AddScalar(float64(uint32(low))).Bitcast(ir.I32)
}

// Bernoulli are Bool, true with probability p, which is rounded to a multiple of 2^-24.
func (r *Random) Bernoulli(p float64, shape ...int) *Tensor {
	if r.key.ok() && !(p >= 0 && p <= 1) {
		return r.key.graph.fail("", "probability %v; want 0 to 1", p)
	}
	u := r.Uniform(0, 1, shape...)
	return u.Lt(u.scalar(p))
}

// BernoulliOf are Bool of p's shape, each true with p's probability.
func (r *Random) BernoulliOf(p *Tensor) *Tensor {
	if !r.key.ok() || !p.ok() {
		return r.key.bad()
	}
	shape, ok := p.Shape().Ints()
	if !ok || !p.DType().IsFloat() {
		return p.graph.fail("", "probabilities %s, want floats of constant shape", p)
	}
	return r.Uniform(0, 1, shape...).Lt(p)
}

// weightSteps are those in which weights are counted, of the largest: exactly, so that
// sums do not depend on their order.
const weightSteps = 1 << 30

// Multinomial draws n indices (i32) of the last axis of weights (floats [.., C], not below
// 0), each with a probability proportional to its weight, again and again from all of
// them. Weights count in steps of 2^-30 of the largest; of none above 0, draws are C. The work is that of a running sum
// and log2(C) steps a draw.
func (r *Random) Multinomial(weights *Tensor, n int) *Tensor {
	lead, ok := r.weighted(weights, n)
	if !ok {
		return r.key.bad()
	}
	w := weights.wide().ClampMin(0)
	steps := w.Div(w.MaxKeep(-1)).MulScalar(weightSteps).Round().Cast(ir.I64)
	sums := steps.Cumsum(-1).Contiguous()
	total := sums.SliceInts(-1, sums.Extent(-1)-1, 1).Cast(ir.U64)
	shape := append(lead, n)
	word := r.Bits(shape...).Cast(ir.U64).Shl(r.key.graph.Scalar(ir.U64, 32)).Or(r.Bits(shape...).Cast(ir.U64))
	drawn := word.binary(ir.OpMulHi, total).Cast(ir.I64)
	return sums.SearchSorted(drawn, true)
}

// MultinomialDistinct draws n different indices (i32) of the last axis of weights (floats
// [.., C], not below 0), one after the other with probabilities proportional to the
// weights that are left. Those of weight 0 come last. The work is that of TopK.
func (r *Random) MultinomialDistinct(weights *Tensor, n int) *Tensor {
	if _, ok := r.weighted(weights, n); !ok {
		return r.key.bad()
	}
	if n > weights.Extent(-1) {
		return weights.graph.fail("", "%d different ones of %s", n, weights)
	}
	// The first of events that come at these rates: exponential times are compared.
	shape, _ := weights.Shape().Ints()
	p := r.Bits(shape...).lowerHalf().MulScalar(2) // above 0, up to 1
	_, first := exactLog(p).Neg().Div(weights.wide()).TopK(n, -1, false)
	return first
}

// weighted checks weights, and returns the extents before the last.
func (r *Random) weighted(weights *Tensor, n int) (lead []int, ok bool) {
	if !r.key.ok() || !weights.ok() {
		return nil, false
	}
	shape, constant := weights.Shape().Ints()
	if !constant || len(shape) < 1 || shape[len(shape)-1] < 1 || !weights.DType().IsFloat() || n < 0 {
		weights.graph.fail("", "%d of weights %s, want floats [.. C]", n, weights)
		return nil, false
	}
	return shape[:len(shape)-1], true
}

// Permutation is 0 .. n-1 (i32) in random order. The work is that of Sort.
func (r *Random) Permutation(n int) *Tensor {
	if n < 0 {
		return r.key.graph.fail("", "of %d", n)
	}
	return r.Bits(n).Argsort(0, false)
}

// Shuffle is t with the slices of an axis in random order.
func (r *Random) Shuffle(t *Tensor, axis int) *Tensor {
	if !r.key.ok() || !t.ok() {
		return r.key.bad()
	}
	if _, ok := normalAxis(axis, t.Rank()); !ok {
		return t.graph.fail("", "axis %d of %s", axis, t)
	}
	return t.Gather(axis, r.Permutation(t.Extent(axis)))
}

// shiftedRight is t >> n of words.
func (t *Tensor) shiftedRight(n int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	return t.Shr(t.scalar(float64(n)))
}

// lowerHalf is (m + 1/2) / 2^32 of the lower 31 bits m of words, above 0 and at most 1/2,
// rounded once.
func (t *Tensor) lowerHalf() *Tensor {
	m := t.And(t.scalar(math.MaxInt32)).Cast(ir.F32)
	return m.fma(m.scalar(0x1p-32), m.scalar(0x1p-33))
}

// What follows is computed by products, explicit FMAs, quotients and roots alone, all of
// which every device rounds alike; a product is never added to anything, so that no
// compiler can join the two.

// The coefficients of PPND7 (Wichura 1988, AS241), lowest power first: the quantile of
// the normal distribution to 1e-7, near the middle and past it.
var (
	normalMiddle      = []float64{3.3871327179, 50.434271938, 159.29113202, 59.109374720}
	normalMiddleUnder = []float64{1, 17.895169469, 78.757757664, 67.187563600}
	normalTail        = []float64{1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103}
	normalTailUnder   = []float64{1, 0.73700164250, 0.12021132975}
)

// normalQuantile is the quantile of the normal distribution at words: the upper bit is the
// sign.
func normalQuantile(words *Tensor) *Tensor {
	p := words.lowerHalf()
	q := p.Neg().AddScalar(0.5)
	middle := q.Lt(q.scalar(0.425))
	near := middle.Where(q, q.scalar(0))
	r := near.Neg().fma(near, near.scalar(0.180625))
	inner := near.Mul(r.horner(normalMiddle)).Div(r.horner(normalMiddleUnder))
	far := exactLog(middle.Where(p.scalar(0.05), p)).Neg().Sqrt().AddScalar(-1.6)
	outer := far.horner(normalTail).Div(far.horner(normalTailUnder))
	z := middle.Where(inner, outer)
	return words.shiftedRight(31).Truth().Where(z, z.Neg())
}

// The coefficients of log(1+f) = f - f^2/2 + f^3*P(f) for sqrt(1/2) <= 1+f < sqrt(2), lowest
// power first (Moshier's Cephes, logf), and log 2 in two parts.
var logSeries = []float64{
	3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1,
	-1.2420140846e-1, 1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2,
}

const (
	logTwoHigh = 0.693359375
	logTwoLow  = -2.12194440e-4
)

// exactLog is the natural logarithm of normal f32 above 0, the same on every device; its
// error is 2 units in the last place.
func exactLog(t *Tensor) *Tensor {
	const rootOfHalf, fraction = 0x3f3504f3, 23 // bits of sqrt(1/2), and how many are the fraction's
	bits := t.Bitcast(ir.I32)
	exponent := bits.AddScalar(-rootOfHalf).Shr(bits.scalar(fraction))
	f := bits.Sub(exponent.Shl(bits.scalar(fraction))).Bitcast(ir.F32).AddScalar(-1)
	e, square := exponent.Cast(ir.F32), f.Mul(f)
	low := square.fma(f.scalar(-0.5), e.Mul(f.scalar(logTwoLow)))
	rest := f.Mul(square).fma(f.horner(logSeries), low)
	return e.fma(f.scalar(logTwoHigh), rest.Add(f))
}

// horner is polynomial by explicit FMAs.
func (t *Tensor) horner(coefficients []float64) *Tensor {
	last := len(coefficients) - 1
	sum := t.scalar(coefficients[last])
	for i := last - 1; i >= 0; i-- {
		sum = sum.fma(t, t.scalar(coefficients[i]))
	}
	return sum
}
