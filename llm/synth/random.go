package synth

import (
	"encoding/binary"
	"math"

	"tgc/internal/lists"
)

// stream is a random sequence of 64-bit words that can be entered anywhere: word
// i is a hash of i. So data does not depend on how it is cut into chunks.
type stream uint64

// weyl is 2^64 over the golden ratio: the step of SplitMix64.
const weyl = 0x9e3779b97f4a7c15

// newStream returns the stream of a seed and a name; number tells several
// streams of one name apart.
func newStream(seed uint64, name string, number uint64) stream {
	h := mix(seed + weyl)
	for _, b := range []byte(name) {
		h = mix(h ^ uint64(b))
	}
	return stream(mix(h + number*weyl))
}

// mix is the output function of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// at returns word i.
func (s stream) at(i uint64) uint64 { return mix(uint64(s) + i*weyl) }

// fill sets dst to the words from offset on, in bytes, a multiple of 8.
func (s stream) fill(dst []byte, offset int64) {
	z := uint64(s) + uint64(offset/8)*weyl
	for ; len(dst) >= 8; dst = dst[8:] {
		binary.LittleEndian.PutUint64(dst, mix(z))
		z += weyl
	}
	if len(dst) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], mix(z))
		copy(dst, last[:])
	}
}

// normal maps a fraction of the way from 0 to 1 to the standard normal
// distribution.
func normal(fraction float64) float64 { return math.Sqrt2 * math.Erfinv(2*fraction-1) }

// quantiles returns n values that, taken with equal probability, are
// distributed normally.
func quantiles(n int) []float64 {
	return lists.Make(n, func(i int) float64 { return normal((float64(i) + 0.5) / float64(n)) })
}
