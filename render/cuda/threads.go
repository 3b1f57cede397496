package cuda

import (
	"fmt"
	"strings"

	"tgc/ir/program"
	"tgc/render/gpu"
)

// Instructions of threads and warps.

var threadHelpers = map[program.Op]string{
	program.WaitGrid: "grid_wait", program.LaunchNext: "grid_launch_next", program.Fence: "fence_device",
	program.WaitCopies:    "copies_wait",
	program.ClusterArrive: "cluster_arrive", program.ClusterWait: "cluster_wait",
}

// Do prints an instruction without a result.
func (r *printer) Do(in *program.Instr) {
	switch in.Op {
	case program.Barrier, program.SyncWarp, program.ClusterArrive:
		r.showStores()
	}
	switch {
	case in.Op == program.Barrier && in.Int > 0:
		r.line(`asm volatile("bar.sync 0, %d;" : : : "memory");`, in.Int)
	case in.Op == program.Barrier:
		r.line("__syncthreads();")
	case in.Op == program.SyncWarp:
		r.line("__syncwarp();")
	default:
		r.line("%s();", r.call(threadHelpers[in.Op]))
	}
}

// Thread is a field of a variable that C has.
func (r *printer) Thread(axis byte) operand { return r.let(gpu.I32, "(int)threadIdx.%c", axis) }

// Peer is a generic pointer.
func (r *printer) Peer(base string, block operand) operand {
	o := operand{Name: r.name("a")}
	r.line("char* %s = %s(%s, %s);", o.Name, r.call("cluster_peer"), base, as(block, gpu.I32))
	return o
}

// Shuffle is one function.
func (r *printer) Shuffle(o operand, t gpu.Type, other operand) operand {
	mask := as(other, gpu.I32)
	if t == gpu.Bool {
		return r.let(t, "__shfl_xor_sync(0xffffffffu, %s ? 1u : 0u, %s) != 0", text(o), mask)
	}
	return r.let(t, "__shfl_xor_sync(0xffffffffu, %s, %s)", as(o, t), mask)
}

// Mma is inline assembly: the functions of CUDA C hide which lane holds what.
func (r *printer) Mma(in *program.Instr, shape string) {
	acc, x, y := in.Args[0], in.Args[1], in.Args[2]
	t := r.TypeOf(acc)
	letters := map[gpu.Type]string{gpu.F64: "d", gpu.F32: "f", gpu.I32: "r", gpu.U32: "r"}
	letter := letters[t]
	out := r.Variables(in.Result)
	var outputs, inputs, fragments []string
	next := 0
	place := func(n int) {
		fragments = append(fragments, "{"+numbered(next, n)+"}")
		next += n
	}
	for _, o := range out {
		outputs = append(outputs, fmt.Sprintf("%q(%s)", "="+letter, o.Name))
	}
	place(len(out))
	for _, v := range []*program.Value{x, y} {
		words, of := r.Fragment(v)
		place(len(words))
		for _, o := range words {
			inputs = append(inputs, fmt.Sprintf("%q(%s)", letters[of], text(o)))
		}
	}
	place(len(out))
	for i := range out {
		inputs = append(inputs, fmt.Sprintf("%q(%s)", letter, as(r.Lane(acc, i), t)))
	}
	r.line(`asm volatile("mma.sync.aligned.%s %s;"`, shape, strings.Join(fragments, ", "))
	r.line("\t: %s", strings.Join(outputs, ", "))
	r.line("\t: %s);", strings.Join(inputs, ", "))
}
