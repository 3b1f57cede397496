package refmodel

import (
	"encoding/binary"
	"math"

	"tgc/gguf"
)

// decoders holds a loop per type: from one block of bytes to its values, with
// f32 arithmetic in the order that the types define.
var decoders = map[gguf.Type]func(b []byte, out []float32){
	gguf.F32: func(b []byte, out []float32) { out[0] = math.Float32frombits(binary.LittleEndian.Uint32(b)) },
	gguf.F16: func(b []byte, out []float32) { out[0] = half(b) },
	gguf.BF16: func(b []byte, out []float32) {
		out[0] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	},
	gguf.Q4_0:   decodeQ4_0,
	gguf.Q4_1:   decodeQ4_1,
	gguf.Q5_0:   decodeQ5_0,
	gguf.Q5_1:   decodeQ5_1,
	gguf.Q8_0:   decodeQ8_0,
	gguf.Q2_K:   decodeQ2K,
	gguf.Q3_K:   decodeQ3K,
	gguf.Q4_K:   decodeQ4K,
	gguf.Q5_K:   decodeQ5K,
	gguf.Q6_K:   decodeQ6K,
	gguf.IQ4_NL: decodeIQ4NL,
	gguf.IQ4_XS: decodeIQ4XS,
	gguf.MXFP4:  decodeMXFP4,
}

// Dequantise returns all values of a tensor, row after row.
func Dequantise(f *gguf.File, t *gguf.Tensor) ([]float32, error) {
	decode, ok := decoders[t.Type]
	if !ok {
		return nil, f.Errorf(t, "the reference model cannot decode type %s", t.Type)
	}
	info := t.Type.Info()
	data := t.Data()
	out := make([]float32, t.Elements())
	for i := 0; i*info.Elements < len(out); i++ {
		decode(data[i*info.Bytes:(i+1)*info.Bytes], out[i*info.Elements:(i+1)*info.Elements])
	}
	return out, nil
}

// half converts the f16 at the start of b.
func half(b []byte) float32 {
	bits := binary.LittleEndian.Uint16(b)
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 31:
		v = math.Inf(1)
		if fraction != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if bits>>15 == 1 {
		v = -v
	}
	return float32(v)
}

func decodeQ4_0(b []byte, out []float32) {
	d, qs := half(b), b[2:]
	for i := range 16 {
		out[i] = d * float32(int(qs[i]&15)-8)
		out[i+16] = d * float32(int(qs[i]>>4)-8)
	}
}

func decodeQ4_1(b []byte, out []float32) {
	d, m, qs := half(b), half(b[2:]), b[4:]
	for i := range 16 {
		out[i] = d*float32(qs[i]&15) + m
		out[i+16] = d*float32(qs[i]>>4) + m
	}
}

func decodeQ5_0(b []byte, out []float32) {
	d, qh, qs := half(b), binary.LittleEndian.Uint32(b[2:]), b[6:]
	for i := range 16 {
		out[i] = d * float32(int(qs[i]&15)+int(qh>>i&1)*16-16)
		out[i+16] = d * float32(int(qs[i]>>4)+int(qh>>(i+16)&1)*16-16)
	}
}

func decodeQ5_1(b []byte, out []float32) {
	d, m, qh, qs := half(b), half(b[2:]), binary.LittleEndian.Uint32(b[4:]), b[8:]
	for i := range 16 {
		out[i] = d*float32(int(qs[i]&15)+int(qh>>i&1)*16) + m
		out[i+16] = d*float32(int(qs[i]>>4)+int(qh>>(i+16)&1)*16) + m
	}
}

func decodeQ8_0(b []byte, out []float32) {
	d := half(b)
	for i := range out {
		out[i] = d * float32(int8(b[2+i]))
	}
}

func decodeQ2K(b []byte, out []float32) {
	scales, qs, d, dmin := b[:16], b[16:80], half(b[80:]), half(b[82:])
	for i := range out {
		half, shift, byteInHalf := i/128, i%128/32*2, i%32
		q := qs[32*half+byteInHalf] >> shift & 3
		sc := scales[i/16]
		out[i] = d*float32(sc&15)*float32(q) - dmin*float32(sc>>4)
	}
}

func decodeQ3K(b []byte, out []float32) {
	hmask, qs, packed, d := b[:32], b[32:96], b[96:108], half(b[108:])
	var scales [16]int
	for j := range scales {
		low := int(packed[j%8] >> (4 * (j / 8)) & 15)
		high := int(packed[8+j%4] >> (2 * (j / 4)) & 3)
		scales[j] = low + 16*high - 32
	}
	for i := range out {
		q := int(qs[32*(i/128)+i%32] >> (i % 128 / 32 * 2) & 3)
		if hmask[i%32]>>(i/32)&1 == 0 {
			q -= 4
		}
		out[i] = d * float32(scales[i/16]) * float32(q)
	}
}

// scaleAndMin unpacks the 6-bit scale and minimum of group j of a Q4_K or Q5_K
// block.
func scaleAndMin(s []byte, j int) (scale, minimum byte) {
	if j < 4 {
		return s[j] & 63, s[j+4] & 63
	}
	return s[j+4]&15 | s[j-4]>>6<<4, s[j+4]>>4 | s[j]>>6<<4
}

func decodeQ4K(b []byte, out []float32) {
	d, dmin, scales, qs := half(b), half(b[2:]), b[4:16], b[16:]
	for j := range 8 {
		sc, m := scaleAndMin(scales, j)
		for i := range 32 {
			q := qs[32*(j/2)+i] >> (4 * (j % 2)) & 15
			out[32*j+i] = d*float32(sc)*float32(q) - dmin*float32(m)
		}
	}
}

func decodeQ5K(b []byte, out []float32) {
	d, dmin, scales, qh, qs := half(b), half(b[2:]), b[4:16], b[16:48], b[48:]
	for j := range 8 {
		sc, m := scaleAndMin(scales, j)
		for i := range 32 {
			q := qs[32*(j/2)+i]>>(4*(j%2))&15 | qh[i]>>j&1<<4
			out[32*j+i] = d*float32(sc)*float32(q) - dmin*float32(m)
		}
	}
}

func decodeQ6K(b []byte, out []float32) {
	ql, qh, scales, d := b[:128], b[128:192], b[192:208], half(b[208:])
	for i := range out {
		h, e := i/128, i%128
		low := ql[64*h+e%64] >> (e / 64 * 4) & 15
		high := qh[32*h+e%32] >> (e / 32 * 2) & 3
		q := int(low) + 16*int(high) - 32
		out[i] = d * float32(int8(scales[i/16])) * float32(q)
	}
}

// nonLinear are the values of the 4-bit codes of IQ4_NL and IQ4_XS.
var nonLinear = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func decodeIQ4NL(b []byte, out []float32) {
	d, qs := half(b), b[2:]
	for i := range 16 {
		out[i] = d * nonLinear[qs[i]&15]
		out[i+16] = d * nonLinear[qs[i]>>4]
	}
}

func decodeIQ4XS(b []byte, out []float32) {
	d, high, low, qs := half(b), binary.LittleEndian.Uint16(b[2:]), b[4:8], b[8:]
	for j := range 8 {
		sc := int(low[j/2]>>(4*(j%2))&15) + 16*int(high>>(2*j)&3) - 32
		dl := d * float32(sc)
		for i := range 16 {
			q := qs[16*j+i]
			out[32*j+i] = dl * nonLinear[q&15]
			out[32*j+i+16] = dl * nonLinear[q>>4]
		}
	}
}

// e2m1 are the values of the 4-bit floats of the OCP Microscaling specification: sign,
// two bits of exponent, one of mantissa.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}

func decodeMXFP4(b []byte, out []float32) {
	d, qs := math.Ldexp(1, int(b[0])-127), b[1:]
	for i := range 16 {
		out[i] = float32(d * float64(e2m1[qs[i]&15]))
		out[i+16] = float32(d * float64(e2m1[qs[i]>>4]))
	}
}
