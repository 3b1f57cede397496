package emit

import (
	"fmt"
	"slices"
	"strings"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// emission builds the kernels of a schedule.
type emission struct {
	s       *state.State
	out     *state.Schedule
	user    map[*ir.UOp]int  // BUFFER node -> index in out.Buffers
	written map[*ir.UOp]bool // BUFFER nodes that some kernel writes
	drafts  []*state.Draft   // of the launch at hand
	temp    map[int]int      // value id -> index in out.Buffers
}

// WriteKernels writes the kernels of all launches.
func WriteKernels(s *state.State) {
	e := &emission{s: s, out: &state.Schedule{}, user: make(map[*ir.UOp]int), temp: make(map[int]int), written: make(map[*ir.UOp]bool)}
	e.noteWritten()
	for _, drafts := range s.Launches {
		var launch state.Launch
		e.drafts = drafts
		for _, k := range drafts {
			launch.Kernels = append(launch.Kernels, e.kernel(k))
		}
		e.out.Launches = append(e.out.Launches, launch)
	}
	s.Out = e.out
}

// noteWritten finds the buffers that some kernel writes.
func (e *emission) noteWritten() {
	for _, drafts := range e.s.Launches {
		for _, k := range drafts {
			for _, v := range k.Values {
				if v.Target >= 0 {
					e.written[e.s.Versions[v.Target].Buffer] = true
				}
			}
		}
	}
}

// fixedIn finds the buffers of which a kernel reads only what no kernel of the step writes,
// where that matters: those that none writes, and those that it reads around what one
// writes (forward-stores), as they were before the step.
func (e *emission) fixedIn(draft *state.Draft) map[*ir.UOp]bool {
	fixed := make(map[*ir.UOp]bool)
	if e.s.Opt.Profile.EarlyElems == 0 {
		return fixed
	}
	for _, u := range ir.Toposort(draft.Roots()...) {
		if u.Op != ir.OpParam {
			continue
		}
		v := e.s.Versions[u.Arg.(ir.ParamArg).Slot]
		is := !e.written[v.Buffer] || v.Under >= 0 && e.beside(v.Under)
		if before, seen := fixed[v.Buffer]; seen {
			is = is && before
		}
		fixed[v.Buffer] = is
	}
	for _, v := range draft.Values {
		if v.Target >= 0 {
			fixed[e.s.Versions[v.Target].Buffer] = false
		}
	}
	return fixed
}

// beside reports a version that is the first of its buffer and is stored in the launch at
// hand, so that no kernel before it writes the buffer.
func (e *emission) beside(version int) bool {
	v := e.s.Versions[version]
	if e.s.Versions[v.Previous].Writer >= 0 {
		return false
	}
	return slices.ContainsFunc(e.drafts, func(d *state.Draft) bool {
		return slices.ContainsFunc(d.Values, func(w *state.Value) bool { return w.ID == v.Writer })
	})
}

// kernel writes the kernel that stores the values of a draft.
func (e *emission) kernel(draft *state.Draft) *state.Kernel {
	a := e.s.A
	k := &kernelBuilder{e: e, ids: make(map[*ir.UOp]*ir.UOp), slots: make(map[*ir.UOp]*ir.UOp), done: make(map[*ir.UOp]*ir.UOp)}
	k.fixed = e.fixedIn(draft)
	out := &state.Kernel{}
	for _, v := range draft.Values {
		for _, r := range v.StoreLoops() {
			k.rangeName(r)
		}
		out.Reasons = append(out.Reasons, v.Reasons...)
	}
	var stores []*ir.UOp
	for _, v := range draft.Values {
		target, body := k.target(v), k.do(v.Body)
		var index, loops []*ir.UOp
		for _, x := range v.StoreIndex() {
			index = append(index, k.do(x))
		}
		if len(index) == 0 {
			index = []*ir.UOp{a.Index(0)}
		}
		for _, r := range v.StoreLoops() {
			loops = append(loops, k.do(r))
		}
		stores = append(stores, a.Store(target, body, index, loops))
	}
	out.AST, out.Args = a.Make(ir.OpSink, ir.Void, nil, stores...), k.args
	out.Name, out.Origins = kernelName(out.AST), a.OriginsUnder(out.AST)
	return out
}

// kernelBuilder rewrites a value's body to kernel form: final range ids, PARAM
// slots by first use, reads of values as reads of their buffers.
type kernelBuilder struct {
	e     *emission
	fixed map[*ir.UOp]bool // BUFFER nodes that the kernel reads what no kernel writes of
	args  []int
	ids   map[*ir.UOp]*ir.UOp // RANGE -> RANGE with its final id
	slots map[*ir.UOp]*ir.UOp // VALUE or version PARAM -> PARAM
	done  map[*ir.UOp]*ir.UOp
}

// rangeName numbers a range by first use.
func (k *kernelBuilder) rangeName(r *ir.UOp) *ir.UOp {
	if n, ok := k.ids[r]; ok {
		return n
	}
	extent := k.do(r.Src[0])
	n := k.e.s.A.Range(len(k.ids), extent)
	k.ids[r] = n
	return n
}

// target is the PARAM that a value's store writes.
func (k *kernelBuilder) target(v *state.Value) *ir.UOp {
	if v.Target >= 0 {
		return k.param(k.e.s.Versions[v.Target].Param)
	}
	return k.param(v.Node)
}

// param is the argument slot of a buffer: a version of a user's buffer or a
// value's temporary. All versions of a buffer are one argument.
func (k *kernelBuilder) param(u *ir.UOp) *ir.UOp {
	e, a := k.e, k.e.s.A
	key := u
	if u.Op == ir.OpParam {
		key = e.s.Versions[u.Arg.(ir.ParamArg).Slot].Buffer
		if key.Op == ir.OpValue {
			return k.param(key)
		}
	}
	if p, ok := k.slots[key]; ok {
		return p
	}
	var buffer int
	extents, arg := u.Src, ir.ParamArg{Slot: len(k.args)}
	if u.Op == ir.OpParam {
		buffer, arg.Format = e.userBuffer(key), u.Arg.(ir.ParamArg).Format
		arg.Constant = k.fixed[key]
	} else {
		buffer = e.tempBuffer(u)
	}
	if len(extents) == 0 {
		extents = []*ir.UOp{a.Index(1)}
	}
	p := a.Make(ir.OpParam, u.DType, arg, extents...)
	a.Became(u, p)
	k.args = append(k.args, buffer)
	k.slots[key] = p
	return p
}

// do rewrites an expression. Range ids are given in preorder: a REDUCE names
// its range before its body is visited, so ids do not depend on the order of
// terms in index expressions.
func (k *kernelBuilder) do(u *ir.UOp) *ir.UOp {
	if r, ok := k.done[u]; ok {
		return r
	}
	r := k.build(u)
	k.done[u] = r
	return r
}

func (k *kernelBuilder) build(u *ir.UOp) *ir.UOp {
	a := k.e.s.A
	switch u.Op {
	case ir.OpRange:
		return k.rangeName(u)
	case ir.OpValue, ir.OpParam:
		return k.param(u)
	case ir.OpReduce, ir.OpStage:
		for _, r := range expr.BinderRanges(u) {
			k.rangeName(r)
		}
	}
	if len(u.Src) == 0 {
		return u
	}
	src := make([]*ir.UOp, len(u.Src), len(u.Src)+1)
	for i, x := range u.Src {
		src[i] = k.do(x)
	}
	if u.Op == ir.OpLoad && len(src) == 1 {
		src = append(src, a.Index(0))
	}
	return k.e.s.SimplifyNode(a.With(u, src))
}

func (e *emission) userBuffer(node *ir.UOp) int {
	if i, ok := e.user[node]; ok {
		return i
	}
	arg := node.Arg.(ir.BufferArg)
	b := state.Buffer{UserID: arg.ID, DType: node.DType, Shape: node.Src, Format: arg.Format}
	if arg.Format == "" {
		b.Bytes = sizeBound(e.s, node.Src) * int64(node.DType.Size())
	}
	e.out.Buffers = append(e.out.Buffers, b)
	e.user[node] = len(e.out.Buffers) - 1
	return e.user[node]
}

func (e *emission) tempBuffer(node *ir.UOp) int {
	id := node.Arg.(ir.ValueArg).ID
	if i, ok := e.temp[id]; ok {
		return i
	}
	shape := node.Src
	if len(shape) == 0 {
		shape = []*ir.UOp{e.s.A.Index(1)}
	}
	e.out.Buffers = append(e.out.Buffers, state.Buffer{
		UserID: -1, DType: node.DType, Shape: shape,
		Bytes: sizeBound(e.s, shape) * int64(node.DType.Size()),
	})
	e.temp[id] = len(e.out.Buffers) - 1
	return e.temp[id]
}

// sizeBound is the number of elements of a shape at the upper bounds of its
// symbols.
func sizeBound(s *state.State, shape []*ir.UOp) int64 {
	n := int64(1)
	for _, extent := range shape {
		hi := s.Bounds.Of(extent).Hi
		var ok bool
		if n, ok = ir.CheckedMul(n, max(hi, 0)); !ok || hi == ir.PosInf {
			s.Fail("extent %s of a buffer has no upper bound", expr.ExtentText(extent))
			return 0
		}
	}
	return n
}

// kernelName describes a kernel by its structure: what it does, the extents of
// its stores and those of its reduces, outer loops first.
func kernelName(sink *ir.UOp) string {
	kind := "map"
	var reduced []*ir.UOp
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpReduce {
			continue
		}
		if u.Arg.(ir.ReduceArg).Op == ir.OpInvalid {
			kind = "cascade"
		} else if kind == "map" {
			kind = "reduce"
		}
		if r := u.ReduceRange(); !slices.Contains(reduced, r) {
			reduced = append(reduced, r)
		}
	}
	ir.SortNodes(reduced)
	var b strings.Builder
	b.WriteString(kind)
	if len(sink.Src) > 1 {
		fmt.Fprintf(&b, "%d", len(sink.Src))
	}
	for _, r := range sink.Src[0].Ranges() {
		b.WriteString("_" + expr.ExtentText(r.Src[0]))
	}
	for i, r := range reduced {
		if i == 0 {
			b.WriteString("_r")
		}
		b.WriteString("_" + expr.ExtentText(r.Src[0]))
	}
	return b.String()
}
