package tensor_test

import (
	"math"
	"slices"
	"testing"

	"tgc/ir"
	"tgc/tensor"
)

// onDevice is a graph on the device under test.
func onDevice(t *testing.T) *tensor.Graph { return tensor.NewGraph().On(openDevice(t)) }

// realised computes a tensor and reads it.
func realised[T tensor.Element](t *testing.T, x *tensor.Tensor) []T {
	t.Helper()
	if err := x.Realize(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Data[T](x)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// grid pairs every value with every other.
func grid[T tensor.Element](g *tensor.Graph, values []T) (x, y *tensor.Tensor) {
	return tensor.FromSlice(g, values, len(values), 1), tensor.FromSlice(g, values, 1, len(values))
}

// corners are numbers at which functions of two numbers have cases of their own.
var corners = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 2, -2, 3, -3, 0.5, -0.5, 2.5, -2.5, 7, -7.75, 1e-30, -1e-30, 3e38, -3e38,
	1e-45, 16777216, 16777217, -33554433, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
}

// Functions of two floats have C's answers on all pairs of corners, quotients
// up to 2^270 and more included: those of fmod are exact.
func TestCornersOfTwoFloats(t *testing.T) {
	g := onDevice(t)
	x, y := grid(g, corners)
	for _, c := range []struct {
		name  string
		build func(x, y *tensor.Tensor) *tensor.Tensor
		want  func(x, y float64) float64
		rel   float64
	}{
		{"fmod", (*tensor.Tensor).TruncMod, math.Mod, 0},
		{"mod", (*tensor.Tensor).FloorMod, floorMod, 0x1p-24},
		{"pow", (*tensor.Tensor).Pow, math.Pow, 0x1p-23},
		{"atan2", (*tensor.Tensor).Atan2, math.Atan2, 0x1p-21},
		{"max", (*tensor.Tensor).Maximum, func(x, y float64) float64 { return max(x, y) }, 0},
		{"min", (*tensor.Tensor).Minimum, func(x, y float64) float64 { return min(x, y) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := realised[float32](t, c.build(x, y))
			for i, a := range corners {
				for j, b := range corners {
					v, want := got[i*len(corners)+j], c.want(float64(a), float64(b))
					if !near(float64(v), want, c.rel) {
						t.Errorf("%s(%v, %v): got %v, want %v", c.name, a, b, v, float32(want))
					}
				}
			}
		})
	}
}

func floorMod(x, y float64) float64 {
	rest := math.Mod(x, y)
	if rest != 0 && (rest < 0) != (y < 0) {
		rest += y
	}
	return rest
}

// near compares with a float64, which rounds to f32 first.
func near(got, want, rel float64) bool {
	want = float64(float32(want))
	if got != got || want != want || math.IsInf(got, 0) || math.IsInf(want, 0) {
		return got == want || got != got && want != want
	}
	return math.Abs(got-want) <= rel*math.Abs(want)+0x1p-149*min(1, rel*1e9)
}

// Comparisons know NaN, and tell no zero from the other.
func TestCornersOfComparisons(t *testing.T) {
	g := onDevice(t)
	x, y := grid(g, corners)
	for _, c := range []struct {
		name  string
		build func(x, y *tensor.Tensor) *tensor.Tensor
		want  func(x, y float32) bool
	}{
		{"lt", (*tensor.Tensor).Lt, func(x, y float32) bool { return x < y }},
		{"le", (*tensor.Tensor).Le, func(x, y float32) bool { return x <= y }},
		{"gt", (*tensor.Tensor).Gt, func(x, y float32) bool { return x > y }},
		{"ge", (*tensor.Tensor).Ge, func(x, y float32) bool { return x >= y }},
		{"eq", (*tensor.Tensor).Eq, func(x, y float32) bool { return x == y }},
		{"ne", (*tensor.Tensor).Ne, func(x, y float32) bool { return x != y }},
		{"and", (*tensor.Tensor).LogicalAnd, func(x, y float32) bool { return x != 0 && y != 0 }},
		{"xor", (*tensor.Tensor).LogicalXor, func(x, y float32) bool { return (x != 0) != (y != 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := realised[bool](t, c.build(x, y))
			for i, a := range corners {
				for j, b := range corners {
					if v := got[i*len(corners)+j]; v != c.want(a, b) {
						t.Errorf("%s(%v, %v) is %v", c.name, a, b, v)
					}
				}
			}
		})
	}
}

// Bytes: every pair of operands, signed and unsigned.
func TestAllPairsOfBytes(t *testing.T) {
	allPairs(t, "i8", func(i int) int8 { return int8(i) })
	allPairs(t, "u8", func(i int) uint8 { return uint8(i) })
}

func allPairs[T int8 | uint8](t *testing.T, name string, value func(i int) T) {
	values := make([]T, 256)
	for i := range values {
		values[i] = value(i)
	}
	g := onDevice(t)
	x, y := grid(g, values)
	for _, c := range []struct {
		op      string
		build   func(x, y *tensor.Tensor) *tensor.Tensor
		divides bool
		want    func(x, y int) int
	}{
		{"floordiv", (*tensor.Tensor).FloorDiv, true, func(x, y int) int { return (x - floorModInt(x, y)) / y }},
		{"mod", (*tensor.Tensor).FloorMod, true, floorModInt},
		{"truncdiv", (*tensor.Tensor).TruncDiv, true, func(x, y int) int { return x / y }},
		{"fmod", (*tensor.Tensor).TruncMod, true, func(x, y int) int { return x % y }},
		{"max", (*tensor.Tensor).Maximum, false, func(x, y int) int { return max(x, y) }},
		{"min", (*tensor.Tensor).Minimum, false, func(x, y int) int { return min(x, y) }},
		{"mul", (*tensor.Tensor).Mul, false, func(x, y int) int { return x * y }},
		{"pow", (*tensor.Tensor).Pow, false, powInt},
	} {
		t.Run(name+" "+c.op, func(t *testing.T) {
			got := realised[T](t, c.build(x, y))
			for i, v := range got {
				a, b := values[i/256], values[i%256]
				want := T(0) // of a division by 0
				if b != 0 || !c.divides {
					want = T(c.want(int(a), int(b)))
				}
				if v != want {
					t.Fatalf("%s(%d, %d): got %d, want %d", c.op, a, b, v, want)
				}
			}
		})
	}
}

func floorModInt(x, y int) int { return ((x % y) + y) % y }

// powInt is x^y modulo 2^8, which is enough of it; 1/x^-y rounded to zero for
// negative y.
func powInt(x, y int) int {
	switch {
	case y < 0 && x == -1:
		return 1 - 2*(-y%2)
	case y < 0 && x != 1:
		return 0
	}
	v := 1
	for range max(y, -y) {
		v = v * x & 0xff
	}
	return v
}

// Reading words as others and back changes nothing, in either order of sizes.
func TestBitcastSizes(t *testing.T) {
	g := onDevice(t)
	x := tensor.FromSlice(g, []uint32{0x04030201, 0x80fffe7f}, 1, 2)
	bytes := x.Bitcast(ir.U8)
	if got, want := realised[uint8](t, bytes), []uint8{1, 2, 3, 4, 0x7f, 0xfe, 0xff, 0x80}; !slices.Equal(got, want) {
		t.Errorf("as bytes: %x, want %x", got, want)
	}
	if got := realised[int64](t, bytes.Bitcast(ir.I64)); len(got) != 1 || uint64(got[0]) != 0x80fffe7f04030201 {
		t.Errorf("as a word: %x", got)
	}
	if got, want := realised[int16](t, bytes.Bitcast(ir.F16).Bitcast(ir.I16)), []int16{0x0201, 0x0403, -0x0181, -0x7f01}; !slices.Equal(got, want) {
		t.Errorf("as halves: %x, want %x", got, want)
	}
}

// Functions of numbers without axes are those of tensors.
func TestTwoFloatsOfRankZero(t *testing.T) {
	g := onDevice(t)
	x, y := tensor.FromSlice(g, []float32{-7.5}), tensor.FromSlice(g, []float32{2})
	for name, c := range map[string]struct {
		got  *tensor.Tensor
		want float64
	}{
		"fmod": {x.TruncMod(y), -1.5}, "mod": {x.FloorMod(y), 0.5}, "pow": {x.Abs().Pow(y), 56.25},
		"floor div": {x.FloorDiv(y), -4}, "atan2": {x.Atan2(y), math.Atan2(-7.5, 2)},
	} {
		if got := realised[float32](t, c.got); math.Abs(float64(got[0])-c.want) > 1e-6*math.Abs(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
