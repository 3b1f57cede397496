package tensor

import (
	"fmt"
	"math"
	"path"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/runtime"
	"tgc/target"
)

// Graph is a tensor graph under construction with its buffers, its results and
// its first error. It is not safe for concurrent use.
type Graph struct {
	arena     *ir.Arena
	shapes    *ir.Shapes
	buffers   []BufferInfo
	results   []*ir.UOp
	variables map[string]bool                        // names of Var
	larger    map[string]int64                       // largest values of variables that may be made larger
	others    map[*ir.UOp]func(*target.Desc) *Tensor // other ways to compute nodes: see OnTarget
	customs   map[*ir.UOp]custom                     // derivatives of nodes: see WithGradient
	err       error

	device   runtime.Device      // of Realize, or nil
	values   map[int64][]byte    // contents of buffers, by ID: see FromSliceSlice
	realised map[*ir.UOp]*ir.UOp // computed nodes -> buffers with their values
	tracked  tracked             // what may be asked for: see sweep
}

// BufferInfo describes a buffer that the graph's user must bind to memory.
type BufferInfo struct {
	ID     int64
	Name   string // side information: not part of the graph's identity
	DType  ir.DType
	Format string // packed format, or empty
	Shape  Shape
	Output bool // written by the graph
	State  bool // begins as zeros: see State
}

// NewGraph makes an empty graph.
func NewGraph() *Graph {
	a := ir.NewArena()
	return &Graph{arena: a, shapes: ir.NewShapes(a)}
}

// Err is the first error of any call on the graph or its tensors.
func (g *Graph) Err() error { return g.err }

// Buffers lists the graph's buffers in order of creation.
func (g *Graph) Buffers() []BufferInfo {
	if len(g.tracked.free) == 0 {
		return g.buffers
	}
	return slices.DeleteFunc(slices.Clone(g.buffers), func(b BufferInfo) bool { return b.DType == ir.Void })
}

// Arena gives access to index arithmetic on dims.
func (g *Graph) Arena() *ir.Arena { return g.arena }

// Sink returns the root of the graph: every result in the order of Output, Store and Keep, or the graph's first error.
func (g *Graph) Sink() (*ir.UOp, error) {
	if g.err != nil {
		return nil, g.err
	}
	if len(g.results) == 0 {
		return nil, fmt.Errorf("tensor: the graph has no result: call Output or Store first")
	}
	return g.arena.Make(ir.OpSink, ir.Void, nil, g.results...), nil
}

// Input declares a buffer of a dtype and shape that the user fills before the first run.
func (g *Graph) Input(name string, dtype ir.DType, shape ...int) *Tensor {
	return g.InputDims(name, dtype, g.Dims(shape...)...)
}

// InputDims is Input with symbolic extents: a batch of any size up to a bound, say.
//
//	n := g.Var("n", 1, 64)
//	x := g.InputDims("x", ir.F32, n, g.Dims(784)[0])
//
// Before a run with n = 3, Set gives it 3*784 values.
func (g *Graph) InputDims(name string, dtype ir.DType, shape ...*ir.UOp) *Tensor {
	for _, dim := range shape {
		for _, u := range ir.Toposort(dim) {
			if v, ok := u.Arg.(ir.VarArg); ok && g.larger[v.Name] > 0 {
				return g.fail("input", "%q has the shape %s: a run may make %s larger (VarAtLeast), want a Var", name, shapeText(shape), v.Name)
			}
		}
	}
	return g.buffer(BufferInfo{Name: name, DType: dtype, Shape: shape})
}

// State declares a buffer that begins as zeros and that runs may change (Store, AssignAt);
// Set gives it other values.
func (g *Graph) State(name string, dtype ir.DType, shape ...int) *Tensor {
	return g.buffer(BufferInfo{Name: name, DType: dtype, Shape: g.Dims(shape...), State: true})
}

// Packed declares a buffer in a packed format; shape is that of the decoded
// tensor, rows last but one, and the tensor returned is the decoded one (f32).
func (g *Graph) Packed(name, format string, shape ...int) *Tensor {
	t := g.buffer(BufferInfo{Name: name, DType: ir.U8, Format: format, Shape: g.Dims(shape...)})
	return g.wrap(g.arena.Make(ir.OpDecode, ir.F32, nil, t.node))
}

// IsPacked reports the decoded tensor of a packed buffer.
func (t *Tensor) IsPacked() bool { return t.ok() && t.node.Op == ir.OpDecode }

// buffer declares a buffer under the next ID.
func (g *Graph) buffer(info BufferInfo) *Tensor {
	info.ID = int64(len(g.buffers))
	return g.declare(info)
}

func (g *Graph) declare(info BufferInfo) *Tensor {
	if info.ID == int64(len(g.buffers)) {
		g.buffers = append(g.buffers, info)
	} else {
		g.buffers[info.ID] = info // of one that is no more
	}
	if size := count(info.Shape); size > math.MaxInt64/8 {
		return g.fail("buffer", "%q of shape %s has more elements than can be counted", info.Name, shapeText(info.Shape))
	}
	arg := ir.BufferArg{ID: info.ID, Format: info.Format}
	return g.wrap(g.arena.Make(ir.OpBuffer, info.DType, arg, info.Shape...))
}

// Output makes t a result, stored whole in a new buffer of this name. It
// returns the buffer's description.
func (g *Graph) Output(name string, t *Tensor) BufferInfo {
	if t == nil && g.err == nil {
		g.fail("output", "%q is a nil tensor", name)
	}
	if t != nil && t.graph != g {
		g.fail("output", "%q is %s of another graph", name, t)
		t = nil
	}
	shape := t.shape()
	buf := g.buffer(BufferInfo{Name: name, DType: t.DType(), Shape: shape, Output: true})
	if !t.ok() {
		return g.buffers[len(g.buffers)-1]
	}
	g.Store(buf, t)
	return g.buffers[len(g.buffers)-1]
}

// Store makes the assignment buffer := t a result of the graph and returns the
// buffer's next version.
func (g *Graph) Store(buffer, t *Tensor) *Tensor {
	next := buffer.Assign(t)
	if next.ok() {
		g.results = append(g.results, next.node)
	}
	return next
}

// Latest is the last version of a buffer that Store or Keep made a result, or the buffer.
func (g *Graph) Latest(buffer *Tensor) *Tensor {
	if !buffer.ok() {
		return buffer.bad()
	}
	for _, result := range slices.Backward(g.results) {
		root := result
		for root.Op == ir.OpAssign {
			root = root.Src[0]
		}
		if root == buffer.node {
			return g.wrap(result)
		}
	}
	return buffer
}

// Keep makes an Assign or AssignAt a result of the graph.
func (g *Graph) Keep(next *Tensor) {
	if next.ok() {
		g.results = append(g.results, next.node)
	}
}

// Dims makes constant extents.
func (g *Graph) Dims(shape ...int) []*ir.UOp {
	dims := make([]*ir.UOp, len(shape))
	for i, n := range shape {
		if n < 0 {
			g.fail("shape", "extent %d of axis %d is negative", n, i)
			n = 0
		}
		dims[i] = g.arena.Index(int64(n))
	}
	return dims
}

// count is the number of elements of a shape, as far as it is constant, in a type that
// does not overflow.
func count(shape []*ir.UOp) float64 {
	n := 1.0
	for _, dim := range shape {
		if v, ok := dim.Int(); ok {
			n *= float64(v)
		}
	}
	return n
}

// Var declares a symbolic size or index in lo..hi, bound by name at each run: a value out
// of the bounds is an error there.
func (g *Graph) Var(name string, lo, hi int64) *ir.UOp {
	if g.variables == nil {
		g.variables = make(map[string]bool)
	}
	g.variables[name] = true
	return g.arena.Var(ir.VarArg{Name: name, Lo: lo, Hi: hi, Multiple: 1})
}

// VarAtLeast is Var for a size that a run may make larger than it was told, up to hi,
// with the same results: what lies past it is masked, say. Devices for which each new
// value has a price then use fewer of them.
func (g *Graph) VarAtLeast(name string, lo, hi int64) *ir.UOp {
	if g.larger == nil {
		g.larger = make(map[string]int64)
	}
	g.larger[name] = hi
	return g.Var(name, lo, hi)
}

// Scalar makes a rank-0 constant.
func (g *Graph) Scalar(dtype ir.DType, v float64) *Tensor { return g.wrap(g.arena.Const(dtype, v)) }

// Size is an Idx expression (a Dim) as a rank-0 tensor of a dtype.
func (g *Graph) Size(dim *ir.UOp, dtype ir.DType) *Tensor {
	return g.wrap(g.arena.Cast(dim, dtype))
}

// Iota is 0..n-1.
func (g *Graph) Iota(dtype ir.DType, n *ir.UOp) *Tensor {
	return g.wrap(g.arena.Make(ir.OpIota, dtype, nil, n))
}

// Table makes a constant tensor from values.
func (g *Graph) Table(dtype ir.DType, values []float64, shape ...int) *Tensor {
	count := lists.Product(shape)
	if count != len(values) {
		return g.fail("table", "%d values for shape %v", len(values), shape)
	}
	data := ir.EncodeTable(dtype, values)
	return g.wrap(g.arena.Make(ir.OpTable, dtype, ir.TableArg{Data: data}, g.Dims(shape...)...))
}

func (g *Graph) wrap(node *ir.UOp) *Tensor {
	t := &Tensor{graph: g, node: node}
	g.tracked.add(t)
	return t
}

// Fail records an error of a package above this one (a layer that is given a
// wrong shape, say) unless there is one already. The tensor returned is bad.
func (g *Graph) Fail(op, format string, args ...any) *Tensor { return g.fail(op, format, args...) }

// fail records the first error with the user's call site and returns a bad
// tensor. Without an op the error names the method that the user called.
func (g *Graph) fail(op, format string, args ...any) *Tensor {
	if g.err == nil {
		site, method := call()
		if op == "" {
			op = method
		}
		g.err = fmt.Errorf("tensor: %s: %s: %s", site, op, fmt.Sprintf(format, args...))
	}
	return &Tensor{graph: g}
}

// builders are the folders of packages whose code a user's mistake passes through,
// below the folder that holds this package's.
var builders = []string{"tensor", "grad", "nn", "nn/layer", "nn/optim", "nn/train", "internal/lists"}

// call is the first caller outside the builders, as file:line, and the outermost function
// of this package on the way there. It goes by file: a closure that is inlined into the
// caller has the caller's name.
func call() (site, method string) {
	pcs := make([]uintptr, 32)
	frames := goruntime.CallersFrames(pcs[:goruntime.Callers(1, pcs)])
	here, more := frames.Next()
	root := path.Dir(path.Dir(filepath.ToSlash(here.File)))
	left := false // this package
	for more {
		var frame goruntime.Frame
		frame, more = frames.Next()
		file := filepath.ToSlash(frame.File)
		folder, below := strings.CutPrefix(path.Dir(file), root+"/")
		test := strings.HasSuffix(file, "_test.go")
		left = left || folder != "tensor" && folder != "internal/lists" || test
		if name := methodName(frame.Function); !left && name != "" {
			method = name
		}
		if strings.HasPrefix(frame.Function, "slices.") || strings.HasPrefix(frame.Function, "maps.") {
			continue // loops of the standard library between builders
		}
		if !below || !slices.Contains(builders, folder) || test {
			return fmt.Sprintf("%s:%d", path.Base(file), frame.Line), method
		}
	}
	return "unknown caller", method
}

// methodName is the exported name in that of a function, Softmax in
// tgc/tensor.(*Tensor).Softmax.func1; empty without one.
func methodName(function string) string {
	for _, part := range slices.Backward(strings.Split(path.Base(function), ".")) {
		if part != "" && part[0] >= 'A' && part[0] <= 'Z' {
			return part
		}
	}
	return ""
}
