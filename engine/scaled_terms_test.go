package engine_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/packed"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// termRows and the others are enough for a GPU of few multiprocessors to scale activations to terms of f16.
const (
	termRows    = 64
	termOutputs = 1024
	termPoints  = 2048
)

// Prompts of packed weights are as near to the interpreter's values where activations are stored as two scaled terms of f16 as they
// were as floats: with scales of groups that codes are joined with (Q4_K, Q3_K), with those that would be too large (Q6_K), without any (Q8_0),
// and in rows of which one number is far larger than all others and counts nothing.
func TestScaledTermsOnGPU(t *testing.T) {
	gpu, _, err := devices.Open(t.Context(), "cuda:emu:sm_87", devices.Options{})
	if err != nil {
		t.Fatal(err)
	}
	host := interp.New(interp.Options{})
	t.Cleanup(func() { gpu.Close(); host.Close() })
	for _, name := range []string{"Q8_0", "Q6_K", "Q4_K", "Q3_K"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, why := promptOf(t, gpu, name)
			want, _ := promptOf(t, host, name)
			if !strings.Contains(why, "terms of f16") || !strings.Contains(why, "STAGE s0; STAGE s1") {
				t.Errorf("no terms in panels: %s", why)
			}
			for row := range termRows {
				var square, size float64
				for i := range termOutputs {
					w := float64(want[row*termOutputs+i])
					d := float64(got[row*termOutputs+i]) - w
					square, size = square+d*d, size+w*w
				}
				if !(square <= 1e-11*size) {
					t.Errorf("row %d: off by %g of %g", row, square, size)
				}
			}
		})
	}
}

// promptOf multiplies random rows with weights of a type, of which those of Q8_0 are 0 for the first point: there
// every other row has a number some 1e7 to 1e8 times as large as the others.
func promptOf(t *testing.T, dev runtime.Device, name string) (values []float32, why string) {
	t.Helper()
	format, _ := packed.Lookup(name)
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, termRows, termPoints).MulScalar(0.5).Contiguous()
	g.Output("y", x.Linear(g.Packed("w", name, termOutputs, termPoints)))
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := rand.New(rand.NewPCG(3, 9))
	rows := randomFloats(r, termRows*termPoints)
	weights := packed.RandomBlocks(format, termOutputs*termPoints/format.BlockElems, r)
	if name == "Q8_0" {
		blocks := slices.Chunk(weights, format.BlockBytes)
		i := 0
		for block := range blocks {
			if i%(termPoints/format.BlockElems) == 0 {
				block[2] = 0
			}
			i++
		}
		for row := 1; row < termRows; row += 2 {
			rows[row*termPoints] *= float32(row) * 3e6
		}
	}
	if err := tensor.Set(t.Context(), f, "x", rows); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(t.Context(), "w", weights); err != nil {
		t.Fatal(err)
	}
	values = run(t, f)
	var b strings.Builder
	if err := f.Step().Compiled.Explain(&b); err != nil {
		t.Fatal(err)
	}
	for _, k := range f.Step().Compiled.Kernels {
		b.WriteString(k.Plan.String() + "\n")
	}
	return values, b.String()
}
