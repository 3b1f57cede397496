package tensor_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/grad"
	"tgc/ir"
	"tgc/runtime/devices"
	"tgc/target"
	"tgc/tensor"
)

// The derivative of a sort puts each cotangent where the element was, of equals too, on each device.
func TestDerivativeOfSort(t *testing.T) {
	for _, device := range []string{"interp", "cpu", "cuda:emu"} {
		dev, _, err := devices.Open(t.Context(), device, devices.Options{})
		if err != nil {
			t.Log(device, err)
			continue
		}
		defer dev.Close()
		for _, c := range []sortCase{{3, 1, 1, 1}, {2, 33, 33, 1}, {5, 100, 100, 0}, {5, 100, 7, 0}, {1, 1100, 1100, 1}} {
			shape, random := []int{c.rows, c.n}, rand.New(rand.NewPCG(1, uint64(c.n)))
			if c.axis == 0 {
				shape = []int{c.n, c.rows}
			}
			x, cotangents := make([]float32, c.rows*c.n), make([]float32, c.rows*c.count)
			for i := range x {
				x[i] = float32(random.IntN(c.n))
			}
			for i := range cotangents {
				cotangents[i] = float32(i + 1)
			}
			in := tensor.FromSlice(tensor.NewGraph().On(dev), x, shape...)
			y, at := in.TopK(c.count, c.axis, true)
			by := tensor.FromSlice(in.Graph(), cotangents, y.Extent(0), y.Extent(1))
			dx := grad.Of([]*tensor.Tensor{y}, []*tensor.Tensor{by}, []*tensor.Tensor{in})[0]
			if err := tensor.Realize(t.Context(), dx, at); err != nil {
				t.Fatal(err)
			}
			where, _ := tensor.Data[int32](at)
			got, _ := tensor.Data[float32](dx)
			for i, k := range where {
				j := i/c.count*c.n + int(k)
				if c.axis == 0 {
					j = int(k)*c.rows + i%c.rows
				}
				if got[j] != cotangents[i] {
					t.Fatalf("%s, %v: derivative %d is %v, want %v", device, c, j, got[j], cotangents[i])
				}
				got[j] = 0
			}
			for j, v := range got {
				if v != 0 {
					t.Fatalf("%s, %v: derivative %d is %v, want 0", device, c, j, v)
				}
			}
		}
	}
}

// On a GPU no kernel of it looks for each element among all of its row.
func TestDerivativeOfSortOnGPU(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 64, 1000)
	y, _ := x.Sort(1, false)
	g.Output("dx", grad.Of([]*tensor.Tensor{y}, []*tensor.Tensor{g.Input("g", ir.F32, 64, 1000)}, []*tensor.Tensor{x})[0])
	c, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range c.Kernels {
		if strings.HasPrefix(k.Name, "reduce") {
			t.Errorf("%s: %s", k.Name, k.Why)
		}
	}
}
