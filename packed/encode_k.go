package packed

// Super-blocks whose groups have a scale and a minimum: x = d*sc*q - dmin*m. The integers
// are found as those of encode_super.go, scales and minima together.

// minFit says how a super-block is put together.
type minFit struct {
	unsignedFit
	group int // values of a group
	limit int // of the groups' integers
}

// Q2_K has 16 groups of 16 and integers of 4 bits, Q4_K and Q5_K 8 groups of 32 and
// integers of 6.
var (
	fitQ2K = minFit{group: 16, limit: 15, unsignedFit: unsignedFit{
		top: 3, rounds: 3, anchors: []float64{3, 2.75, 2.5, 2.25, 3.25, 3.5, 2},
	}}
	fitQ4K = minFit{group: 32, limit: 63, unsignedFit: unsignedFit{
		top: 15, rounds: 2, anchors: []float64{15, 14.5, 14, 15.5, 16},
	}}
	fitQ5K = minFit{group: 32, limit: 63, unsignedFit: unsignedFit{
		top: 31, rounds: 2, anchors: []float64{31, 30.5, 30, 31.5, 32},
	}}
)

// minBlock is a candidate for a block of scales and minima.
type minBlock struct {
	fit     *minFit
	d, dmin float64
	sc, m   [16]int
	q       [256]int
	squares float64
}

func encodeQ2_K(block []byte, values, kept []float32) {
	b := fitQ2K.block(values)
	clear(block)
	for g := range b.sc {
		block[g] = byte(b.sc[g]) | byte(b.m[g])<<4
	}
	for e, q := range b.q {
		block[16+32*(e/128)+e%32] |= byte(q) << (2 * (e / 32 % 4))
	}
	putHalf(block[80:], b.d)
	putHalf(block[82:], b.dmin)
	b.keep(kept)
}

func encodeQ4_K(block []byte, values, kept []float32) {
	b := fitQ4K.block(values)
	b.storeSixBits(block)
	b.keep(kept)
	for e, q := range b.q {
		block[16+32*(e/64)+e%32] |= byte(q) << (4 * (e / 32 % 2))
	}
}

// The fifth bits of Q5_K come first, a bit a group in each of 32 bytes.
func encodeQ5_K(block []byte, values, kept []float32) {
	b := fitQ5K.block(values)
	b.storeSixBits(block)
	b.keep(kept)
	for e, q := range b.q {
		block[16+e%32] |= byte(q>>4) << (e / 32)
		block[48+32*(e/64)+e%32] |= byte(q&15) << (4 * (e / 32 % 2))
	}
}

func (f *minFit) block(values []float32) *minBlock {
	var scales, minima [16]float64
	for g := range len(values) / f.group {
		scales[g], minima[g] = f.fit(values[f.group*g : f.group*(g+1)])
	}
	limit := float64(f.limit)
	best := f.with(values, &scales, &minima, toHalf(extreme(scales[:])/limit), toHalf(extreme(minima[:])/limit))
	for range again {
		d, dmin, ok := best.bestD(values)
		if !ok {
			break
		}
		next := f.with(values, &scales, &minima, toHalf(d), toHalf(dmin))
		if next.squares >= best.squares {
			break
		}
		best = next
	}
	return best
}

// storeSixBits packs all but the levels; the shuffle of 6-bit integers is that of sixBitPairs.
func (b *minBlock) storeSixBits(block []byte) {
	putHalf(block, b.d)
	putHalf(block[2:], b.dmin)
	clear(block[4:])
	scales := block[4:16]
	for g := range 4 {
		scales[g] = byte(b.sc[g]) | byte(b.sc[g+4]>>4)<<6
		scales[g+4] = byte(b.m[g]) | byte(b.m[g+4]>>4)<<6
		scales[g+8] = byte(b.sc[g+4]&15) | byte(b.m[g+4]&15)<<4
	}
}

// keep notes what the block holds.
func (b *minBlock) keep(kept []float32) {
	for e, q := range b.q {
		g := e / b.fit.group
		scale, minimum := float32(b.d)*float32(b.sc[g]), float32(b.dmin)*float32(b.m[g])
		product := float32(scale * float32(q)) // one rounding each, as the decode expression
		kept[e] = product - minimum
	}
}

// with chooses integers for given d and dmin.
func (f *minFit) with(values []float32, scales, minima *[16]float64, d, dmin float64) *minBlock {
	b := &minBlock{fit: f, d: d, dmin: dmin}
	for g := range len(values) / f.group {
		group := values[f.group*g : f.group*(g+1)]
		scCentre, mCentre := f.centre(scales[g], d), f.centre(minima[g], dmin)
		least := b.groupSquares(group, 0, 0)
		for sc := max(scCentre-1, 0); sc <= min(scCentre+1, f.limit); sc++ {
			for m := max(mCentre-1, 0); m <= min(mCentre+1, f.limit); m++ {
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
			b.q[f.group*g+i] = nearest((float64(v)+minimum)*(1/scale), 0, f.top)
		}
	}
	return b
}

// centre is the integer closest to v in units of d.
func (f *minFit) centre(v, d float64) int {
	if d == 0 {
		return 0
	}
	return nearest(v/d, 0, f.limit)
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
		x, a, m := float64(v), float64(b.sc[i/b.fit.group]*b.q[i]), float64(b.m[i/b.fit.group])
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
