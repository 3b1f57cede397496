package schedule_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"tgc/ir"
	"tgc/packed"
	"tgc/pass"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

// rig is a graph with contents for its buffers.
type rig struct {
	t       *testing.T
	sink    *ir.UOp
	arena   *ir.Arena
	buffers map[int64]*interp.KernelBuffer
	vars    map[string]int64
	largest float64 // magnitude of any value stored by a run
	reverse bool    // run the kernels of a launch last to first: they are independent
	fail    func(format string, args ...any)
	want    map[int64]*interp.Array // see reference
}

// hopper are the options of a GPU with matrix instructions.
func hopper(t testing.TB) schedule.Options {
	t.Helper()
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	return schedule.OptionsFor(desc)
}

// newRig fills every buffer of a graph: floats at random, integers from ints
// (by name), packed data valid for its format.
func newRig(t *testing.T, g *tensor.Graph, vars map[string]int64, ints map[string][]int64) *rig {
	t.Helper()
	sink, err := g.Sink()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, arena: ir.NewArena(), buffers: make(map[int64]*interp.KernelBuffer), vars: vars, largest: 1, fail: t.Fatalf}
	r.sink = r.arena.Import(sink)
	rng := rand.New(rand.NewPCG(1, 2))
	names := make(map[int64]string)
	for _, b := range g.Buffers() {
		names[b.ID] = b.Name
	}
	for _, u := range ir.Toposort(r.sink) {
		if u.Op != ir.OpBuffer {
			continue
		}
		arg := u.Arg.(ir.BufferArg)
		n := 1
		for _, extent := range u.Src {
			v, ok := extent.Int()
			if !ok {
				v = ir.NewBounds().Of(extent).Hi
			}
			n *= int(v)
		}
		b := &interp.KernelBuffer{DType: u.DType, Format: arg.Format}
		if arg.Format != "" {
			f, _ := packed.Lookup(arg.Format)
			b.Bytes = packed.RandomBlocks(f, n/f.BlockElems, rng)
		} else {
			b.Data = make([]ir.Scalar, n)
			for i := range b.Data {
				switch {
				case u.DType.IsFloat():
					b.Data[i].F = ir.RoundFloat(u.DType, rng.NormFloat64())
				case ints[names[arg.ID]] != nil:
					b.Data[i].I = ints[names[arg.ID]][i]
				}
			}
		}
		r.buffers[arg.ID] = b
	}
	return r
}

// plan schedules the graph.
func (r *rig) plan(opt schedule.Options) *schedule.Schedule {
	r.t.Helper()
	a := ir.NewArena()
	opt.Control = &pass.Control{Verify: true}
	s, err := schedule.Run(context.Background(), a, a.Import(r.sink), opt)
	if err != nil {
		r.fail("%v", err)
		return nil
	}
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			if err := ir.VerifyKernel(k.AST); err != nil {
				r.fail("kernel %s: %v\n%s", k.Name, err, schedule.KernelText(k.AST))
			}
		}
		if r.reverse { // what runs in any order is checked by running it
			continue
		}
		if err := ir.VerifyKernel(parallel(a, s, l)); err != nil {
			r.fail("launch: %v\n%s", err, s)
		}
	}
	return s
}

// parallel is a launch as one PAR over the schedule's buffers: no kernel of it
// may read what another one writes.
func parallel(a *ir.Arena, s *schedule.Schedule, l schedule.Launch) *ir.UOp {
	sinks := make([]*ir.UOp, len(l.Kernels))
	for i, k := range l.Kernels {
		with := make(map[*ir.UOp]*ir.UOp)
		for _, u := range ir.Toposort(k.AST) {
			if u.Op == ir.OpParam {
				arg := u.Arg.(ir.ParamArg)
				arg.Slot, arg.Constant = k.Args[arg.Slot], false // kernels beside it may write it
				with[u] = a.Make(ir.OpParam, u.DType, arg, u.Src...)
			}
		}
		sinks[i] = a.Substitute(k.AST, with)
	}
	return a.Make(ir.OpPar, ir.Void, nil, sinks...)
}

// run evaluates a schedule on copies of the buffers and returns the contents of
// the user's buffers afterwards and the executed field reads by user buffer.
func (r *rig) run(s *schedule.Schedule, opt interp.KernelOptions) (map[int64]*interp.KernelBuffer, map[int64]map[string]int64) {
	r.t.Helper()
	out := make(map[int64]*interp.KernelBuffer)
	for id, b := range r.buffers {
		out[id] = &interp.KernelBuffer{DType: b.DType, Format: b.Format, Bytes: b.Bytes, Data: append([]ir.Scalar(nil), b.Data...)}
	}
	temps := make(map[int]*interp.KernelBuffer)
	reads := make(map[int64]map[string]int64)
	for li, launch := range s.Launches {
		for i := range launch.Kernels {
			k := launch.Kernels[i]
			if r.reverse {
				k = launch.Kernels[len(launch.Kernels)-1-i]
			}
			args := make([]*interp.KernelBuffer, len(k.Args))
			for slot, i := range k.Args {
				b := s.Buffers[i]
				if b.UserID >= 0 {
					args[slot] = out[b.UserID]
					continue
				}
				if temps[i] == nil {
					data := make([]ir.Scalar, int(b.Bytes)/b.DType.Size())
					for j := range data {
						data[j].F = math.NaN()
					}
					temps[i] = &interp.KernelBuffer{DType: b.DType, Data: data}
				}
				args[slot] = temps[i]
			}
			stats, err := interp.EvalKernel(context.Background(), k.AST, args, r.vars, opt)
			if err != nil {
				r.fail("launch %d, kernel %s: %v\n%s", li, k.Name, err, schedule.KernelText(k.AST))
			}
			for name, n := range stats.FieldReads {
				slot := 0
				for name[slot] != '.' {
					slot++
				}
				var index int
				for _, c := range name[:slot] {
					index = index*10 + int(c-'0')
				}
				id := s.Buffers[k.Args[index]].UserID
				if reads[id] == nil {
					reads[id] = make(map[string]int64)
				}
				reads[id][name[slot+1:]] += n
			}
		}
	}
	for _, b := range temps {
		for _, v := range b.Data {
			if a := math.Abs(v.F); a > r.largest && !math.IsInf(a, 0) {
				r.largest = a
			}
		}
	}
	return out, reads
}

// reference evaluates the tensor graph op by op, in float32: once, for all schedules.
func (r *rig) reference() map[int64]*interp.Array {
	r.t.Helper()
	if r.want != nil {
		return r.want
	}
	in := interp.TensorInputs{Buffers: make(map[int64]*interp.Array), Vars: r.vars}
	for _, u := range ir.Toposort(r.sink) {
		if u.Op != ir.OpBuffer {
			continue
		}
		id := u.Arg.(ir.BufferArg).ID
		b := r.buffers[id]
		shape := make([]int, len(u.Src))
		for i, extent := range u.Src {
			v, _ := extent.Int()
			shape[i] = int(v)
		}
		array := &interp.Array{DType: b.DType, Shape: shape, Data: b.Data}
		if b.Format != "" {
			array = r.decode(b, shape)
		}
		in.Buffers[id] = array
	}
	out, err := interp.EvalTensor(context.Background(), r.sink, in)
	if err != nil {
		r.t.Fatal(err)
	}
	r.want = out
	return out
}

// decode expands packed bytes by the format's own expression.
func (r *rig) decode(b *interp.KernelBuffer, shape []int) *interp.Array {
	r.t.Helper()
	a := ir.NewArena()
	n := 1
	for _, d := range shape {
		n *= d
	}
	width := shape[len(shape)-1]
	rows, cols := a.Index(int64(n/width)), a.Index(int64(width))
	f, _ := packed.Lookup(b.Format)
	row, k := a.Range(0, rows), a.Range(1, cols)
	buf := a.Make(ir.OpParam, ir.U8, ir.ParamArg{Slot: 1, Format: b.Format}, rows, cols)
	out := a.Make(ir.OpParam, ir.F32, ir.ParamArg{Slot: 0}, rows, cols)
	sink := a.Make(ir.OpSink, ir.Void, nil, a.Store(out, f.Decode(a, buf, row, k), []*ir.UOp{row, k}, []*ir.UOp{row, k}))
	array := interp.NewArray(ir.F32, shape...)
	_, err := interp.EvalKernel(context.Background(), sink, []*interp.KernelBuffer{{DType: ir.F32, Data: array.Data}, b}, nil, interp.KernelOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return array
}

// check compares every assigned buffer with the reference: the difference is
// bounded relative to the largest value of the buffer.
func (r *rig) check(s *schedule.Schedule, opt interp.KernelOptions, tolerance float64) map[int64]map[string]int64 {
	r.t.Helper()
	got, reads := r.run(s, opt)
	r.compare(s, got, r.reference(), tolerance)
	return reads
}

func (r *rig) compare(s *schedule.Schedule, got map[int64]*interp.KernelBuffer, want map[int64]*interp.Array, tolerance float64) {
	r.t.Helper()
	for id, array := range want {
		largest, worst, at := 1e-30, 0.0, 0
		for i, w := range array.Data {
			g := got[id].Data[i]
			if !array.DType.IsFloat() {
				if g.I != w.I {
					r.t.Fatalf("buffer %d element %d: got %d, want %d\n%s", id, i, g.I, w.I, s)
				}
				continue
			}
			if math.IsNaN(w.F) && math.IsNaN(g.F) {
				continue
			}
			if !math.IsInf(w.F, 0) {
				largest = max(largest, math.Abs(w.F))
			}
			if w.F == g.F {
				continue
			}
			if d := math.Abs(g.F - w.F); !(d <= worst) {
				worst, at = d, i
			}
		}
		if !(worst <= tolerance*largest) {
			r.t.Errorf("buffer %d: element %d is %v, want %v (error %g of largest %g)", id, at, got[id].Data[at].F, array.Data[at].F, worst, largest)
		}
	}
	if r.t.Failed() {
		r.t.Logf("schedule:\n%s", s)
	}
}
