package ptx

import (
	"bytes"
	"fmt"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime/interp"
)

// Threads of a warp exchange values of every type, whole registers or parts of them,
// as the interpreter does.
func TestShufflesOfEveryType(t *testing.T) {
	for _, d := range []ir.DType{ir.I8, ir.U8, ir.I16, ir.F16, ir.BF16, ir.I32, ir.U32, ir.F32, ir.I64, ir.U64, ir.F64, ir.Bool} {
		for _, lanes := range []int{1, 2, 4} {
			t.Run(fmt.Sprint(program.Vector(d, lanes)), func(t *testing.T) {
				const threads = 64
				size := lanes * d.Size()
				b := program.NewBuilder("shuffle")
				x := b.Buffer(0, d, "x", d.Size(), int64(threads*size))
				y := b.Buffer(1, d, "y", d.Size(), int64(threads*size))
				b.Access(x, true, false)
				b.Access(y, false, true)
				b.SetGrid(1)
				b.SetBlock(threads)
				b.GridLoop(func(*program.Value) {
					at := b.Mul(b.Cast(b.ThreadIndex(0), ir.I64), b.Index(int64(lanes)))
					v := b.Load(b.PtrAdd(x, at), lanes, d.Size())
					b.Store(b.PtrAdd(y, at), b.ShuffleLane(v, b.Int(program.Scalar(ir.I32), 5)), d.Size())
				})
				p := b.Finish()
				in := make([]byte, threads*size)
				for i := range in {
					in[i] = byte(i*37 + i/7)
				}
				want, got := make([]byte, len(in)), make([]byte, len(in))
				if err := interp.RunProgram(p, []interp.Arg{{Bytes: in}, {Bytes: want}}, 0, 1); err != nil {
					t.Fatal(err)
				}
				emulate(t, p, "sm_90", Options{}, map[int][]byte{0: in, 1: got}, nil, 1)
				if !bytes.Equal(got, want) {
					t.Errorf("got %x, want %x\n%s", got, want, program.Print(p))
				}
			})
		}
	}
}
