package ptx

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
)

// An array that lives in registers is what memory would be: pointers into it move by
// constants, from the start or from where another one points, on and back, and what is
// loaded before a store stays.
func TestArraysInRegisters(t *testing.T) {
	const count, steps = 12, 40
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := program.NewBuilder("array")
		y := b.Buffer(0, ir.F32, "y", 16, 4*count*steps)
		b.Access(y, false, true)
		b.SetGrid(1)
		b.SetBlock(1)
		var want []float64
		b.GridLoop(func(*program.Value) {
			pointers, places := []*program.Value{b.Alloca(ir.F32, program.LocalSpace, count, 16)}, []int64{0}
			held := make([]float64, count)
			store := func(p *program.Value, at int64, v []float64) {
				b.Store(p, b.FloatLanes(ir.F32, v...), 4)
				copy(held[at:], v)
			}
			store(pointers[0], 0, slices.Repeat([]float64{-1}, count))
			var loads []*program.Value
			for i := range steps {
				from := r.IntN(len(pointers))
				at := r.Int64N(count)
				p := b.PtrAdd(pointers[from], b.Index(at-places[from]))
				pointers, places = append(pointers, p), append(places, at)
				lanes := 1 + r.Int64N(min(4, count-at))
				if i%2 == 0 {
					v := make([]float64, lanes)
					for k := range v {
						v[k] = float64(i*8 + k)
					}
					store(p, at, v)
					continue
				}
				loads = append(loads, b.Load(p, int(lanes), 4))
				want = append(want, held[at:at+lanes]...)
			}
			at := int64(0)
			for _, v := range loads {
				b.Store(b.PtrAdd(y, b.Index(at)), v, 4)
				at += int64(v.Type.Lanes)
			}
		})
		out := make([]byte, 4*count*steps)
		emulate(t, b.Finish(), architectures[seed%3], Options{}, map[int][]byte{0: out}, nil, seed)
		got := make([]float64, len(want))
		for i := range got {
			got[i] = float64(floatAt(out, i))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}
