package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime/interp"
)

// tileDevices are the devices with tile instructions: the emulating one, and this machine if
// it has them.
func tileDevices(t *testing.T) map[string]*Device {
	list := map[string]*Device{"emulated": newDevice(t, Options{EmulateTiles: true, Threads: 1})}
	if d := newDevice(t, Options{Threads: 1}); d.Target().HasTiles() {
		list["machine"] = d
	}
	for name, d := range list {
		if !d.Target().HasTiles() {
			delete(list, name)
		}
	}
	if len(list) == 0 {
		t.Skip("no vectors of 64 bytes")
	}
	return list
}

// Sums of products of tiles have the bits of the interpreter, for all types, partial tiles
// and numbers of pairs, in loops and with two shapes in a program.
func TestTileDotEqualsInterpreter(t *testing.T) {
	var programs []*program.Program
	types := [][2]ir.DType{{ir.U8, ir.U8}, {ir.U8, ir.I8}, {ir.I8, ir.U8}, {ir.I8, ir.I8}, {ir.BF16, ir.BF16}}
	for _, pair := range types {
		for _, shape := range [][2]int{{16, 16}, {16, 8}, {1, 1}, {7, 4}, {13, 16}} {
			for _, n := range []int{1, 3, 6} {
				programs = append(programs, tileProgram(pair[0], pair[1], shape[0], shape[1], n))
			}
		}
	}
	reference := interp.New(interp.Options{Debug: true})
	interpreted, err := reference.Load(t.Context(), programs)
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range tileDevices(t) {
		compiled, err := d.Load(t.Context(), programs)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range programs {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			buffers := map[int][]byte{}
			for _, x := range p.Params {
				b := make([]byte, x.Bytes)
				for k := range b {
					b[k] = byte(r.Uint32())
				}
				if x.Value.Type.Elem == ir.BF16 {
					moderate(b, r)
				}
				buffers[x.Slot] = b
			}
			got, want := runOn(t, d, compiled[i], buffers, nil)[2], runOn(t, reference, interpreted[i], buffers, nil)[2]
			if string(got) != string(want) {
				t.Errorf("%s: %s: sums differ\n%x\n%x", name, p.Name, got[:64], want[:64])
			}
		}
	}
}

// moderate makes numbers of BF16 that are finite, and so are their sums; some lie below the
// least normal number.
func moderate(b []byte, r *rand.Rand) {
	for k := 0; k+1 < len(b); k += 2 {
		exponent := uint16(100 + r.IntN(50))
		if r.IntN(10) == 0 {
			exponent = uint16(r.IntN(70)) // products below the least normal number, and numbers
		}
		bits := uint16(r.Uint32())&0x807f | exponent<<7
		b[k], b[k+1] = byte(bits), byte(bits>>8)
	}
}

// tileProgram sums n pairs in each of two iterations, and once more with another shape.
func tileProgram(x, y ir.DType, rows, words, n int) *program.Program {
	b := program.NewBuilder(fmt.Sprintf("%s %s %d x %d, %d pairs", x, y, rows, words, n))
	b.SetGrid(2)
	const stride, bytes = 80, 4096
	left, right := b.Buffer(0, x, "left", 64, 4*bytes), b.Buffer(1, y, "right", 64, 4*bytes)
	sum, _ := program.TileSum(x, y)
	out := b.Buffer(2, sum, "out", 64, 8*1024)
	b.Access(left, true, false)
	b.Access(right, true, false)
	b.Access(out, false, true)
	b.GridLoop(func(unit *program.Value) {
		for k, w := range []int{words, max(words/2, 1)} {
			array := b.Alloca(sum, program.LocalSpace, 256, 64)
			var pairs []*program.Value
			for i := range n {
				at := b.Index(int64(256 * i / x.Size()))
				pairs = append(pairs, b.PtrAdd(b.PtrAdd(left, b.Mul(unit, b.Index(64))), at), b.PtrAdd(right, at))
			}
			b.TileDot(array, pairs, program.TileShape{Rows: rows, Words: w, StrideA: stride, StrideB: 64 + 16*int64(k)})
			for row := range rows {
				v := b.Load(b.PtrAdd(array, b.Index(int64(16*row))), 16, 64)
				b.Store(b.PtrAdd(out, b.Add(b.Mul(unit, b.Index(512)), b.Index(int64(256*k+16*row)))), v, 64)
			}
		}
	})
	return b.Finish()
}
