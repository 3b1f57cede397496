package synth

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"

	"tgc/gguf"
)

// blockRow says how random bits become a valid block of a type. All bits are
// drawn at random first; then the scales, which decide whether a value is finite
// and how large it is, are set.
type blockRow struct {
	rms       float64 // of a block's values if its fp16 scale is 1
	scale     int     // offset of the fp16 scale in the block, in bytes
	min       int     // offset of the fp16 minimum, if minFactor is not 0
	minFactor float64 // minimum over scale that centres the values on 0
	flip      bool    // give half the blocks a negative scale, to centre them
	// inner sets the scales of parts of a block; random is 64 random bits and
	// more come from mixing them.
	inner func(block []byte, random uint64)
}

// blockRows are the quantised types that shapes use. An element of b bits with
// all values equally likely has a standard deviation of sqrt((4^b-1)/12):
// 4.61 for 4 bits, 9.23 for 5, 18.47 for 6, 73.9 for 8.
var blockRows = map[gguf.Type]blockRow{
	gguf.Q4_0: {rms: 4.64, scale: 0, flip: true},
	gguf.Q4_1: {rms: 4.61, scale: 0, min: 2, minFactor: -7.5},
	gguf.Q5_0: {rms: 9.25, scale: 0, flip: true},
	gguf.Q5_1: {rms: 9.23, scale: 0, min: 2, minFactor: -15.5},
	gguf.Q8_0: {rms: 73.9, scale: 0},
	gguf.Q4_K: {rms: 4.61 * sixBitRMS, scale: 0, min: 2, minFactor: 7.5, inner: sixBitScales},
	gguf.Q5_K: {rms: 9.23 * sixBitRMS, scale: 0, min: 2, minFactor: 15.5, inner: sixBitScales},
	gguf.Q6_K: {rms: 18.47 * q6ScaleRMS, scale: 208, inner: q6Scales},
	// The scales of Q3_K's and IQ4_XS's parts are signed, and any bits will do.
	gguf.Q3_K:   {rms: 2.34 * 18.5, scale: 108},
	gguf.IQ4_NL: {rms: 71.0, scale: 0, flip: true},
	gguf.IQ4_XS: {rms: 71.0 * 18.5, scale: 0},
}

const (
	sixBitRMS  = 48.38 // of integers drawn from 32 to 63
	q6ScaleRMS = 84.3  // of integers drawn from 32 to 127
)

// sixBitScales sets the twelve bytes in which Q4_K and Q5_K pack eight 6-bit
// scales and eight 6-bit minimums: scales from 32 to 63, each minimum equal to
// its scale. Bytes 0-3 hold the low six bits of scales 0-3 and, on top, the high
// two of scales 4-7; bytes 4-7 the same of minimums; bytes 8-11 the low four
// bits of scales and minimums 4-7.
func sixBitScales(block []byte, random uint64) {
	low := uint32(random)&0x1f1f1f1f | 0x20202020      // scales 0-3
	high := uint32(random>>32)&0x1f1f1f1f | 0x20202020 // scales 4-7
	packed := low | (high&0x30303030)<<2
	nibbles := high & 0x0f0f0f0f
	binary.LittleEndian.PutUint32(block[4:], packed)
	binary.LittleEndian.PutUint32(block[8:], packed)
	binary.LittleEndian.PutUint32(block[12:], nibbles|nibbles<<4)
}

// q6Scales sets the sixteen signed 8-bit scales of Q6_K: sizes from 32 to 127,
// every other one negative, which centres the block on 0.
func q6Scales(block []byte, random uint64) {
	scales := block[192:208]
	for half := range 2 {
		word := random
		for i := range 8 {
			size := 32 + byte(uint32(word>>(8*i)&0xff)*96>>8)
			if i%2 == 1 {
				size = -size
			}
			scales[8*half+i] = size
		}
		random = mix(random)
	}
}

// scalePair is an fp16 scale and minimum that go together.
type scalePair struct{ scale, min uint16 }

// scaleJitter is the spread of the logarithm of block scales: blocks of real
// models differ by about this much.
const scaleJitter = 0.25

// scaleTable returns scales, log-normally distributed, by which blocks have the
// given standard deviation.
func (r *blockRow) scaleTable(std float64) *[256]scalePair {
	table := new([256]scalePair)
	spread := math.Exp(scaleJitter * scaleJitter) // rms of exp(jitter * normal)
	for i, z := range quantiles(len(table)) {
		scale := float16.Fromfloat32(float32(std / r.rms * math.Exp(scaleJitter*z) / spread))
		table[i] = scalePair{
			scale: scale.Bits(),
			min:   float16.Fromfloat32(float32(float64(scale.Float32()) * r.minFactor)).Bits(),
		}
	}
	return table
}

// Fill returns a gguf.Fill of random valid blocks of a type whose values have
// zero mean and about the given standard deviation. The data depends on seed and
// name alone.
func Fill(t gguf.Type, std float64, seed uint64, name string) (gguf.Fill, error) {
	words := newStream(seed, name, 0)
	switch t {
	case gguf.F32:
		return fillF32(words, 0, std), nil
	case gguf.F16:
		return fillHalf(words, std, func(x float32) uint16 { return float16.Fromfloat32(x).Bits() }), nil
	case gguf.BF16:
		return fillHalf(words, std, func(x float32) uint16 { return uint16(math.Float32bits(x) >> 16) }), nil
	}
	row, ok := blockRows[t]
	if !ok {
		return nil, fmt.Errorf("synth: no random blocks of type %s", t)
	}
	return row.fill(t.Info().Bytes, std, words, newStream(seed, name, 1)), nil
}

// fill draws elements from words and scales from scales.
func (r blockRow) fill(blockBytes int, std float64, words, scales stream) gguf.Fill {
	table := r.scaleTable(std)
	return func(chunk []byte, offset int64) error {
		words.fill(chunk, offset)
		number := uint64(offset) / uint64(blockBytes)
		for ; len(chunk) >= blockBytes; chunk = chunk[blockBytes:] {
			block := chunk[:blockBytes]
			random := scales.at(number)
			number++
			pair := table[random>>56]
			if r.flip {
				pair.scale |= uint16(random>>55&1) << 15
			}
			binary.LittleEndian.PutUint16(block[r.scale:], pair.scale)
			if r.minFactor != 0 {
				binary.LittleEndian.PutUint16(block[r.min:], pair.min)
			}
			if r.inner != nil {
				r.inner(block, mix(random))
			}
		}
		return nil
	}
}

// fillHalf draws 16-bit floats from a table of 4,096 quantiles, small enough for
// the fastest cache.
func fillHalf(words stream, std float64, encode func(float32) uint16) gguf.Fill {
	var table [4096]uint16
	for i, z := range quantiles(len(table)) {
		table[i] = encode(float32(z * std))
	}
	return func(chunk []byte, offset int64) error {
		words.fill(chunk, offset)
		for i := 0; i+1 < len(chunk); i += 2 {
			random := binary.LittleEndian.Uint16(chunk[i:])
			binary.LittleEndian.PutUint16(chunk[i:], table[random>>4])
		}
		return nil
	}
}

// fillF32 draws 32-bit floats, from 32 random bits each.
func fillF32(words stream, mean, std float64) gguf.Fill {
	return func(chunk []byte, offset int64) error {
		words.fill(chunk, offset)
		for i := 0; i+3 < len(chunk); i += 4 {
			fraction := (float64(binary.LittleEndian.Uint32(chunk[i:])) + 0.5) / (1 << 32)
			x := float32(mean + std*normal(fraction))
			binary.LittleEndian.PutUint32(chunk[i:], math.Float32bits(x))
		}
		return nil
	}
}
