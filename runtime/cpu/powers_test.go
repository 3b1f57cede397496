package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tgc/internal/programtest"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime/cpu/llvmc"
	"tgc/runtime/interp"
)

// 2^x has the bits of the interpreter's everywhere: where it is no normal number, none or 0, too, however it is scaled.
func TestPowersOfTwo(t *testing.T) {
	for _, c := range []struct {
		dtype ir.DType
		most  float64 // beyond it all is infinite, or 0
	}{{ir.F32, 170}, {ir.F64, 1100}} {
		t.Run(c.dtype.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 1))
			values := []float64{0, math.Copysign(0, -1), 1, 0.5, -0.5, math.Inf(1), math.Inf(-1), math.NaN(), c.most, -c.most}
			for range 16 * 512 {
				values = append(values, c.most*(2*r.Float64()-1))
			}
			values = values[:16*512]
			size := c.dtype.Size()
			text := fmt.Sprintf(`program "powers"
param %%0:*%[1]s buffer slot 0 name "x" align 64 bytes %[2]d read
param %%1:*%[1]s buffer slot 1 name "y" align 64 bytes %[2]d write
grid 512
%%2:i64 = const 16
gridloop %%3:i64 {
  %%4:i64 = mul %%3 %%2
  %%5:*%[1]s = ptradd %%0 %%4
  %%6:%[1]sx16 = load %%5 align 64
  %%7:%[1]sx16 = exp2 %%6
  %%8:*%[1]s = ptradd %%1 %%4
  store %%8 %%7 align 64
}
`, c.dtype, len(values)*size)
			p, err := program.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			buffers := map[int][]byte{0: []byte(ir.EncodeTable(c.dtype, values)), 1: make([]byte, len(values)*size)}
			reference := interp.New(interp.Options{})
			interpreted, err := reference.Load(t.Context(), []*program.Program{p})
			if err != nil {
				t.Fatal(err)
			}
			want := runOn(t, reference, interpreted[0], buffers, nil)[1]
			for _, options := range []Options{{}, {CPU: "x86-64-v3", Features: llvmc.NoFeatures}} {
				d := newDevice(t, options)
				compiled, err := d.Load(t.Context(), expanded(d, []*program.Program{p}))
				if err != nil {
					t.Fatal(err)
				}
				got := runOn(t, d, compiled[0], buffers, nil)[1]
				if lane, same := programtest.SameLanes(c.dtype, got, want); !same {
					t.Errorf("%s: 2^%v is %x, the interpreter's %x", d.Target().Name, values[lane], got[lane*size:(lane+1)*size], want[lane*size:(lane+1)*size])
				}
			}
		})
	}
}
