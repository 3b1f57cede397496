package synth

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"

	"tgc/gguf"
	"tgc/packed"
)

// scalePair is an fp16 scale and minimum that go together.
type scalePair struct{ scale, min uint16 }

// scaleJitter is the spread of the logarithm of block scales: blocks of real
// models differ by about this much.
const scaleJitter = 0.25

// scaleTable returns scales, log-normally distributed, by which blocks have the
// given standard deviation.
func scaleTable(rule *packed.Random, std float64) *[256]scalePair {
	table := new([256]scalePair)
	spread := math.Exp(scaleJitter * scaleJitter) // rms of exp(jitter * normal)
	for i, z := range quantiles(len(table)) {
		scale := float16.Fromfloat32(float32(std / rule.RMS * math.Exp(scaleJitter*z) / spread))
		table[i] = scalePair{
			scale: scale.Bits(),
			min:   float16.Fromfloat32(float32(float64(scale.Float32()) * rule.MinFactor)).Bits(),
		}
	}
	return table
}

// powerTable returns bytes of powers of two, two neighbours so mixed that blocks have the
// given standard deviation.
func powerTable(rule *packed.Random, std float64) *[256]scalePair {
	table := new([256]scalePair)
	fraction, exponent := math.Frexp(std / rule.RMS) // between a half and 1
	upper := (4*fraction*fraction - 1) / 3           // share of scales of 2^exponent; the others are half as large
	for i := range table {
		table[i].scale = uint16(min(max(rule.PowerOfTwo+exponent-1, 0), 254))
		if float64(i)+0.5 < upper*float64(len(table)) {
			table[i].scale++
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
	f, ok := packed.ByGGUF(uint32(t))
	if !ok || f.Random == nil {
		return nil, fmt.Errorf("synth: no random blocks of type %s", t)
	}
	return fillBlocks(f, std, words, newStream(seed, name, 1)), nil
}

// fillBlocks draws all bits from words; then the scales, which decide whether a
// value is finite and how large it is, from scales.
func fillBlocks(f *packed.Format, std float64, words, scales stream) gguf.Fill {
	rule, table := f.Random, scaleTable(f.Random, std)
	if rule.PowerOfTwo != 0 {
		table = powerTable(rule, std)
	}
	powerAt, scaleAt, minAt := offsetOf(f, "e"), offsetOf(f, "d"), max(offsetOf(f, "dmin"), offsetOf(f, "m"))
	return func(chunk []byte, offset int64) error {
		words.fill(chunk, offset)
		number := uint64(offset) / uint64(f.BlockBytes)
		for ; len(chunk) >= f.BlockBytes; chunk = chunk[f.BlockBytes:] {
			block := chunk[:f.BlockBytes]
			random := scales.at(number)
			number++
			pair := table[random>>56]
			if rule.Flip {
				pair.scale |= uint16(random>>55&1) << 15
			}
			switch {
			case rule.PowerOfTwo != 0:
				block[powerAt] = byte(pair.scale)
			case rule.Scale != nil:
				rule.Scale(block, pair.scale)
			default:
				binary.LittleEndian.PutUint16(block[scaleAt:], pair.scale)
			}
			if rule.MinFactor != 0 {
				binary.LittleEndian.PutUint16(block[minAt:], pair.min)
			}
			if rule.Inner != nil {
				first := mix(random)
				rule.Inner(block, [2]uint64{first, mix(first)})
			}
		}
		return nil
	}
}

// offsetOf is the place of a field in a block, in bytes; 0 if the type has none of
// the name.
func offsetOf(f *packed.Format, name string) int {
	if field, ok := f.Field(name); ok {
		return field.Offset
	}
	return 0
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
