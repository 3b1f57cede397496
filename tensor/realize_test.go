package tensor_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/x448/float16"
	"tgc/ir"
	"tgc/tensor"
)

// What is built on a realised tensor starts from its values: the inputs may
// even differ by then.
func TestRealizeKeepsValues(t *testing.T) {
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, []int32{1, 2, 3}, 3)
	double := x.Add(x)
	if _, err := double.Bytes(); err == nil || !strings.Contains(err.Error(), "call Realize") {
		t.Errorf("bytes before Realize: %v", err)
	}
	if err := double.Realize(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := double.AddScalar(1)
	if err := tensor.Realize(t.Context(), next, double, x, next); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of   *tensor.Tensor
		want []int32
	}{{x, []int32{1, 2, 3}}, {double, []int32{2, 4, 6}}, {next, []int32{3, 5, 7}}} {
		if got, err := tensor.Data[int32](c.of); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("got %v, %v, want %v", got, err, c.want)
		}
	}
}

func TestRealizeErrors(t *testing.T) {
	for name, c := range map[string]struct {
		build func(g *tensor.Graph) *tensor.Tensor
		want  string
	}{
		"no values": {func(g *tensor.Graph) *tensor.Tensor { return g.Input("x", ir.F32, 2).Neg() }, `input "x" has no values`},
		"bad":       {func(g *tensor.Graph) *tensor.Tensor { return g.Input("x", ir.F32, 2).Add(g.Input("y", ir.F32, 3)) }, "[2] and [3]"},
		"bytes":     {func(g *tensor.Graph) *tensor.Tensor { return g.FromBytes(ir.F32, make([]byte, 7), 2) }, "7 bytes for f32[2], want 8"},
		"count":     {func(g *tensor.Graph) *tensor.Tensor { return tensor.FromSlice(g, []int8{1, 2, 3}, 2, 2) }, "3 values for i8[2 2], want 4"},
		"symbolic": {func(g *tensor.Graph) *tensor.Tensor {
			return g.Iota(ir.F32, g.Var("n", 1, 8)).Neg()
		}, "n"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.build(tensor.NewGraph()).Realize(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// moved sends values of one Go type through a graph and back.
func moved[T tensor.Element](t *testing.T, dtype ir.DType, values ...T) {
	t.Helper()
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, values, len(values))
	y := x.Flip(0)
	if err := y.Realize(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Data[T](y)
	slices.Reverse(got)
	if err != nil || x.DType() != dtype || !slices.Equal(got, values) {
		t.Errorf("%s: got %v, %v, want %v of %s", x, got, err, values, dtype)
	}
}

func TestElementsOfAllTypes(t *testing.T) {
	moved[float32](t, ir.F32, 1.5, -2)
	moved[float64](t, ir.F64, 1.5, -2e300)
	moved[int8](t, ir.I8, -128, 127)
	moved[int16](t, ir.I16, -32768, 5)
	moved[int32](t, ir.I32, -1, 1<<30)
	moved[int64](t, ir.I64, -1<<63, 7)
	moved[uint8](t, ir.U8, 255, 0)
	moved[uint16](t, ir.U16, 65535, 1)
	moved[uint32](t, ir.U32, 1<<31, 1)
	moved[uint64](t, ir.U64, 1<<63, 1)
	moved(t, ir.Bool, true, false)
	moved(t, ir.F16, float16.Fromfloat32(0.25), float16.Fromfloat32(-3))
}

func TestShortFloatsWiden(t *testing.T) {
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, []float32{1, -0.5, 3}, 3).Cast(ir.BF16)
	if err := x.Realize(t.Context()); err != nil {
		t.Fatal(err)
	}
	wide, err := tensor.Data[float32](x)
	if err != nil || !slices.Equal(wide, []float32{1, -0.5, 3}) {
		t.Errorf("got %v, %v", wide, err)
	}
	bits, err := tensor.Data[uint16](x)
	if err != nil || !slices.Equal(bits, []uint16{0x3f80, 0xbf00, 0x4040}) {
		t.Errorf("got %x, %v", bits, err)
	}
	raw, err := x.Bytes()
	if err != nil || !bytes.Equal(raw, []byte{0x80, 0x3f, 0, 0xbf, 0x40, 0x40}) {
		t.Errorf("got %x, %v", raw, err)
	}
	if _, err := tensor.Data[int32](x); err == nil || !strings.Contains(err.Error(), "bf16[3] is read as i32") {
		t.Errorf("bf16 as i32: %v", err)
	}
}
