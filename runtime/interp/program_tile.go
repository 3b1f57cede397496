package interp

import (
	"encoding/binary"
	"math"

	"tgc/ir"
	"tgc/ir/program"
)

// tileDot computes a TileDot as program.TileShape says, to the bit.
func (m *machine) tileDot(in *program.Instr) func() {
	s := &in.Tile
	sums := m.reg(in.Args[0]).ptrs
	elem := in.Args[0].Type.Elem
	return func() {
		for t, on := range m.block.active {
			if !on {
				continue
			}
			total := make([]uint32, s.Rows*program.TileColumns)
			for i := 1; i < len(in.Args); i += 2 {
				x := m.span(in, m.reg(in.Args[i]).ptrs[t], s.SpanA(), t, false)
				y := m.span(in, m.reg(in.Args[i+1]).ptrs[t], s.SpanB(), t, false)
				if x == nil || y == nil {
					return
				}
				for row := range s.Rows {
					for column := range program.TileColumns {
						at := &total[row*program.TileColumns+column]
						a, b := x[int64(row)*s.StrideA:], y[column*4:]
						if elem == ir.F32 {
							*at = math.Float32bits(flushed(math.Float32frombits(*at) + pairDot(a, b, s)))
						} else {
							*at += byteDot(a, b, s, in.Args[i].Type.Elem, in.Args[i+1].Type.Elem)
						}
					}
				}
			}
			out := m.span(in, sums[t], s.SumBytes(), t, true)
			if out == nil || m.fault != nil {
				return
			}
			for i, v := range total {
				binary.LittleEndian.PutUint32(out[4*i:], v)
			}
		}
	}
}

// byteDot is a sum of products of bytes.
func byteDot(a, b []byte, s *program.TileShape, typeA, typeB ir.DType) (sum uint32) {
	widened := func(x byte, d ir.DType) int32 {
		if d == ir.I8 {
			return int32(int8(x))
		}
		return int32(x)
	}
	for k := range s.Words {
		for j := range 4 {
			sum += uint32(widened(a[4*k+j], typeA) * widened(b[int64(k)*s.StrideB+int64(j)], typeB))
		}
	}
	return sum
}

// pairDot is a sum of products of pairs of BF16.
func pairDot(a, b []byte, s *program.TileShape) float32 {
	var sums [2]float32
	for k := range s.Words {
		for j := range sums {
			x := flushed(math.Float32frombits(uint32(binary.LittleEndian.Uint16(a[4*k+2*j:])) << 16))
			y := flushed(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[int64(k)*s.StrideB+int64(2*j):])) << 16))
			sums[j] = flushed(sums[j] + flushed(x*y))
		}
	}
	return flushed(sums[0] + sums[1])
}

// flushed is x, or zero in place of a number below the least normal one.
func flushed(x float32) float32 {
	if bits := math.Float32bits(x); bits&(0xff<<23) == 0 {
		return math.Float32frombits(bits & (1 << 31))
	}
	return x
}
