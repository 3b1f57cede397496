package lower

import (
	"fmt"
	"sort"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/packed"
)

// makeParams declares buffers by slot, then VARs by name.
func (l *memory) makeParams() {
	var buffers, vars []*ir.UOp
	read, written := make(map[*ir.UOp]bool), make(map[*ir.UOp]bool)
	for _, u := range ir.Toposort(l.Sink) {
		switch u.Op {
		case ir.OpParam:
			buffers = append(buffers, u)
		case ir.OpVar:
			vars = append(vars, u)
		case ir.OpLoad, ir.OpField:
			l.packed = l.packed || u.Op == ir.OpField
			read[u.Src[0]] = true
		case ir.OpStore:
			written[u.Src[0]] = true
		}
	}
	sort.Slice(buffers, func(i, j int) bool {
		return buffers[i].Arg.(ir.ParamArg).Slot < buffers[j].Arg.(ir.ParamArg).Slot
	})
	sort.Slice(vars, func(i, j int) bool { return vars[i].Arg.(ir.VarArg).Name < vars[j].Arg.(ir.VarArg).Name })
	for i, u := range buffers {
		arg := u.Arg.(ir.ParamArg)
		if i > 0 && buffers[i-1].Arg.(ir.ParamArg).Slot == arg.Slot {
			fail("slot %d has two PARAM nodes", arg.Slot)
		}
		elem := u.DType
		if arg.Format != "" {
			elem = ir.U8
		}
		align := readAlign
		if written[u] {
			align = writeAlign
		}
		before := l.b.MakeFor(l.Arena.Origin(u))
		v := l.b.Buffer(arg.Slot, elem, fmt.Sprintf("p%d", arg.Slot), align, l.paramBytes(u))
		l.b.MakeAgainFor(before)
		l.b.Access(v, read[u], written[u])
		if l.block.onGPU() {
			l.b.Mark(v, arg.Format != "" || arg.Constant && !written[u], l.Options.Has(plan.PRELOAD, arg.Slot),
				program.Cache(l.Options.Buffers[plan.BufferOpt{Kind: plan.CACHE, Slot: arg.Slot}]))
		}
		l.params[u] = v
		l.align[v] = int64(align)
	}
	for _, u := range vars {
		l.params[u] = l.b.Var(u.Arg.(ir.VarArg).Name)
	}
}

// Buffers that a kernel writes are the engine's own; one that it only reads may
// lie in a mapped GGUF file, whose tensors are aligned to 32 bytes.
const (
	readAlign  = 32
	writeAlign = 64
)

// paramBytes is an upper bound of a buffer's size.
func (l *memory) paramBytes(u *ir.UOp) int64 {
	elems := int64(1)
	for _, n := range u.Src {
		hi := l.Bounds.Of(n).Hi
		var ok bool
		if elems, ok = ir.CheckedMul(elems, max(hi, 0)); !ok || hi == ir.PosInf {
			fail("slot %d: extent %d has no upper bound", u.Arg.(ir.ParamArg).Slot, hi)
		}
	}
	name := u.Arg.(ir.ParamArg).Format
	if name == "" {
		return elems * int64(max(u.DType.Size(), 1))
	}
	f := l.format(name)
	if layout := l.layoutOf(f, u); layout != packed.Identity {
		row := l.Bounds.Of(u.Src[len(u.Src)-1]).Hi
		return layout.Place(f, elems/max(row, 1), row/int64(f.BlockElems)).Bytes
	}
	return elems / int64(f.BlockElems) * int64(f.BlockBytes)
}

func (l *memory) format(name string) *packed.Format {
	f, ok := packed.Lookup(name)
	if !ok || f.IsPlain() {
		fail("no packed format %q", name)
	}
	return f
}
