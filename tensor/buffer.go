package tensor

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/packed"
	"tgc/runtime"
	"tgc/schedule"
)

// buffer is a buffer of a function with its memory.
type buffer struct {
	BufferInfo
	layout   engine.Layout
	uses     uses
	constant bool  // FromSlice gave its values: its name is no user's
	bytes    int64 // on the device
	memory   *memory
}

// memory is what functions share; the last one that is closed frees it.
type memory struct {
	runtime.Memory
	users  atomic.Int64
	filled atomic.Bool // by Set, Write, FromSlice or a run
	// elements is how many Set or Write put there, for a shape that is symbolic.
	elements atomic.Int64
}

func (m *memory) release() {
	if m.users.Add(-1) == 0 {
		m.Free()
	}
}

// provide finds the buffer's memory among the shared functions or allocates it.
func (b *buffer) provide(ctx context.Context, dev runtime.Device, share []*Function) error {
	if !b.constant {
		for _, other := range share {
			if theirs, ok := other.buffers[b.Name]; ok {
				return b.join(other, theirs)
			}
		}
	}
	alloc := dev.Alloc
	if !b.uses.inPart {
		alloc = func(ctx context.Context, bytes int64) (runtime.Memory, error) {
			return runtime.AllocWhole(ctx, dev, bytes)
		}
	}
	m, err := alloc(ctx, max(b.bytes, 1))
	if err != nil {
		return err
	}
	b.memory = &memory{Memory: m}
	b.memory.users.Store(1)
	return nil
}

// join takes the memory of another function's buffer.
func (b *buffer) join(other *Function, theirs *buffer) error {
	if err := other.open("compile: share"); err != nil {
		return err
	}
	defer other.mu.Unlock()
	if theirs.DType != b.DType || theirs.Format != b.Format || shapeText(theirs.Shape) != shapeText(b.Shape) {
		return fmt.Errorf("is %s%s, but %s%s in the function it is shared with",
			storage(b.BufferInfo), shapeText(b.Shape), storage(theirs.BufferInfo), shapeText(theirs.Shape))
	}
	if theirs.layout != b.layout {
		return fmt.Errorf("has another layout in the function it is shared with, which was compiled for another target")
	}
	b.memory = theirs.memory
	b.memory.users.Add(1)
	return nil
}

// preset fills a buffer that FromSlice made, or one that State declared.
func (b *buffer) preset(ctx context.Context, g *Graph) error {
	if raw := g.values[b.ID]; len(raw) > 0 {
		if err := b.memory.Write(ctx, 0, raw); err != nil {
			return fmt.Errorf("tensor: values of %q: %w", b.Name, err)
		}
	}
	if b.constant || b.State {
		b.memory.filled.Store(true)
	}
	return nil
}

// ready reports an input that has no values, or not as many as its shape says for these
// values of variables.
func (b *buffer) ready(vars map[string]int64) error {
	if !b.uses.read {
		return nil
	}
	if !b.memory.filled.Load() {
		return fmt.Errorf("input %q has no values: call Set or Write first (State declares a buffer that begins as zeros)", b.Name)
	}
	if _, constant := product(b.Shape); constant || b.Output {
		return nil
	}
	shape, err := extentsAt(b.Shape, vars)
	if err != nil {
		return fmt.Errorf("input %q: %w", b.Name, err)
	}
	if want, got := int64(lists.Product(shape)), b.memory.elements.Load(); got != want {
		return fmt.Errorf("input %q was set to %d values, want %d for %v", b.Name, got, want, shape)
	}
	return nil
}

// room is the number of elements that fit, all that there are where the shape is constant.
func (b *buffer) room() int {
	if n, constant := product(b.Shape); constant {
		return int(n)
	}
	return int(b.bytes) / b.DType.Size()
}

// hostBytes is the size of a buffer on the host: of blocks, if its shape is constant,
// or of plain elements.
func hostBytes(info BufferInfo, plain int64) int64 {
	f, ok := packed.Lookup(info.Format)
	if !ok {
		return plain
	}
	n, _ := product(info.Shape)
	return n / int64(f.BlockElems) * int64(f.BlockBytes)
}

func storage(info BufferInfo) string {
	if info.Format != "" {
		return info.Format
	}
	return info.DType.String()
}

// uses says what the kernels of a schedule do with a buffer.
type uses struct {
	read    bool // before a kernel has written all of it
	written bool
	inPart  bool // kernels write a part only: a cache, say, of which most may never be touched
}

// usesOf finds the uses of a schedule's buffers, by index.
func usesOf(s *schedule.Schedule) []uses {
	list := make([]uses, len(s.Buffers))
	points := make([]int64, len(s.Buffers)) // that kernels have written
	for _, launch := range s.Launches {
		for _, k := range launch.Kernels {
			for _, u := range ir.Toposort(k.AST) {
				if (u.Op == ir.OpLoad || u.Op == ir.OpField) && u.Src[0].Op == ir.OpParam {
					i := k.Args[u.Src[0].Arg.(ir.ParamArg).Slot]
					size, known := product(s.Buffers[i].Shape)
					list[i].read = list[i].read || !known || points[i] < size
				}
			}
			for _, store := range k.AST.Src {
				i := k.Args[store.Src[0].Arg.(ir.ParamArg).Slot]
				n, known := product(extentsOf(store.Ranges()))
				list[i].written = true
				list[i].inPart = list[i].inPart || !known
				points[i] += n
			}
		}
	}
	for i := range list {
		size, known := product(s.Buffers[i].Shape)
		list[i].inPart = list[i].inPart || list[i].written && (!known || points[i] < size)
	}
	return list
}

func extentsOf(ranges []*ir.UOp) []*ir.UOp {
	return lists.Map(ranges, func(r *ir.UOp) *ir.UOp { return r.Src[0] })
}

// product multiplies extents, if all are constant.
func product(extents []*ir.UOp) (n int64, known bool) {
	n = 1
	for _, x := range extents {
		v, ok := x.Int()
		if !ok {
			return 0, false
		}
		n *= v
	}
	return n, true
}

// extentsAt are the extents of a shape for these values of variables.
func extentsAt(shape []*ir.UOp, vars map[string]int64) ([]int, error) {
	list := make([]int, len(shape))
	for i, dim := range shape {
		n, err := valueAt(dim, vars)
		if err != nil {
			return nil, err
		}
		list[i] = int(n)
	}
	return list, nil
}

// valueAt is the value of an Idx expression over variables.
func valueAt(u *ir.UOp, vars map[string]int64) (int64, error) {
	if n, ok := u.Int(); ok {
		return n, nil
	}
	if v, ok := u.Arg.(ir.VarArg); ok {
		n, known := vars[v.Name]
		if !known {
			return 0, fmt.Errorf("variable %q has no value", v.Name)
		}
		return n, nil
	}
	args := make([]ir.Scalar, len(u.Src))
	for i, s := range u.Src {
		n, err := valueAt(s, vars)
		if err != nil {
			return 0, err
		}
		args[i] = ir.Scalar{I: n}
	}
	src := u.DType
	if len(u.Src) > 0 {
		src = u.Src[len(u.Src)-1].DType
	}
	return ir.EvalScalar(u.Op, u.DType, src, args).I, nil
}

// isNil reports a device that is not there: what Open returns beside an error, say.
func isNil(dev runtime.Device) bool {
	v := reflect.ValueOf(dev)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
