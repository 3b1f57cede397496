package packed

// Super-blocks: every group gets the scale (and minimum) that suits it; the
// f16 scale d is such that the outermost group's uses all bits; then each
// group's integer is tried with its neighbours, since rounding it moves every
// level; and at last d is solved for again with all integers fixed.

// Q6_K: 16 groups of 16, x = d * sc * q with q in -32..31 and sc an int8.
var fitQ6 = signedFit{
	lo: -32, hi: 31, refine: true, store: func(v float64) float64 { return v },
	anchors: []float64{-32, -31.5, -31, -32.5},
}

// q6Block is a candidate for a block.
type q6Block struct {
	d       float64
	sc      [16]int
	q       [256]int
	squares float64
}

func encodeQ6_K(block []byte, values, kept []float32) {
	var scales [16]float64
	for g := range scales {
		scales[g] = fitQ6.scale(values[16*g : 16*g+16])
	}
	best := q6With(values, &scales, toHalf(extreme(scales[:])/-128))
	if again := q6With(values, &scales, toHalf(best.bestD(values))); again.squares < best.squares {
		best = again
	}
	putHalf(block[208:], best.d)
	clear(block[:192])
	for e, q := range best.q {
		half, e2 := e/128, e%128
		u := byte(q + 32)
		block[64*half+e2%64] |= (u & 15) << (4 * (e2 / 64))
		block[128+32*half+e2%32] |= (u >> 4) << (2 * (e2 / 32))
		kept[e] = float32(float32(best.d)*float32(best.sc[e/16])) * float32(q)
	}
	for g, sc := range best.sc {
		block[192+g] = byte(int8(sc))
	}
}

// q6With chooses integers for a given d.
func q6With(values []float32, scales *[16]float64, d float64) *q6Block {
	b := &q6Block{d: d}
	for g, want := range scales {
		group := values[16*g : 16*g+16]
		least := sumSquares(group)
		if d != 0 {
			centre := nearest(want/d, -128, 127)
			for sc := max(centre-1, -128); sc <= min(centre+1, 127); sc++ {
				if sc == 0 {
					continue
				}
				if squares, _ := fitQ6.residual(group, d*float64(sc)); squares < least {
					b.sc[g], least = sc, squares
				}
			}
		}
		b.squares += least
		for i, v := range group {
			b.q[16*g+i] = level(v, d*float64(b.sc[g]), fitQ6.lo, fitQ6.hi)
		}
	}
	return b
}

// bestD is the d that suits all integers.
func (b *q6Block) bestD(values []float32) float64 {
	var xy, yy float64
	for i, v := range values {
		y := float64(b.sc[i/16] * b.q[i])
		xy += float64(v) * y
		yy += y * y
	}
	if yy == 0 {
		return b.d
	}
	return xy / yy
}

// Q4_K and Q5_K: 8 groups of 32, x = d*sc*q - dmin*m with q in 0..15 or 0..31, sc and m in 0..63.
var (
	fitQ4K = unsignedFit{top: 15, anchors: []float64{15, 14.5, 14, 15.5, 16}}
	fitQ5K = unsignedFit{top: 31, anchors: []float64{31, 30.5, 30, 31.5, 32}}
)

// sixBits is the largest 6-bit scale or minimum.
const sixBits = 63

// minBlock is a candidate for a block of scales and minima.
type minBlock struct {
	fit     *unsignedFit
	d, dmin float64
	sc, m   [8]int
	q       [256]int
	squares float64
}

func encodeQ4_K(block []byte, values, kept []float32) {
	b := fitMinBlock(&fitQ4K, values)
	b.store(block, kept)
	for e, q := range b.q {
		block[16+32*(e/64)+e%32] |= byte(q) << (4 * (e / 32 % 2))
	}
}

// The fifth bits of Q5_K come first, a bit a group in each of 32 bytes.
func encodeQ5_K(block []byte, values, kept []float32) {
	b := fitMinBlock(&fitQ5K, values)
	b.store(block, kept)
	for e, q := range b.q {
		block[16+e%32] |= byte(q>>4) << (e / 32)
		block[48+32*(e/64)+e%32] |= byte(q&15) << (4 * (e / 32 % 2))
	}
}

func fitMinBlock(fit *unsignedFit, values []float32) *minBlock {
	var scales, minima [8]float64
	for g := range scales {
		scales[g], minima[g] = fit.fit(values[32*g : 32*g+32])
	}
	best := minWith(fit, values, &scales, &minima, toHalf(extreme(scales[:])/sixBits), toHalf(extreme(minima[:])/sixBits))
	if d, dmin, ok := best.bestD(values); ok {
		if again := minWith(fit, values, &scales, &minima, toHalf(d), toHalf(dmin)); again.squares < best.squares {
			best = again
		}
	}
	return best
}

// store packs all but the levels; the shuffle of 6-bit integers is that of sixBitPairs.
func (b *minBlock) store(block []byte, kept []float32) {
	putHalf(block, b.d)
	putHalf(block[2:], b.dmin)
	clear(block[4:])
	scales := block[4:16]
	for g := range 4 {
		scales[g] = byte(b.sc[g]) | byte(b.sc[g+4]>>4)<<6
		scales[g+4] = byte(b.m[g]) | byte(b.m[g+4]>>4)<<6
		scales[g+8] = byte(b.sc[g+4]&15) | byte(b.m[g+4]&15)<<4
	}
	for e, q := range b.q {
		g := e / 32
		scale, minimum := float32(b.d)*float32(b.sc[g]), float32(b.dmin)*float32(b.m[g])
		product := float32(scale * float32(q)) // one rounding each, as the decode expression
		kept[e] = product - minimum
	}
}

// minWith chooses integers for given d and dmin.
func minWith(fit *unsignedFit, values []float32, scales, minima *[8]float64, d, dmin float64) *minBlock {
	b := &minBlock{fit: fit, d: d, dmin: dmin}
	for g := range scales {
		group := values[32*g : 32*g+32]
		scCentre, mCentre := centre(scales[g], d), centre(minima[g], dmin)
		least := b.groupSquares(group, 0, 0)
		for sc := max(scCentre-1, 0); sc <= min(scCentre+1, sixBits); sc++ {
			for m := max(mCentre-1, 0); m <= min(mCentre+1, sixBits); m++ {
				if squares := b.groupSquares(group, sc, m); squares < least {
					b.sc[g], b.m[g], least = sc, m, squares
				}
			}
		}
		b.squares += least
		scale, minimum := d*float64(b.sc[g]), dmin*float64(b.m[g])
		if scale == 0 {
			continue
		}
		for i, v := range group {
			b.q[32*g+i] = nearest((float64(v)+minimum)*(1/scale), 0, fit.top)
		}
	}
	return b
}

// centre is the 6-bit integer closest to v in units of d.
func centre(v, d float64) int {
	if d == 0 {
		return 0
	}
	return nearest(v/d, 0, sixBits)
}

func (b *minBlock) groupSquares(group []float32, sc, m int) float64 {
	scale, minimum := b.d*float64(sc), b.dmin*float64(m)
	if scale != 0 {
		squares, _, _ := b.fit.residual(group, scale, minimum)
		return squares
	}
	squares := 0.0
	for _, v := range group {
		squares += (float64(v) + minimum) * (float64(v) + minimum)
	}
	return squares
}

// bestD solves for d and dmin with all integers fixed: x = d*(sc*q) - dmin*m in
// the least-squares sense; not ok if that is singular or makes one negative.
func (b *minBlock) bestD(values []float32) (d, dmin float64, ok bool) {
	var aa, am, mm, xa, xm float64
	for i, v := range values {
		x, a, m := float64(v), float64(b.sc[i/32]*b.q[i]), float64(b.m[i/32])
		aa += a * a
		am += a * m
		mm += m * m
		xa += x * a
		xm += x * m
	}
	determinant := am*am - aa*mm
	if mm == 0 && aa > 0 {
		return xa / aa, 0, xa > 0
	}
	if determinant == 0 {
		return 0, 0, false
	}
	d = (xm*am - xa*mm) / determinant
	dmin = (aa*xm - am*xa) / determinant
	return d, dmin, d > 0 && dmin >= 0
}
