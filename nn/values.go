package nn

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// Value is a tensor's contents apart from any graph and device.
type Value struct {
	DType ir.DType
	Shape []int
	Data  []byte // little-endian elements, row-major
}

// Values maps the names of a model's parameters to their contents.
type Values map[string]Value

// Float32s makes a value of f32 elements.
func Float32s(values []float32, shape ...int) Value {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return Value{DType: ir.F32, Shape: slices.Clone(shape), Data: data}
}

// Float32s are the elements of an f32 value; nil for other dtypes.
func (v Value) Float32s() []float32 {
	if v.DType != ir.F32 {
		return nil
	}
	return lists.Make(len(v.Data)/4, func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(v.Data[4*i:])) })
}

// Initial draws every value of the tree before training.
func (p *Parameters) Initial(seed uint32) Values {
	values := make(Values, len(p.tree.list))
	for _, v := range p.tree.list {
		drawn := v.Init.Fill(seed, v.Name, v.Shape)
		value := Float32s(drawn, v.Shape...)
		if dtype := v.Tensor.DType(); dtype != ir.F32 {
			wide := lists.Make(len(drawn), func(i int) float64 { return float64(drawn[i]) })
			value = Value{DType: dtype, Shape: v.Shape, Data: []byte(ir.EncodeTable(dtype, wide))}
		}
		values[v.Name] = value
	}
	return values
}

// Load puts values into the buffers of a compiled graph. Every parameter that
// the function uses needs a value of its dtype and shape; values of other names
// are left alone.
func (p *Parameters) Load(ctx context.Context, f *tensor.Function, values Values) error {
	return p.eachUsed(f, func(v Parameter) error {
		value, ok := values[v.Name]
		if !ok {
			return fmt.Errorf("nn: parameter %q has no value, want %s%v", v.Name, v.Tensor.DType(), v.Shape)
		}
		if value.DType != v.Tensor.DType() || !slices.Equal(value.Shape, v.Shape) {
			return fmt.Errorf("nn: parameter %q: got %s%v, want %s%v", v.Name, value.DType, value.Shape, v.Tensor.DType(), v.Shape)
		}
		return f.Write(ctx, v.Name, value.Data)
	})
}

// Save reads the parameters that a function uses.
func (p *Parameters) Save(ctx context.Context, f *tensor.Function) (Values, error) {
	values := make(Values, len(p.tree.list))
	err := p.eachUsed(f, func(v Parameter) error {
		data, err := f.Read(ctx, v.Name)
		values[v.Name] = Value{DType: v.Tensor.DType(), Shape: slices.Clone(v.Shape), Data: data}
		return err
	})
	return values, err
}

func (p *Parameters) eachUsed(f *tensor.Function, visit func(v Parameter) error) error {
	used := lists.Set(lists.Map(f.Buffers(), func(b tensor.BufferInfo) string { return b.Name }))
	for _, v := range p.tree.list {
		if !used[v.Name] {
			continue
		}
		if err := visit(v); err != nil {
			return err
		}
	}
	return nil
}
