package tensor_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/tensor"
)

// The result of an addition for every pair of dtypes, as torch.result_type says
// (for the dtypes that PyTorch lacks, by the same rule). "-" is an error.
const promotions = `
      bool i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64
bool  bool i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64
i8    i8   i8   i16  i32  i64  i16  i32  i64  -    f16  bf16 f32  f64
i16   i16  i16  i16  i32  i64  i16  i32  i64  -    f16  bf16 f32  f64
i32   i32  i32  i32  i32  i64  i32  i32  i64  -    f16  bf16 f32  f64
i64   i64  i64  i64  i64  i64  i64  i64  i64  -    f16  bf16 f32  f64
u8    u8   i16  i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64
u16   u16  i32  i32  i32  i64  u16  u16  u32  u64  f16  bf16 f32  f64
u32   u32  i64  i64  i64  i64  u32  u32  u32  u64  f16  bf16 f32  f64
u64   u64  -    -    -    -    u64  u64  u64  u64  f16  bf16 f32  f64
f16   f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64
bf16  bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64
f32   f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
f64   f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
`

func dtype(t *testing.T, name string) ir.DType {
	t.Helper()
	d, err := ir.ParseDType(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPromotion(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(promotions), "\n")
	columns := strings.Fields(lines[0])
	for _, line := range lines[1:] {
		row := strings.Fields(line)
		for k, right := range columns {
			g := tensor.NewGraph()
			sum := g.Input("x", dtype(t, row[0]), 2).Add(g.Input("y", dtype(t, right), 2))
			got := "-"
			if g.Err() == nil {
				got = sum.DType().String()
			}
			if got != row[k+1] {
				t.Errorf("%s + %s is %s, want %s", row[0], right, got, row[k+1])
			}
		}
	}
}

// A number (rank 0) beside a tensor changes the category of its dtype only.
func TestPromotionOfNumbers(t *testing.T) {
	for _, c := range []struct{ array, number, want string }{
		{"f16", "f64", "f16"}, {"i8", "i64", "i8"}, {"u8", "i32", "u8"}, {"i32", "f64", "f64"}, {"bool", "i16", "i16"},
		{"f32", "i64", "f32"}, {"bf16", "f16", "bf16"}, {"u64", "i8", "u64"},
	} {
		g := tensor.NewGraph()
		x, n := g.Input("x", dtype(t, c.array), 2), g.Input("n", dtype(t, c.number))
		for _, sum := range []*tensor.Tensor{x.Add(n), n.Add(x)} {
			if got := sum.DType().String(); got != c.want {
				t.Errorf("%s and the number %s: %s, want %s", c.array, c.number, got, c.want)
			}
		}
		both := n.Add(g.Input("m", dtype(t, c.array)))
		if want, _ := tensorSum(t, c.array, c.number); both.DType() != want {
			t.Errorf("numbers %s and %s: %s, want %s", c.array, c.number, both.DType(), want)
		}
	}
}

// tensorSum is the dtype of a sum of tensors with axes.
func tensorSum(t *testing.T, a, b string) (ir.DType, error) {
	g := tensor.NewGraph()
	sum := g.Input("x", dtype(t, a), 2).Add(g.Input("y", dtype(t, b), 2))
	return sum.DType(), g.Err()
}
