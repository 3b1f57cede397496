package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"tgc/ir"
)

// CanEncode reports whether Encode knows the type: plain types do, and rows with an
// encode function.
func (f *Format) CanEncode() bool { return f.IsPlain() || f.encode != nil }

// Encode packs values, whole blocks of them, into dst, which has the RowBytes of
// their number. Plain types round to nearest even. Packed types look for the
// scales (and minima) that keep the sum of squared differences of a block small.
//
// Errors: a type that is only read, a number of values that is no multiple of
// BlockElems, a dst of another size, and values that are not finite or too large
// for the type's f16 scales.
func (f *Format) Encode(dst []byte, values []float32) error {
	size, err := f.RowBytes(int64(len(values)))
	switch {
	case !f.CanEncode():
		return fmt.Errorf("packed: %s: values cannot be packed in this type", f.Name)
	case err != nil:
		return err
	case int64(len(dst)) != size:
		return fmt.Errorf("packed: %s: %d values into %d bytes, want %d bytes", f.Name, len(values), len(dst), size)
	case f.IsPlain():
		encodePlain(f.Plain, dst, values)
		return nil
	}
	if i := f.firstUnfit(values); i >= 0 {
		return fmt.Errorf("packed: %s: value %d is %g, want a finite number of size up to %g", f.Name, i, values[i], f.largest())
	}
	kept := make([]float32, f.BlockElems)
	for len(values) > 0 {
		f.encode(dst[:f.BlockBytes], values[:f.BlockElems], kept)
		dst, values = dst[f.BlockBytes:], values[f.BlockElems:]
	}
	return nil
}

// Fill returns a function that packs any run of whole blocks of a tensor with
// these values: chunk is set to the packed bytes from offset on. It is what a
// gguf.Writer asks for, chunk by chunk and from several goroutines.
func (f *Format) Fill(values []float32) func(chunk []byte, offset int64) error {
	return func(chunk []byte, offset int64) error {
		block := int64(f.BlockBytes)
		first := offset / block * int64(f.BlockElems)
		count := int64(len(chunk)) / block * int64(f.BlockElems)
		if offset%block != 0 || first+count > int64(len(values)) {
			return fmt.Errorf("packed: %s: %d bytes at %d of %d values, want whole blocks inside", f.Name, len(chunk), offset, len(values))
		}
		if err := f.Encode(chunk, values[first:first+count]); err != nil {
			return fmt.Errorf("from value %d on: %w", first, err)
		}
		return nil
	}
}

// largest is the largest size of a value that a block can hold whatever the others are:
// four bits times the largest f16 scale, 7*65504, rounded down, or the largest f16 where
// that is the type of the minimum alone.
func (f *Format) largest() float32 {
	if f.most != 0 {
		return f.most
	}
	if _, ok := f.Field("m"); ok {
		return largestHalf
	}
	return 450_000
}

// firstUnfit is the index of a value that no block holds, -1 if there is none.
func (f *Format) firstUnfit(values []float32) int {
	largest := f.largest()
	return slices.IndexFunc(values, func(v float32) bool { return !(v <= largest && v >= -largest) }) // NaN too
}

func encodePlain(dtype ir.DType, dst []byte, values []float32) {
	size := dtype.Size()
	for i, v := range values {
		word := ir.FloatBits(dtype, ir.RoundFloat(dtype, float64(v)))
		if size == 4 {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(word))
		} else {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(word))
		}
	}
}

// largestHalf is the largest f16.
const largestHalf = 65504

// toHalf rounds a scale to f16, saturating, as a float64.
func toHalf(v float64) float64 {
	v = min(max(v, -largestHalf), largestHalf)
	return float64(float16.Fromfloat32(float32(v)).Float32())
}

// putHalf stores a scale that toHalf has rounded.
func putHalf(b []byte, v float64) {
	binary.LittleEndian.PutUint16(b, float16.Fromfloat32(float32(v)).Bits())
}

// nearest rounds to an integer in lo..hi.
func nearest(v float64, lo, hi int) int {
	return int(min(max(math.RoundToEven(v), float64(lo)), float64(hi)))
}

// extreme is the value of the largest size; 0 of an empty list.
func extreme[T float32 | float64](values []T) float64 {
	e := 0.0
	for _, v := range values {
		if x := float64(v); math.Abs(x) > math.Abs(e) {
			e = x
		}
	}
	return e
}
