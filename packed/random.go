package packed

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/x448/float16"

	"tgc/ir"
)

// Random is a row's rule for blocks whose values have zero mean and a known spread.
// All bits are random; then the scale "d" (or "e") and the minimum ("m" or "dmin") of a block
// are set.
type Random struct {
	RMS       float64 // of a block's values if its scale is 1
	MinFactor float64 // minimum over scale that centres the values on 0; 0: there is no minimum
	Flip      bool    // half the blocks get a negative scale, to centre the values
	// PowerOfTwo is, of a format whose scale is the power of two in the byte "e", the byte
	// of scale 1; 0 of formats with a scale "d".
	PowerOfTwo int
	// Scale puts an f16 scale into a block that has no field "d" for one; nil for the others.
	Scale func(block []byte, half uint16)
	// Inner sets the integer scales inside a block; nil where any bits will do.
	Inner func(block []byte, random [2]uint64)
}

// scaleSource draws what a row's repair needs.
type scaleSource struct{ *rand.Rand }

// half draws the bits of an f16 scale of either sign, 2^-8 to 2^-4 in size.
func (r scaleSource) half() uint16 {
	return uint16(r.IntN(2))<<15 | uint16(7+r.IntN(4))<<10 | uint16(r.IntN(1<<10))
}

// RandomBlocks makes n blocks of valid data: every bit pattern that the format's
// integers can take, with finite scales of moderate size. Random bytes alone are
// no valid data, because scales become NaN. For a plain type the values lie in
// -1..1.
func RandomBlocks(f *Format, n int, rng *rand.Rand) []byte {
	r := scaleSource{rng}
	data := make([]byte, n*f.BlockBytes)
	if f.IsPlain() {
		for i := range n {
			putFloat(data[i*f.BlockBytes:], f.Plain, 2*rng.Float64()-1)
		}
		return data
	}
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	for i := range n {
		f.makeValid(data[i*f.BlockBytes:(i+1)*f.BlockBytes], r)
	}
	return data
}

// makeValid redraws the f16 scales of a block of random bytes and applies the
// row's own repair.
func (f *Format) makeValid(block []byte, r scaleSource) {
	for _, fd := range f.Fields {
		if fd.DType != ir.F16 {
			continue
		}
		for j := range fd.Count {
			binary.LittleEndian.PutUint16(block[fd.Offset+2*j:], r.half())
		}
	}
	if f.repair != nil {
		f.repair(block, r)
	}
}

// scaleInNibbles spreads an f16 over the top nibbles of the four words of IQ1_M's scales, from its low bits up.
func scaleInNibbles(block []byte, half uint16) {
	for i := range 4 {
		at := 48 + 2*i + 1
		block[at] = block[at]&0x0f | byte(half>>(4*i)&15)<<4
	}
}

// scaleOfGroups sets the four scales of NVFP4 to what they hold next to an f16, at least the smallest above 0.
func scaleOfGroups(block []byte, half uint16) {
	size := math.Abs(float64(float16.Frombits(half).Float32()))
	code := 1 + sort.Search(lastE4M3-1, func(i int) bool { return halfE4M3(i+1)+halfE4M3(i+2) >= size })
	for i := range 4 {
		block[i] = byte(code)
	}
}

// putFloat stores v in a plain dtype.
func putFloat(b []byte, dtype ir.DType, v float64) {
	copy(b, ir.EncodeTable(dtype, []float64{v}))
}

// An integer of b bits, all values equally likely, has a standard deviation of
// sqrt((4^b-1)/12).
const (
	rms2       = 1.118
	rms4       = 4.61
	rms5       = 9.23
	rms6       = 18.47
	fourBitRMS = 11.73 // of integers drawn from 8 to 15
	sixBitRMS  = 48.38 // of integers drawn from 32 to 63
	q6ScaleRMS = 84.3  // of integers drawn from 32 to 127

	odd3RMS        = 9.220 // of 2*sc+1 for a scale of 3 bits
	odd4RMS        = 18.47 // likewise of 4 bits
	quarterStepRMS = 2.308 // of (sc+1/2)/4 for a scale of 4 bits
)

// fourBitScales sets the sixteen bytes in which Q2_K packs a 4-bit scale and a 4-bit
// minimum each: scales from 8 to 15, each minimum equal to its scale.
func fourBitScales(block []byte, random [2]uint64) {
	for i, word := range random {
		scales := word&0x0707070707070707 | 0x0808080808080808
		binary.LittleEndian.PutUint64(block[8*i:], scales|scales<<4)
	}
}

// sixBitScales sets the twelve bytes in which Q4_K and Q5_K pack eight 6-bit
// scales and eight 6-bit minimums: scales from 32 to 63, each minimum equal to
// its scale. Bytes 0-3 hold the low six bits of scales 0-3 and, on top, the high
// two of scales 4-7; bytes 4-7 the same of minimums; bytes 8-11 the low four
// bits of scales and minimums 4-7.
func sixBitScales(block []byte, random [2]uint64) {
	low := uint32(random[0])&0x1f1f1f1f | 0x20202020      // scales 0-3
	high := uint32(random[0]>>32)&0x1f1f1f1f | 0x20202020 // scales 4-7
	packed := low | (high&0x30303030)<<2
	nibbles := high & 0x0f0f0f0f
	binary.LittleEndian.PutUint32(block[4:], packed)
	binary.LittleEndian.PutUint32(block[8:], packed)
	binary.LittleEndian.PutUint32(block[12:], nibbles|nibbles<<4)
}

// q6Scales sets the sixteen signed 8-bit scales of Q6_K: sizes from 32 to 127,
// every other one negative, which centres the block on 0.
func q6Scales(block []byte, random [2]uint64) {
	scales := block[192:208]
	for half, word := range random {
		for i := range 8 {
			size := 32 + byte(uint32(word>>(8*i)&0xff)*96>>8)
			if i%2 == 1 {
				size = -size
			}
			scales[8*half+i] = size
		}
	}
}
