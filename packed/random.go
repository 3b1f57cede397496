package packed

import (
	"encoding/binary"
	"math/rand/v2"

	"tgc/ir"
)

// roller draws what a row's repair needs.
type roller struct{ *rand.Rand }

// half draws the bits of an f16 scale of either sign, 2^-8 to 2^-4 in size.
func (r roller) half() uint16 {
	return uint16(r.IntN(2))<<15 | uint16(7+r.IntN(4))<<10 | uint16(r.IntN(1<<10))
}

// RandomBlocks makes n blocks of valid data: every bit pattern that the format's
// integers can take, with finite scales of moderate size. Random bytes alone are
// no valid data, because scales become NaN. For a plain type the values lie in
// -1..1.
func RandomBlocks(f *Format, n int, rng *rand.Rand) []byte {
	r := roller{rng}
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
func (f *Format) makeValid(block []byte, r roller) {
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

// putFloat stores v in a plain dtype.
func putFloat(b []byte, dtype ir.DType, v float64) {
	copy(b, ir.EncodeTable(dtype, []float64{v}))
}
