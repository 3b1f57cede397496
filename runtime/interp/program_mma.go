package interp

import (
	"fmt"
	"unsafe"

	"tgc/ir"
	"tgc/ir/program"
)

// mma computes a matrix product per warp in float64 (or integers), rounded once.
func (m *machine) mma(in *program.Instr) (func(), error) {
	acc, a, b := in.Args[0].Type, in.Args[1].Type, in.Args[2].Type
	s := program.MmaOf(acc, a, b)
	if s == nil || m.threads%warpThreads != 0 {
		return nil, fmt.Errorf("no matrix product of %s, %s, %s by %d threads", acc, a, b, m.threads)
	}
	x, y, z := m.reg(in.Args[1]).data, m.reg(in.Args[2]).data, m.reg(in.Args[0]).data
	out := m.define(in.Result).data
	word := 4 / s.A.Size()
	return func() {
		for w := 0; w < m.threads; w += warpThreads {
			if !m.block.active[w] {
				continue
			}
			A, B := make([]float64, s.M*s.K), make([]float64, s.K*s.N)
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
					A[row*s.K+k] = number64(s.A, x[(w+t)*a.Lanes*s.A.Size()+i*s.A.Size():])
				}
				for i := range b.Lanes {
					k := q*word + i%word + i/word*4*word
					B[k*s.N+g] = number64(s.B, y[(w+t)*b.Lanes*s.B.Size()+i*s.B.Size():])
				}
			}
			for t := range warpThreads {
				for i := range acc.Lanes {
					row, col := t/4+i/2*8, t%4*2+i%2
					at := ((w+t)*acc.Lanes + i) * 4
					sum := number64(s.Acc, z[at:])
					for k := range s.K {
						sum += A[row*s.K+k] * B[k*s.N+col]
					}
					if s.Acc == ir.F32 {
						*(*float32)(unsafe.Pointer(&out[at])) = float32(sum)
					} else {
						*(*int32)(unsafe.Pointer(&out[at])) = int32(int64(sum))
					}
				}
			}
		}
	}, nil
}

func number64(d ir.DType, b []byte) float64 {
	v := ir.DecodeTable(d, string(b[:d.Size()]), 0)
	if d.IsFloat() {
		return v.F
	}
	return float64(v.I)
}
