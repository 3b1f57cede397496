package cpu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime/cpu/llvmc"
	"tgc/runtime/interp"
)

// dotLinks are the dots that go into one another.
const dotLinks = 9

// dotFactor is a factor of dots: its bits of a mask, and then at most so much of either sign; 0 for all.
type dotFactor struct {
	dtype      ir.DType
	mask, most int64
}

func (f dotFactor) limited(b *program.Builder, v *program.Value) *program.Value {
	if f.mask != 0 {
		v = b.Alu(ir.OpAnd, v, b.Int(v.Type, f.mask))
	}
	if f.most != 0 {
		v = b.Alu(ir.OpMax, b.Alu(ir.OpMin, v, b.Int(v.Type, f.most)), b.Int(v.Type, -f.most))
	}
	return v
}

// dotChain sums products of bytes, one dot after the other in a chain whose middle is stored too; acc starts
// from what is not 0.
func dotChain(x, y dotFactor, lanes int) *program.Program {
	b := program.NewBuilder(fmt.Sprintf("dots %v %v %d", x, y, lanes))
	px := b.Buffer(0, x.dtype, "x", 64, int64(4*lanes*dotLinks))
	py := b.Buffer(1, y.dtype, "y", 64, int64(4*lanes*dotLinks))
	z := b.Buffer(2, ir.I32, "z", 64, int64(8*lanes))
	b.SetGrid(1)
	b.GridLoop(func(*program.Value) {
		acc := b.Int(program.Vector(ir.I32, lanes), 12345)
		for i := range dotLinks {
			at := b.Index(int64(4 * lanes * i))
			acc = b.Dot4(acc, x.limited(b, b.Load(b.PtrAdd(px, at), 4*lanes, 4)), y.limited(b, b.Load(b.PtrAdd(py, at), 4*lanes, 4)))
			if i == dotLinks/2 {
				b.Store(z, acc, 4)
			}
		}
		b.Store(b.PtrAdd(z, b.Index(int64(lanes))), acc, 4)
	})
	return b.Finish()
}

// Dots of bytes of all signs are exact on every level of a CPU, at the ends of what bytes hold too:
// instructions that sum pairs of them in 16 bits saturate.
func TestDots(t *testing.T) {
	var programs []*program.Program
	for _, lanes := range []int{1, 3, 4, 8, 16, 32} {
		for _, signs := range [][2]ir.DType{{ir.U8, ir.U8}, {ir.U8, ir.I8}, {ir.I8, ir.U8}, {ir.I8, ir.I8}} {
			for _, mask := range []int64{0, 15, 63, 127} {
				programs = append(programs, dotChain(dotFactor{dtype: signs[0], mask: mask}, dotFactor{dtype: signs[1]}, lanes))
			}
		}
		for _, most := range []int64{12, 64, 127} { // of signed ones, which -128 is not among
			whole, limited := dotFactor{dtype: ir.I8}, dotFactor{dtype: ir.I8, most: most}
			programs = append(programs, dotChain(whole, limited, lanes), dotChain(limited, whole, lanes), dotChain(limited, limited, lanes),
				dotChain(dotFactor{dtype: ir.U8}, limited, lanes), dotChain(limited, dotFactor{dtype: ir.U8}, lanes))
		}
	}
	r := rand.New(rand.NewPCG(3, 5))
	filled := func(of func(i int) byte) []byte {
		out := make([]byte, 4*32*dotLinks)
		for i := range out {
			out[i] = of(i)
		}
		return out
	}
	random := func(int) byte { return byte(r.Uint32()) }
	same := func(v byte) func(int) byte { return func(int) byte { return v } }
	factors := [][2][]byte{
		{filled(random), filled(random)}, {filled(same(255)), filled(same(128))},
		{filled(same(255)), filled(same(127))}, {filled(same(128)), filled(same(128))},
		{filled(same(127)), filled(same(128))}, {filled(same(0)), filled(same(128))},
	}
	reference := interp.New(interp.Options{Debug: true})
	interpreted, err := reference.Load(t.Context(), programs)
	if err != nil {
		t.Fatal(err)
	}
	for _, options := range []Options{{}, {CPU: "x86-64-v3", Features: llvmc.NoFeatures}, {CPU: "x86-64-v2", Features: llvmc.NoFeatures}} {
		d := newDevice(t, options)
		compiled, err := d.Load(t.Context(), expanded(d, programs))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range programs {
			n := int(p.Params[0].Bytes)
			for k, f := range factors {
				buffers := map[int][]byte{0: f[0][:n], 1: f[1][:n], 2: make([]byte, p.Params[2].Bytes)}
				want := runOn(t, reference, interpreted[i], buffers, nil)[2]
				if got := runOn(t, d, compiled[i], buffers, nil)[2]; !bytes.Equal(got, want) {
					t.Errorf("%s, factors %d, on %s: %x, the interpreter %x", p.Name, k, d.Target().Name, got, want)
				}
			}
		}
	}
}
