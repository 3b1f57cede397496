package engine_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/tensor"
)

// On a GPU products of integers of any bits take matrix instructions, and wrap as they do elsewhere.
func TestIntegerProductsOnGPU(t *testing.T) {
	gpu, host := openEmulated(t)
	product := func(m, k, n int) func(x, w makeInput) *tensor.Tensor {
		return func(x, w makeInput) *tensor.Tensor { return x("x", m, k).MatMul(w("w", k, n)) }
	}
	conv := func(channels, side, outputs int, o tensor.ConvOptions) func(x, w makeInput) *tensor.Tensor {
		return func(x, w makeInput) *tensor.Tensor {
			return x("x", 1, channels, side, side).Conv(w("w", outputs, channels, 3, 3), nil, o)
		}
	}
	for name, c := range map[string]struct {
		x, w  ir.DType
		build func(x, w makeInput) *tensor.Tensor
		few   bool // too few for matrix instructions
	}{
		"i32":          {ir.I32, ir.I32, product(128, 160, 128), false},
		"u32":          {ir.U32, ir.U32, product(64, 128, 192), false},
		"i32, odd":     {ir.I32, ir.I32, product(133, 147, 131), false},
		"u32, odd":     {ir.U32, ir.U32, product(37, 145, 165), false},
		"i32 of 35":    {ir.I32, ir.I32, product(35, 35, 35), false},
		"i32 of 19":    {ir.I32, ir.I32, product(19, 19, 19), true},
		"i32, 2 rows":  {ir.I32, ir.I32, product(2, 256, 259), false},
		"i16 and i32":  {ir.I16, ir.I32, func(x, w makeInput) *tensor.Tensor { return x("x", 67, 130).Cast(ir.I32).MatMul(w("w", 130, 165)) }, false},
		"i32 and u8":   {ir.I32, ir.U8, func(x, w makeInput) *tensor.Tensor { return x("x", 130, 160).MatMul(w("w", 160, 195).Cast(ir.I32)) }, false},
		"i32, windows": {ir.I32, ir.I32, conv(48, 21, 40, tensor.ConvOptions{Padding: []int{1}}), false},
		"u32, windows": {ir.U32, ir.U32, conv(35, 23, 33, tensor.ConvOptions{Stride: []int{2}}), false},
	} {
		got, matrix := integersOf(t, gpu, c.x, c.w, c.build)
		want, _ := integersOf(t, host, c.x, c.w, c.build)
		if matrix == c.few {
			t.Errorf("%s: matrix instructions %v", name, matrix)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v.., want %v..", name, got[:4], want[:4])
		}
	}
}

// integersOf runs a program on random bits.
func integersOf(t *testing.T, dev runtime.Device, x, w ir.DType, build func(x, w makeInput) *tensor.Tensor) (values []byte, matrix bool) {
	t.Helper()
	g, sizes := tensor.NewGraph(), make(map[string]int)
	input := func(dtype ir.DType) makeInput {
		return func(name string, shape ...int) *tensor.Tensor {
			sizes[name] = dtype.Size()
			for _, n := range shape {
				sizes[name] *= n
			}
			return g.Input(name, dtype, shape...)
		}
	}
	g.Output("y", build(input(x), input(w)))
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, n := range sizes {
		rng, bits := rand.New(rand.NewPCG(uint64(n), 7)), make([]byte, n)
		for i := range bits {
			bits[i] = byte(rng.Uint32())
		}
		if err := f.Write(t.Context(), name, bits); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, k := range f.Step().Compiled.Kernels {
		matrix = matrix || strings.Contains(k.Plan.String(), "MMA")
	}
	if values, err = f.Read(t.Context(), "y"); err != nil {
		t.Fatal(err)
	}
	return values, matrix
}
