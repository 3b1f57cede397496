package tensor_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// Operands that do not fit are an error at the call, which names the op, both
// operands with shapes or dtypes, and the line.
func TestElementwiseErrors(t *testing.T) {
	type T = tensor.Tensor
	for name, c := range map[string]struct {
		build func(g *tensor.Graph, x *T) *T // x is f32[2 3]
		want  string
	}{
		"add":         {func(g *tensor.Graph, x *T) *T { return x.Add(g.Input("y", ir.F32, 2)) }, "add: shapes [2 3] and [2] do not broadcast"},
		"div":         {func(g *tensor.Graph, x *T) *T { return x.Div(g.Input("y", ir.F32, 2)) }, "fdiv: shapes [2 3] and [2] do not broadcast"},
		"maximum":     {func(g *tensor.Graph, x *T) *T { return x.Maximum(g.Input("y", ir.I32, 3, 2)) }, "max: shapes [2 3] and [3 2] do not broadcast"},
		"le":          {func(g *tensor.Graph, x *T) *T { return x.Le(g.Input("y", ir.F32, 2)) }, "le: shapes [2 3] and [2] do not broadcast"},
		"ge":          {func(g *tensor.Graph, x *T) *T { return x.Ge(g.Input("y", ir.F32, 2)) }, "ge: shapes [2 3] and [2] do not broadcast"},
		"floordiv":    {func(g *tensor.Graph, x *T) *T { return x.FloorDiv(g.Input("y", ir.F32, 4)) }, "floordiv: shapes [2 3] and [4] do not broadcast"},
		"truncmod":    {func(g *tensor.Graph, x *T) *T { return x.TruncMod(g.Input("y", ir.F32, 4)) }, "truncmod: shapes [2 3] and [4] do not broadcast"},
		"pow":         {func(g *tensor.Graph, x *T) *T { return x.Pow(g.Input("y", ir.F32, 4)) }, "pow: shapes [2 3] and [4] do not broadcast"},
		"atan2":       {func(g *tensor.Graph, x *T) *T { return x.Atan2(g.Input("y", ir.F32, 4)) }, "atan2: shapes [2 3] and [4] do not broadcast"},
		"lerp":        {func(g *tensor.Graph, x *T) *T { return x.Lerp(x, g.Input("y", ir.F32, 4)) }, "mul: shapes [2 3] and [4] do not broadcast"},
		"dtypes":      {func(g *tensor.Graph, _ *T) *T { return g.Input("u", ir.U64, 3).Add(g.Input("i", ir.I64, 3)) }, "add: u64[3] and i64[3] have no common dtype"},
		"bits":        {func(g *tensor.Graph, x *T) *T { return x.Xor(g.Input("y", ir.I32, 3)) }, "xor: f32[2 3] and i32[3]; want integers"},
		"shift":       {func(g *tensor.Graph, x *T) *T { return x.Truth().Shl(x.Truth()) }, "shl: bool[2 3] and bool[2 3]; want integers"},
		"not":         {func(_ *tensor.Graph, x *T) *T { return x.Not() }, "not: f32[2 3]; want integers or bool"},
		"neg":         {func(_ *tensor.Graph, x *T) *T { return x.Truth().Neg() }, "neg: bool[2 3] has no sign"},
		"sub":         {func(_ *tensor.Graph, x *T) *T { return x.Truth().Sub(x.Truth()) }, "sub: bool[2 3] minus bool[2 3]"},
		"where":       {func(g *tensor.Graph, x *T) *T { return x.Truth().Where(x, g.Input("y", ir.F32, 2)) }, "where: shapes of bool[2 3], f32[2 3] and f32[2] do not broadcast"},
		"condition":   {func(_ *tensor.Graph, x *T) *T { return x.Where(x, x) }, "where: condition f32[2 3], arms f32[2 3] and f32[2 3]; want bool"},
		"bitcast":     {func(_ *tensor.Graph, x *T) *T { return x.Bitcast(ir.F64) }, "bitcast: f32[2 3] as f64 of 8 bytes"},
		"sum axis":    {func(_ *tensor.Graph, x *T) *T { return x.Sum(2) }, "Sum: axes [2] of f32[2 3]; want each once, from -2 to 1"},
		"mean twice":  {func(_ *tensor.Graph, x *T) *T { return x.Mean(0, -2) }, "Mean: axes [0 -2] of f32[2 3]; want each once"},
		"var axis":    {func(_ *tensor.Graph, x *T) *T { return x.Var(1, 5) }, "axes [5] of f32[2 3]"},
		"norm axis":   {func(_ *tensor.Graph, x *T) *T { return x.Norm(2, -3) }, "axes [-3] of f32[2 3]"},
		"argmin":      {func(_ *tensor.Graph, x *T) *T { return x.Argmin(2) }, "argmin: axis 2 of f32[2 3]"},
		"softmax":     {func(_ *tensor.Graph, x *T) *T { return x.Softmax(3) }, "Softmax: axes [3] of f32[2 3]"},
		"cumsum":      {func(_ *tensor.Graph, x *T) *T { return x.Cumsum(-3) }, "cumsum: axis -3 of f32[2 3]"},
		"cumprod":     {func(_ *tensor.Graph, x *T) *T { return x.Cumprod(2) }, "cumprod: axis 2 of f32[2 3]"},
		"cummax":      {func(_ *tensor.Graph, x *T) *T { v, _ := x.Cummax(2); return v }, "cummax: axis 2 of f32[2 3]"},
		"other graph": {func(_ *tensor.Graph, x *T) *T { return x.Add(tensor.NewGraph().Input("y", ir.F32, 3)) }, "add: f32[2 3] and f32[3] are of different graphs"},
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			y := c.build(g, g.Input("x", ir.F32, 2, 3))
			err := g.Err()
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "errors_test.go:") {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if y.Node() != nil {
				t.Errorf("the result is %s, want a bad tensor", y)
			}
		})
	}
}

// Every method takes bad operands without a panic, and what it then makes of
// them is bad too: an expression with a mistake in it runs through to its end.
func TestBadTensorsDoNoHarm(t *testing.T) {
	kind := reflect.TypeFor[*tensor.Tensor]()
	for i := range kind.NumMethod() {
		method := kind.Method(i)
		t.Run(method.Name, func(t *testing.T) {
			g := tensor.NewGraph()
			bad := g.Input("x", ir.F32, 2).Add(g.Input("y", ir.F32, 3))
			args := []reflect.Value{reflect.ValueOf(bad)}
			for k := 1; k < method.Type.NumIn(); k++ {
				args = append(args, argument(method.Type.In(k), bad))
			}
			call := method.Func.Call
			if method.Type.IsVariadic() {
				call = method.Func.CallSlice
			}
			for _, result := range call(args) {
				if made, ok := result.Interface().(*tensor.Tensor); ok && made.Node() != nil {
					t.Errorf("makes %s of a bad tensor", made)
				}
			}
			if err := g.Err(); err == nil || !strings.Contains(err.Error(), "[2] and [3]") {
				t.Errorf("the first error is %v", err)
			}
		})
	}
}

// A nil operand, or a nil tensor that a method is called on, is an error that names the
// method and the line; nothing panics.
func TestNilTensorsAreErrors(t *testing.T) {
	kind := reflect.TypeFor[*tensor.Tensor]()
	for i := range kind.NumMethod() {
		method := kind.Method(i)
		t.Run(method.Name, func(t *testing.T) {
			g := tensor.NewGraph()
			nothing := (*tensor.Tensor)(nil)
			operand := false
			defer func() {
				if cause := recover(); cause != nil {
					t.Error("panics:", cause)
				}
			}()
			for on, receiver := range map[string]*tensor.Tensor{"nil tensor": nil, "nil operand": g.Input("x", ir.F32, 2)} {
				args := []reflect.Value{reflect.ValueOf(receiver)}
				for k := 1; k < method.Type.NumIn(); k++ {
					in := method.Type.In(k)
					operand = operand || in == kind
					dim := g.Arena().Index(1)
					switch in {
					case reflect.TypeFor[*ir.UOp]():
						args = append(args, reflect.ValueOf(dim))
						continue
					case reflect.TypeFor[[]*ir.UOp]():
						args = append(args, reflect.ValueOf([]*ir.UOp{dim}))
						continue
					}
					args = append(args, argument(in, nothing))
				}
				call := method.Func.Call
				if method.Type.IsVariadic() {
					call = method.Func.CallSlice
				}
				for _, result := range call(args) {
					if made, ok := result.Interface().(*tensor.Tensor); ok && receiver == nil && made.Node() != nil {
						t.Errorf("%s: makes %s", on, made)
					}
				}
			}
			if optional := map[string]bool{"LayerNorm": true, "RMSNorm": true}; optional[method.Name] {
				return // nil scales and shifts are none
			}
			if err := g.Err(); operand && (err == nil || !strings.Contains(err.Error(), "value.go:")) {
				t.Errorf("a nil operand: %v", err)
			}
		})
	}
}

// The error of a nil operand says which call, and Realize has it.
func TestNilOperandIsNamed(t *testing.T) {
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, []float32{1, 2}, 2)
	err := x.Add(nil).Realize(t.Context())
	if want := "Add: an operand is nil"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "errors_test.go:") {
		t.Errorf("%v, want %q", err, want)
	}
	var none *tensor.Tensor
	for name, err := range map[string]error{
		"realize": none.Realize(t.Context()), "data": second(tensor.Data[float32](none)), "realize:": tensor.Realize(t.Context(), x, nil),
		"the tensor is nil": none.Exp().Add(x).Realize(t.Context()),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// argument is a value for a parameter of a method: bad tensors, small numbers.
func argument(kind reflect.Type, bad *tensor.Tensor) reflect.Value {
	switch kind {
	case reflect.TypeFor[*tensor.Tensor]():
		return reflect.ValueOf(bad)
	case reflect.TypeFor[[]*tensor.Tensor]():
		return reflect.ValueOf([]*tensor.Tensor{bad})
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(context.Background())
	case reflect.TypeFor[*ir.UOp]():
		return reflect.ValueOf(bad.Graph().Arena().Index(1))
	case reflect.TypeFor[ir.DType]():
		return reflect.ValueOf(ir.F16)
	case reflect.TypeFor[func(*target.Desc) *tensor.Tensor]():
		return reflect.ValueOf(func(*target.Desc) *tensor.Tensor { return bad })
	case reflect.TypeFor[tensor.Backward]():
		return reflect.ValueOf(tensor.Backward(func(_, adjoint *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{adjoint} }))
	case reflect.TypeFor[int]():
		return reflect.ValueOf(1)
	}
	if kind.Kind() == reflect.Slice {
		return reflect.MakeSlice(kind, 1, 1)
	}
	if kind.Kind() == reflect.Func || kind.Kind() == reflect.Interface {
		panic(fmt.Sprintf("no argument of %s", kind))
	}
	return reflect.Zero(kind)
}
