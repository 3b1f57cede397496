package llm

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"tgc/gguf"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/packed"
	"tgc/tensor"
)

// plainTypes are the GGUF types whose values are stored as they are; every
// other type is a packed format of the same name.
var plainTypes = map[gguf.Type]ir.DType{gguf.F32: ir.F32, gguf.F16: ir.F16, gguf.BF16: ir.BF16}

// weights declares a model file's tensors in a graph, each once, and checks
// their shapes. It keeps the first error.
type weights struct {
	graph *tensor.Graph
	file  *gguf.File
	codes WeightCodes
	known map[string]*tensor.Tensor
	err   error
}

func newWeights(g *tensor.Graph, f *gguf.File, codes WeightCodes) *weights {
	return &weights{graph: g, file: f, codes: codes, known: make(map[string]*tensor.Tensor)}
}

// get returns the named tensor as f32 values of this shape, slowest axis first.
func (w *weights) get(name string, shape ...int) *tensor.Tensor {
	if t, ok := w.known[name]; ok {
		return t
	}
	info, ok := w.file.Tensor(name)
	if !ok {
		return w.fail(fmt.Errorf("gguf: %s: tensor %q is missing, want shape %v", w.file.Name(), name, shape))
	}
	if !sameShape(info.Shape(), shape) {
		return w.fail(w.file.Errorf(info, "shape is %v, want %v (slowest axis first)", info.Shape(), shape))
	}
	var t *tensor.Tensor
	if dtype, plain := plainTypes[info.Type]; plain {
		t = w.graph.Input(name, dtype, shape...).Cast(ir.F32)
	} else {
		t = w.graph.Packed(name, w.format(info.Type, shape), shape...)
	}
	w.known[name] = t
	return t
}

// format names that in which a step reads a weight.
func (w *weights) format(of gguf.Type, shape []int) string {
	f, ok := packed.ByGGUF(uint32(of))
	if !ok {
		return of.String()
	}
	return w.codes.of(f, shape).Name
}

// has reports whether the file holds a tensor.
func (w *weights) has(name string) bool {
	_, ok := w.file.Tensor(name)
	return ok
}

func (w *weights) fail(err error) *tensor.Tensor {
	if w.err == nil {
		w.err = err
	}
	return w.graph.Scalar(ir.F32, 0)
}

// sameShape compares shapes; leading extents of 1 do not count, because GGUF
// drops them.
func sameShape(got, want []int) bool {
	trim := func(s []int) []int {
		for len(s) > 1 && s[0] == 1 {
			s = s[1:]
		}
		return s
	}
	return slices.Equal(trim(got), trim(want))
}

// float32s reads little-endian float32 values.
func float32s(data []byte) []float32 {
	return lists.Make(len(data)/4, func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])) })
}
