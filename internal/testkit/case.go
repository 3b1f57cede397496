package testkit

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"tgc/ir"
	"tgc/packed"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// Case is a graph with contents for its buffers and values for its VARs.
type Case struct {
	Graph   *tensor.Graph                  // nil for a graph from text
	root    *ir.UOp                        // of a graph from text
	Buffers map[int64]*interp.KernelBuffer // contents before a run, by ID
	Vars    map[string]int64
}

// Parse makes a case of a graph in text form without VARs, with contents from a
// seed: floats at random, integers in 0..3.
func Parse(text string, seed uint64) (*Case, error) {
	root, err := ir.Parse(ir.NewArena(), text)
	if err != nil {
		return nil, err
	}
	if err := ir.VerifyTensor(root); err != nil {
		return nil, err
	}
	c := &Case{root: root, Buffers: make(map[int64]*interp.KernelBuffer), Vars: make(map[string]int64)}
	rng := rand.New(rand.NewPCG(seed, 6))
	for _, u := range ir.Toposort(root) {
		if u.Op != ir.OpBuffer {
			continue
		}
		arg := u.Arg.(ir.BufferArg)
		if err := c.Fill(tensor.BufferInfo{ID: arg.ID, DType: u.DType, Format: arg.Format, Shape: u.Src}, rng, 0, 3); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Sink is the root of the graph.
func (c *Case) Sink() (*ir.UOp, error) {
	if c.root != nil {
		return c.root, nil
	}
	return c.Graph.Sink()
}

// infos describes the buffers; none for a graph from text.
func (c *Case) infos() []tensor.BufferInfo {
	if c.Graph == nil {
		return nil
	}
	return c.Graph.Buffers()
}

// Clone copies the contents, so that a run cannot change the case.
func (c *Case) Clone() map[int64]*interp.KernelBuffer {
	out := make(map[int64]*interp.KernelBuffer, len(c.Buffers))
	for id, b := range c.Buffers {
		copied := *b
		copied.Data = append([]ir.Scalar(nil), b.Data...)
		copied.Bytes = append([]byte(nil), b.Bytes...)
		out[id] = &copied
	}
	return out
}

// Text is the case for people: the graph in text form and the VARs.
func (c *Case) Text() string {
	var b strings.Builder
	if sink, err := c.Sink(); err != nil {
		fmt.Fprintf(&b, "graph error: %v\n", err)
	} else if err := ir.Print(&b, sink); err != nil {
		fmt.Fprintf(&b, "print: %v\n", err)
	}
	for _, info := range c.infos() {
		fmt.Fprintf(&b, "# buffer %d is %q\n", info.ID, info.Name)
	}
	if len(c.Vars) > 0 {
		fmt.Fprintf(&b, "# vars %v\n", c.Vars)
	}
	return b.String()
}

// Expected evaluates the case with the eager model.
func (c *Case) Expected() (map[int64]*Numbers, error) { return c.expected(rounded) }

// ExpectedWide is Expected with f32 computed in float64 throughout, for
// evaluations of kernels that do the same: its bounds are far tighter.
func (c *Case) ExpectedWide() (map[int64]*Numbers, error) { return c.expected(wide) }

func (c *Case) expected(p precision) (map[int64]*Numbers, error) {
	sink, err := c.Sink()
	if err != nil {
		return nil, err
	}
	decoded, err := c.decoded(p)
	if err != nil {
		return nil, err
	}
	e := NewEager(decoded, c.Vars)
	e.precision = p
	return e.Results(sink), nil
}

// Decoded is every buffer as the eager model reads it.
func (c *Case) Decoded() (map[int64]*Numbers, error) { return c.decoded(rounded) }

func (c *Case) decoded(p precision) (map[int64]*Numbers, error) {
	out := make(map[int64]*Numbers)
	for id, b := range c.Buffers {
		n, err := decodeBuffer(b, p)
		if err != nil {
			return nil, fmt.Errorf("buffer %d: %w", id, err)
		}
		out[id] = n
	}
	return out, nil
}

// decodeBuffer reads a buffer as numbers. An element of a packed buffer has the
// largest magnitude of its block, twice: its value is a difference whose terms
// may be taken apart.
func decodeBuffer(b *interp.KernelBuffer, p precision) (*Numbers, error) {
	if b.Format == "" {
		out := &Numbers{DType: b.DType, Data: make([]Number, len(b.Data))}
		for i, s := range b.Data {
			out.Data[i] = exact(b.DType, s)
		}
		return out, nil
	}
	f, ok := packed.Lookup(b.Format)
	if !ok {
		return nil, fmt.Errorf("no packed format %q", b.Format)
	}
	values, err := DecodeBlocks(f, b.Bytes, p == wide)
	if err != nil {
		return nil, err
	}
	out := &Numbers{DType: ir.F32, Data: make([]Number, len(values))}
	for start := 0; start < len(values); start += f.BlockElems {
		largest := 0.0
		for _, v := range values[start : start+f.BlockElems] {
			largest = max(largest, math.Abs(v.F))
		}
		for i := start; i < start+f.BlockElems; i++ {
			out.Data[i] = Number{Scalar: values[i], Magnitude: 2 * largest}
		}
	}
	return out, nil
}

// DecodeBlocks evaluates a format's own decode expression on every element, on
// demand without rounding to f32.
func DecodeBlocks(f *packed.Format, blocks []byte, float64s bool) ([]ir.Scalar, error) {
	n := len(blocks) / f.BlockBytes * f.BlockElems
	a := ir.NewArena()
	rows, cols := a.Index(1), a.Index(int64(n))
	row, k := a.Range(0, rows), a.Range(1, cols)
	from := a.Make(ir.OpParam, ir.U8, ir.ParamArg{Slot: 1, Format: f.Name}, rows, cols)
	into := a.Make(ir.OpParam, ir.F32, ir.ParamArg{Slot: 0}, rows, cols)
	point := []*ir.UOp{row, k}
	sink := a.Make(ir.OpSink, ir.Void, nil, a.Store(into, f.Decode(a, from, row, k), point, point))
	out := make([]ir.Scalar, n)
	args := []*interp.KernelBuffer{{DType: ir.F32, Data: out}, {DType: ir.U8, Format: f.Name, Bytes: blocks}}
	_, err := interp.EvalKernel(context.Background(), sink, args, nil, interp.KernelOptions{Float64: float64s})
	return out, err
}

// Fill makes contents for a buffer that has none: floats from a normal
// distribution, integers in lo..hi, packed data that is valid.
func (c *Case) Fill(info tensor.BufferInfo, rng *rand.Rand, lo, hi int64) error {
	n := int64(1)
	for _, dim := range info.Shape {
		n *= upper(dim)
	}
	b := &interp.KernelBuffer{DType: info.DType, Format: info.Format}
	if info.Format != "" {
		f, ok := packed.Lookup(info.Format)
		if !ok {
			return fmt.Errorf("no packed format %q", info.Format)
		}
		b.Bytes = packed.RandomBlocks(f, int(n)/f.BlockElems, rng)
	} else {
		b.Data = make([]ir.Scalar, n)
		for i := range b.Data {
			switch {
			case info.Output:
			case info.DType.IsFloat():
				b.Data[i].F = ir.RoundFloat(info.DType, rng.NormFloat64())
			case info.DType == ir.Bool:
				b.Data[i].I = int64(rng.IntN(2))
			default:
				b.Data[i].I = lo + rng.Int64N(hi-lo+1)
			}
		}
	}
	c.Buffers[info.ID] = b
	return nil
}

// upper is the largest value of an extent.
func upper(dim *ir.UOp) int64 {
	if v, ok := dim.Int(); ok {
		return v
	}
	return ir.NewBounds().Of(dim).Hi
}

// encode turns a buffer into the bytes of device memory.
func encode(b *interp.KernelBuffer) []byte {
	if b.Format != "" {
		return b.Bytes
	}
	size := b.DType.Size()
	out := make([]byte, 0, size*len(b.Data)+8)
	for _, s := range b.Data {
		word := uint64(s.I)
		if b.DType.IsFloat() {
			word = ir.FloatBits(b.DType, s.F)
		}
		out = binary.LittleEndian.AppendUint64(out, word)[:len(out)+size]
	}
	return out
}

// decodeBytes is the inverse of encode for plain elements.
func decodeBytes(dtype ir.DType, raw []byte) []ir.Scalar {
	out := make([]ir.Scalar, len(raw)/dtype.Size())
	text := string(raw)
	for i := range out {
		out[i] = ir.DecodeTable(dtype, text, i)
	}
	return out
}
