package tensor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"

	"github.com/x448/float16"

	"tgc/internal/lists"
	"tgc/ir"
)

// Element is a Go type that a buffer's elements can be moved as: of the dtype's
// size. f16 moves as float16.Float16 or its bits in a uint16, bf16 as bits.
type Element interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~bool
}

// kindTypes are the dtypes of Go's kinds.
var kindTypes = map[reflect.Kind]ir.DType{
	reflect.Float32: ir.F32, reflect.Float64: ir.F64, reflect.Bool: ir.Bool,
	reflect.Int8: ir.I8, reflect.Int16: ir.I16, reflect.Int32: ir.I32, reflect.Int64: ir.I64,
	reflect.Uint8: ir.U8, reflect.Uint16: ir.U16, reflect.Uint32: ir.U32, reflect.Uint64: ir.U64,
}

// dtypeOf is the dtype of a Go type.
func dtypeOf[T Element]() ir.DType {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[float16.Float16]() {
		return ir.F16
	}
	return kindTypes[t.Kind()]
}

// FromSlice makes a tensor with these values: a buffer that is filled when the graph
// is compiled. Its dtype is T's.
func FromSlice[T Element](g *Graph, values []T, shape ...int) *Tensor {
	raw, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		return g.fail("from", "%v", err)
	}
	return g.FromBytes(dtypeOf[T](), raw, shape...)
}

// FromBytes is FromSlice of little-endian, row-major elements of any dtype.
func (g *Graph) FromBytes(dtype ir.DType, raw []byte, shape ...int) *Tensor {
	count := lists.Product(shape)
	if dtype.Size() == 0 || count < 0 || count*dtype.Size() != len(raw) {
		return g.fail("from", "%d bytes for %s%v", len(raw), dtype, shape)
	}
	t := g.buffer(BufferInfo{Name: fmt.Sprintf("#%d", len(g.buffers)), DType: dtype, Shape: g.Dims(shape...)})
	if g.values == nil {
		g.values = make(map[int64][]byte)
	}
	g.values[t.node.Arg.(ir.BufferArg).ID] = append([]byte{}, raw...) // not nil: an empty tensor has values
	return t
}

// Bytes are the little-endian, row-major elements of a tensor that FromSlice made or
// Realize computed.
func (t *Tensor) Bytes() ([]byte, error) {
	if !t.ok() {
		return nil, t.graph.err
	}
	node := t.node
	if known, ok := t.graph.realised[node]; ok {
		node = known
	}
	if arg, ok := node.Arg.(ir.BufferArg); ok {
		if raw, ok := t.graph.values[arg.ID]; ok {
			return raw, nil
		}
	}
	return nil, fmt.Errorf("tensor: %s has no values yet: call Realize", t)
}

// Data are the elements of a tensor that FromSlice made or Realize computed, in
// row-major order. T is the Go type of the dtype; f16 and bf16 also widen to
// float32 and give their bits as uint16.
func Data[T Element](t *Tensor) ([]T, error) {
	raw, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	dtype, want := t.DType(), dtypeOf[T]()
	short := dtype == ir.F16 || dtype == ir.BF16
	switch {
	case short && want == ir.F32:
		raw = widened(dtype, raw)
	case want != dtype && !(short && want == ir.U16):
		return nil, fmt.Errorf("tensor: %s is read as %s", t, want)
	}
	values := make([]T, len(raw)/want.Size())
	return values, binary.Read(bytes.NewReader(raw), binary.LittleEndian, values)
}

// widened are the bytes of 16-bit floats as f32.
func widened(dtype ir.DType, raw []byte) []byte {
	out := make([]byte, 0, 2*len(raw))
	for i := 0; i < len(raw); i += 2 {
		v := ir.FloatFromBits(dtype, uint64(binary.LittleEndian.Uint16(raw[i:])))
		out = binary.LittleEndian.AppendUint32(out, uint32(ir.FloatBits(ir.F32, v)))
	}
	return out
}
