package cuda

import (
	"fmt"
	"strings"

	"tgc/ir"
	"tgc/ir/program"
)

// Instructions of threads and warps.

func (r *renderer) threads(in *program.Instr) error {
	switch in.Op {
	case program.ThreadIndex:
		r.threadIndex(in)
	case program.Barrier:
		r.line("__syncthreads();")
	case program.SyncWarp:
		r.line("__syncwarp();")
	case program.ShuffleLane:
		r.shuffleLane(in)
	case program.WaitGrid:
		if r.desc.SM >= 90 {
			r.line("%s();", r.call("grid_wait"))
		}
		r.waited = true
	case program.LaunchNext:
		if r.desc.SM >= 90 {
			r.line("%s();", r.call("grid_launch_next"))
		}
	case program.Fence:
		r.line("%s();", r.call("fence_device"))
	case program.Atomic:
		return r.atomic(in)
	case program.Mma:
		return r.mma(in)
	case program.AsyncCopy:
		to, from := r.values[in.Args[0].ID].address, r.values[in.Args[1].ID].address
		return r.async("%s(%s, %s);", r.call(fmt.Sprintf("copy_async%d", in.Count)), to, from)
	case program.AsyncCommit:
		return r.async("%s();", r.call("copy_async_commit"))
	case program.AsyncWait:
		return r.async(`asm volatile("cp.async.wait_group %d;" : : : "memory");`, in.Count)
	case program.Dot4:
		r.dot4(in)
	default:
		return fmt.Errorf("a GPU has no %s", in.Op)
	}
	return nil
}

func (r *renderer) threadIndex(in *program.Instr) {
	axes := r.program.Block
	if len(axes) == 0 || axes[in.Lane] == 1 {
		r.set(in.Result, []operand{{t: int32Type}})
		return
	}
	axis := "xyz"[len(axes)-1-in.Lane]
	o := r.scopes.Once("thread "+string(axis), func() operand { return r.let(int32Type, "(int)threadIdx.%c", axis) })
	r.set(in.Result, []operand{o})
}

// shuffleLane exchanges whole variables.
func (r *renderer) shuffleLane(in *program.Instr) {
	mask := r.lane(in.Args[1], 0).as(int32Type)
	from, _ := r.storage(in.Args[0])
	out := make([]operand, len(from))
	t := r.storageType(in.Result)
	for i, o := range from {
		if t == boolean {
			out[i] = r.let(t, "__shfl_xor_sync(0xffffffffu, %s ? 1u : 0u, %s) != 0", o.text(), mask)
			continue
		}
		out[i] = r.let(t, "__shfl_xor_sync(0xffffffffu, %s, %s)", o.as(t), mask)
	}
	r.setStorage(in.Result, out)
}

// dot4 is one dp4a per lane; the types of its factors are those of the bytes.
func (r *renderer) dot4(in *program.Instr) {
	name := "dot4_"
	for _, a := range in.Args[1:] {
		if a.Type.Elem == ir.I8 {
			name += "s"
		} else {
			name += "u"
		}
	}
	x, y := r.words(in.Args[1]), r.words(in.Args[2])
	lanes := make([]operand, in.Result.Type.Lanes)
	for i := range lanes {
		lanes[i] = r.let(int32Type, "%s(%s, %s, %s)", r.call(name), x[i].text(), y[i].text(), r.lane(in.Args[0], i).as(int32Type))
	}
	r.set(in.Result, lanes)
}

// atomicNames are CUDA's functions, relaxed.
var atomicNames = map[ir.Op]string{
	ir.OpAdd: "atomicAdd", ir.OpMin: "atomicMin", ir.OpMax: "atomicMax",
	ir.OpAnd: "atomicAnd", ir.OpOr: "atomicOr", ir.OpXor: "atomicXor",
}

func (r *renderer) atomic(in *program.Instr) error {
	a := r.values[in.Args[0].ID].address
	if a.array != "" {
		return fmt.Errorf("an atomic access of an array without memory")
	}
	t := r.typeOf(in.Result)
	as := t
	if t == int64Type && in.Ir != ir.OpMin && in.Ir != ir.OpMax {
		as = uint64Type // the same bits; functions exist unsigned only
	}
	value := r.lane(in.Args[1], 0).as(as)
	call := fmt.Sprintf("%s(%s, %s)", atomicNames[in.Ir], a.pointer(as.String(), false), value)
	if as != t {
		call = fmt.Sprintf("(%s)%s", t, call)
	}
	r.set(in.Result, []operand{r.let(t, "%s", call)})
	return nil
}

// mma is inline assembly: the functions of CUDA C hide which lane holds what.
func (r *renderer) mma(in *program.Instr) error {
	acc, x, y := in.Args[0], in.Args[1], in.Args[2]
	shape := program.MmaOf(acc.Type, x.Type, y.Type)
	if r.desc.SM < shape.SM {
		return fmt.Errorf("%s has no mma.%s", r.desc.Name, shape.Name)
	}
	t := r.typeOf(acc)
	letter := map[ctype]string{float32Type: "f", int32Type: "r"}[t]
	out := make([]operand, acc.Type.Lanes)
	var outputs, inputs []string
	for i := range out {
		out[i] = r.declare(t)
		outputs = append(outputs, fmt.Sprintf("%q(%s)", "="+letter, out[i].name))
	}
	fragments := make([]string, 0, 4)
	next := 0
	place := func(n int) {
		fragments = append(fragments, "{"+numbered(next, n)+"}")
		next += n
	}
	place(len(out))
	for _, words := range [][]operand{r.words(x), r.words(y)} {
		place(len(words))
		for _, o := range words {
			inputs = append(inputs, fmt.Sprintf("%q(%s)", "r", o.text()))
		}
	}
	place(len(out))
	for i := range out {
		inputs = append(inputs, fmt.Sprintf("%q(%s)", letter, r.lane(acc, i).as(t)))
	}
	r.line(`asm volatile("mma.sync.aligned.%s %s;"`, shape.Name, strings.Join(fragments, ", "))
	r.line("\t: %s", strings.Join(outputs, ", "))
	r.line("\t: %s);", strings.Join(inputs, ", "))
	r.set(in.Result, out)
	return nil
}

func (r *renderer) async(format string, args ...any) error {
	if r.desc.SM < 80 {
		return fmt.Errorf("%s has no cp.async", r.desc.Name)
	}
	r.line(format, args...)
	return nil
}
