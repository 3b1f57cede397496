package tensor

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"

	"github.com/x448/float16"

	"tgc/internal/lists"
	"tgc/ir"
)

// Element is a Go type that a buffer's elements can be moved as: of the dtype's
// size. f16 moves as float16.Float16 or its bits in a uint16, bf16 as bits in a uint16,
// f8e4m3 and f8e5m2 as bits in a uint8.
type Element interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~bool
}

// kindTypes are the dtypes of Go's kinds.
var kindTypes = map[reflect.Kind]ir.DType{
	reflect.Float32: ir.F32, reflect.Float64: ir.F64, reflect.Bool: ir.Bool,
	reflect.Int8: ir.I8, reflect.Int16: ir.I16, reflect.Int32: ir.I32, reflect.Int64: ir.I64,
	reflect.Uint8: ir.U8, reflect.Uint16: ir.U16, reflect.Uint32: ir.U32, reflect.Uint64: ir.U64,
}

// DTypeOf is the dtype of a Go type.
func DTypeOf[T Element]() ir.DType {
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
	return g.FromBytes(DTypeOf[T](), raw, shape...)
}

// FromBytes is FromSlice of little-endian, row-major elements of any dtype.
func (g *Graph) FromBytes(dtype ir.DType, raw []byte, shape ...int) *Tensor {
	count := lists.Product(shape)
	if slices.ContainsFunc(shape, func(n int) bool { return n < 0 }) {
		return g.fail("from", "shape %v; want extents of at least 0", shape)
	}
	if size := dtype.Size(); size == 0 || count*size != len(raw) {
		if size > 0 && len(raw)%size == 0 {
			return g.fail("from", "%d values for %s%v, want %d", len(raw)/size, dtype, shape, count)
		}
		return g.fail("from", "%d bytes for %s%v, want %d", len(raw), dtype, shape, count*size)
	}
	id := g.tracked.take(int64(len(g.buffers)))
	t := g.declare(BufferInfo{ID: id, Name: fmt.Sprintf("#%d", id), DType: dtype, Shape: g.Dims(shape...)})
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
		return nil, t.failure("data")
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

// Data are the elements of a tensor in row-major order; Realize computes them where they
// are not known yet. T is the Go type of the dtype; floats of 8 and 16 bits also widen to
// float32, and give their bits as Element says.
func Data[T Element](t *Tensor) ([]T, error) {
	if t.ok() && !readsAs[T](t.DType()) {
		return nil, fmt.Errorf("tensor: %s is read as %s", t, DTypeOf[T]())
	}
	if t.ok() && !t.graph.known(t.node) {
		if err := t.Realize(context.Background()); err != nil {
			return nil, err
		}
	}
	raw, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	return elements[T](t.DType(), raw)
}

// movesAs reports a Go type that holds the elements of a dtype; of floats that Go lacks,
// their bits.
func movesAs[T Element](dtype ir.DType) bool {
	own := DTypeOf[T]()
	return own == dtype || isShort(dtype) && own == words[dtype.Size()]
}

// readsAs reports a Go type that elements of a dtype can be read as: short floats also as f32.
func readsAs[T Element](dtype ir.DType) bool {
	return movesAs[T](dtype) || isShort(dtype) && DTypeOf[T]() == ir.F32
}

// elements are little-endian values of a dtype, as a Go type that they can be read as.
func elements[T Element](dtype ir.DType, raw []byte) ([]T, error) {
	if !movesAs[T](dtype) {
		raw = widened(dtype, raw)
	}
	values := make([]T, len(raw)/DTypeOf[T]().Size())
	return values, binary.Read(bytes.NewReader(raw), binary.LittleEndian, values)
}

// isShort reports a float of less than 32 bits.
func isShort(dtype ir.DType) bool { return dtype.IsFloat() && dtype.Size() < ir.F32.Size() }

// widened are the bytes of short floats as f32.
func widened(dtype ir.DType, raw []byte) []byte {
	size := dtype.Size()
	out := make([]byte, 0, len(raw)/size*ir.F32.Size())
	for i := 0; i < len(raw); i += size {
		bits := uint64(raw[i])
		if size == 2 {
			bits = uint64(binary.LittleEndian.Uint16(raw[i:]))
		}
		v := ir.FloatFromBits(dtype, bits)
		out = binary.LittleEndian.AppendUint32(out, uint32(ir.FloatBits(ir.F32, v)))
	}
	return out
}
