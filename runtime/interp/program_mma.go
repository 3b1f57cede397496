package interp

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/x448/float16"

	"tgc/ir"
	"tgc/ir/program"
)

// mma computes a matrix product per warp in float64 (or integers), rounded once.
func (m *machine) mma(in *program.Instr) (func(), error) {
	acc, a, b := in.Args[0].Type, in.Args[1].Type, in.Args[2].Type
	s := program.MmaOf(acc, a, b)
	if s == nil || m.block.threads%warpThreads != 0 {
		return nil, fmt.Errorf("no matrix product of %s, %s, %s by %d threads", acc, a, b, m.threads)
	}
	x, y, z := m.reg(in.Args[1]).data, m.reg(in.Args[2]).data, m.reg(in.Args[0]).data
	out := m.define(in.Result).data
	word, size := s.Word(), s.Acc.Size()
	readA, readB, readAcc := readerOf(s.A), readerOf(s.B), readerOf(s.Acc)
	A, B := make([]float64, s.M*s.K), make([]float64, s.N*s.K) // rows of A, columns of B
	return func() {
		for w := 0; w < m.threads; w += warpThreads {
			if !m.block.active[w] {
				continue
			}
			for t := range warpThreads {
				g, q := t/4, t%4
				for i := range a.Lanes {
					j := i / word
					row, k := g, q*word+i%word
					if s.M == 16 {
						row, k = g+8*(j%2), k+j/2*4*word
					} else {
						k += j * 4 * word
					}
					A[row*s.K+k] = readA(x[(w+t)*a.Lanes*s.A.Size()+i*s.A.Size():])
				}
				for i := range b.Lanes {
					k := q*word + i%word + i/word*4*word
					B[g*s.K+k] = readB(y[(w+t)*b.Lanes*s.B.Size()+i*s.B.Size():])
				}
			}
			for t := range warpThreads {
				for i := 0; i < acc.Lanes; i += 2 { // two columns at once: the sums do not wait for each other
					row, col := t/4+i/2*8, t%4*2
					at := ((w+t)*acc.Lanes + i) * size
					sum0, sum1 := readAcc(z[at:]), readAcc(z[at+size:])
					left, right := B[col*s.K:(col+1)*s.K], B[(col+1)*s.K:(col+2)*s.K]
					for k, v := range A[row*s.K : (row+1)*s.K] {
						sum0 += v * left[k]
						sum1 += v * right[k]
					}
					for j, sum := range [2]float64{sum0, sum1} {
						switch p := unsafe.Pointer(&out[at+size*j]); s.Acc {
						case ir.F64:
							*(*float64)(p) = sum
						case ir.F32:
							*(*float32)(p) = float32(sum)
						default:
							*(*int32)(p) = int32(int64(sum))
						}
					}
				}
			}
		}
	}, nil
}

// readerOf reads the first number of some bytes.
func readerOf(d ir.DType) func(b []byte) float64 {
	switch d {
	case ir.F64:
		return func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
	case ir.F32:
		return func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }
	case ir.F16:
		return func(b []byte) float64 { return float64(float16.Frombits(binary.LittleEndian.Uint16(b)).Float32()) }
	case ir.I8:
		return func(b []byte) float64 { return float64(int8(b[0])) }
	case ir.I32:
		return func(b []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(b))) }
	}
	return func(b []byte) float64 {
		v := ir.DecodeTable(d, string(b[:d.Size()]), 0)
		if d.IsFloat() {
			return v.F
		}
		return float64(v.I)
	}
}
