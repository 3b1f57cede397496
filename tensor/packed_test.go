package tensor_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/packed"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/runtime/interp"
	"tgc/tensor"
)

const packedRows, packedColumns = 24, 512

// packedProduct compiles y = W x on a device and runs it with some blocks as W.
func packedProduct(t *testing.T, dev runtime.Device, blocks []byte) (*tensor.Function, []float32) {
	t.Helper()
	g := tensor.NewGraph()
	w := g.Packed("w", "Q6_K", packedRows, packedColumns)
	g.Output("y", g.Input("x", ir.F32, packedColumns).Linear(w))
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	x := make([]float32, packedColumns)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	if err := f.Write(t.Context(), "w", blocks); err != nil {
		t.Fatal(err)
	}
	if err := tensor.Set(t.Context(), f, "x", x); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	y, err := tensor.Get[float32](t.Context(), f, "y")
	if err != nil {
		t.Fatal(err)
	}
	return f, y
}

// Packed weights of a compiled function lie as suits its device, in planes on a GPU,
// and are written and read as blocks everywhere.
func TestPackedWeightsOfDevices(t *testing.T) {
	format, _ := packed.Lookup("Q6_K")
	blocks := packed.RandomBlocks(format, packedRows*packedColumns/format.BlockElems, rand.New(rand.NewPCG(1, 2)))
	_, want := packedProduct(t, interp.New(interp.Options{}), blocks)

	dev, _, err := devices.Open(t.Context(), "cuda:emu", devices.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	f, got := packedProduct(t, dev, blocks)
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 1e-5*(1+math.Abs(float64(want[i])))) {
			t.Errorf("row %d: %g, want %g", i, got[i], want[i])
		}
	}
	back, err := f.Read(t.Context(), "w")
	if err != nil || !bytes.Equal(back, blocks) {
		t.Errorf("the weights read back as other bytes (%v)", err)
	}
	compiled := f.Step().Compiled
	host := int64(len(blocks))
	// Two scales of a row take 4 bytes, but a row of a plane starts at a multiple of 16.
	if got, want := compiled.Layout(f.Buffers()[0].ID).Bytes(host), host+packedRows*12; got != want {
		t.Errorf("the weights take %d bytes, want %d in planes", got, want)
	}
	if err := f.Write(t.Context(), "w", blocks[1:]); err == nil {
		t.Error("blocks of a wrong size were written")
	}
}
