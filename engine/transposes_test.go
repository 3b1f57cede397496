package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// What is read along another axis than it is stored has lanes along both, whatever the
// extents, and its values stay what they are.
func TestTransposes(t *testing.T) {
	for _, c := range []struct {
		shape, order []int
		plan         string // of AVX-512
	}{
		{[]int{35, 37}, []int{1, 0}, "VECTOR s1 16; VECTOR s0 4; ROLL s0 2; FMA"},
		{[]int{64, 32}, []int{1, 0}, "VECTOR s1 16; VECTOR s0 4; ROLL s0 4; FMA"},
		{[]int{3, 101}, []int{1, 0}, "VECTOR s1 3; VECTOR s0 4; ROLL s0 2; FMA"},
		{[]int{10, 50}, []int{1, 0}, "VECTOR s1 10; VECTOR s0 4; ROLL s0 4; FMA"},
		{[]int{5, 19, 33}, []int{2, 1, 0}, "VECTOR s2 5; VECTOR s0 4; ROLL s0 3; FMA"},
		{[]int{5, 19, 33}, []int{0, 2, 1}, "VECTOR s2 16; VECTOR s1 4; ROLL s1 3; FMA"},
		{[]int{7, 5, 33}, []int{1, 2, 0}, "VECTOR s1 7; VECTOR s0 4; ROLL s0 3; FMA"},
	} {
		for _, name := range []string{"llvm:x86-64-v4", "llvm:x86-64-v3"} {
			for _, dtype := range []ir.DType{ir.F32, ir.F64, ir.U8} {
				t.Run(fmt.Sprint(name, " ", dtype, c.shape, c.order), func(t *testing.T) {
					plan := c.plan
					if name != "llvm:x86-64-v4" || dtype != ir.F32 {
						plan = ""
					}
					transposed(t, name, dtype, c.shape, c.order, plan)
				})
			}
		}
	}
}

// transposed moves random bytes on the interpreter.
func transposed(t *testing.T, name string, dtype ir.DType, shape, order []int, plan string) {
	desc, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", dtype, shape...).Permute(order...).Contiguous())
	f, err := tensor.Compile(t.Context(), g, interp.New(interp.Options{Target: desc}), engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if kernels := f.Step().Compiled.Kernels; len(kernels) != 1 {
		t.Fatalf("%d kernels, want 1", len(kernels))
	} else if got := kernels[0].Plan.String(); plan != "" && got != plan || strings.Count(got, "VECTOR") != 2 {
		t.Errorf("plan %s, want %s", got, plan)
	}
	size, n := dtype.Size(), 1
	for _, extent := range shape {
		n *= extent
	}
	x := make([]byte, n*size)
	for i := range x {
		x[i] = byte(i * i % 63) // no float is NaN
	}
	if err := errors.Join(f.Write(t.Context(), "x", x), f.Run(t.Context(), nil)); err != nil {
		t.Fatal(err)
	}
	y, err := f.Read(t.Context(), "y")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		point, rest := make([]int, len(shape)), i
		for k := len(order) - 1; k >= 0; k-- {
			point[order[k]], rest = rest%shape[order[k]], rest/shape[order[k]]
		}
		from := 0
		for k, c := range point {
			from = from*shape[k] + c
		}
		if got, want := y[i*size:(i+1)*size], x[from*size:(from+1)*size]; !bytes.Equal(got, want) {
			t.Fatalf("element %d is %x, want %x", i, got, want)
		}
	}
}

// A product with a transposed matrix has lanes along its columns where sums are short or many
// rows read them, else along the sums.
func TestTurnedColumns(t *testing.T) {
	type product struct {
		target      string
		rows, terms int
	}
	for c, plan := range map[product]string{
		{"llvm:x86-64-v4", 512, 64}:   "STAGE s1; VECTOR s1 16; UPCAST s1 4; UPCAST s0 6; ROLL s0 43; UNROLL r0 4; FMA",
		{"llvm:x86-64-v3", 512, 1024}: "STAGE s1; VECTOR s1 8; UPCAST s1 2; UPCAST s0 6; ROLL s0; UNROLL r0 4; FMA",
		{"llvm:x86-64-v4", 512, 1024}: "UPCAST s1 5; UPCAST s0 4; ROLL s0 8; ROLL s1; VECTOR r0 16; FMA",
		{"llvm:x86-64-v4", 30, 1024}:  "UPCAST s0 5; UPCAST s1 4; ROLL s1 8; ROLL s0; VECTOR r0 16; FMA",
	} {
		desc, err := target.Parse(c.target)
		if err != nil {
			t.Fatal(err)
		}
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, c.rows, c.terms).MatMul(g.Input("w", ir.F32, 512, c.terms).Transpose(0, 1)))
		f, err := tensor.Compile(t.Context(), g, interp.New(interp.Options{Target: desc}), engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Step().Compiled.Kernels[0].Plan.String(); got != plan {
			t.Errorf("%v: plan %s, want %s", c, got, plan)
		}
		f.Close()
	}
}
