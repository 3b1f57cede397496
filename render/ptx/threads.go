package ptx

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Instructions of threads and warps.

var threadOps = map[program.Op]string{
	program.SyncWarp: "bar.warp.sync -1", program.LaunchNext: "griddepcontrol.launch_dependents",
	program.Fence: "fence.acq_rel.gpu", program.WaitCopies: "cp.async.wait_all",

	// Releases and acquires, unless it says otherwise.
	program.ClusterArrive: "barrier.cluster.arrive.aligned",
	program.ClusterWait:   "barrier.cluster.wait.aligned",
}

// Do prints an instruction without a result.
func (r *printer) Do(in *program.Instr) {
	switch in.Op {
	case program.Barrier:
		r.barrier(in.Int)
	case program.WaitGrid:
		r.waitGrid()
	case program.SyncWarp, program.ClusterArrive:
		r.showStores()
		r.ins("%s", threadOps[in.Op])
	default:
		r.ins("%s", threadOps[in.Op])
	}
}

// waitGrid waits for the grid before. The wait is in a loop that runs once
// (a grid has at least one block along z, which ptxas does not know): ptxas
// takes loads of constant memory across a wait in straight code, so that weights
// were loaded after it, but not into a loop.
func (r *printer) waitGrid() {
	head, blocks, again := r.label(), r.reg(gpu.U32), r.reg(gpu.Bool)
	r.place(head)
	r.ins("griddepcontrol.wait")
	r.ins("mov.u32 %s, %%nctaid.z", blocks.Name)
	r.ins("setp.eq.u32 %s, %s, 0", again.Name, blocks.Name)
	r.ins("@%s bra %s", again.Name, head)
	r.blocks = blocks
}

// mostBlocks is how many blocks a grid has along z, at most.
const mostBlocks = 65535

// barrier lets the threads of a block meet, or the first of them; 0: all. After a wait it is in a loop that
// runs once, as the wait is: arithmetic on weights that are still on their way
// would be moved before it, and the block would stop before its barrier.
// Each loop needs a condition of its own, as ptxas learns from the last one.
func (r *printer) barrier(threads int64) {
	r.showStores()
	meet := "bar.sync 0"
	if threads > 0 {
		meet += fmt.Sprintf(", %d", threads)
	}
	if r.blocks.Literal() || r.loops > 0 {
		r.ins("%s", meet)
		return
	}
	head, again := r.label(), r.reg(gpu.Bool)
	r.barriers++
	r.place(head)
	r.ins("%s", meet)
	r.ins("setp.eq.u32 %s, %s, %d", again.Name, r.blocks.Name, mostBlocks+r.barriers)
	r.ins("@%s bra %s", again.Name, head)
}

// Thread is a special register.
func (r *printer) Thread(axis byte) operand {
	return r.convert("mov.u32", gpu.U32, fmt.Sprintf("%%tid.%c", axis))
}

// Peer maps an address.
func (r *printer) Peer(base string, block operand) operand {
	block = r.Hold(block, gpu.U32)
	return r.convert("mapa.shared::cluster.u32", gpu.U32, fmt.Sprintf("%s, %s", r.symbol(base), bits(block, gpu.U32)))
}

// Shuffle exchanges registers of 32 bits.
func (r *printer) Shuffle(o operand, t gpu.Type, other operand) operand {
	exchange := func(o operand) operand {
		d := r.reg(gpu.U32)
		o = r.Variable(o, gpu.U32)
		r.ins("shfl.sync.bfly.b32 %s, %s, %s, 31, -1", d.Name, o.Name, b32(other))
		return d
	}
	switch classOf(t) {
	case predicate:
		return r.NotZero(gpu.Word, exchange(r.Pick(o, literal(1), operand{}, gpu.U32)))
	case wide:
		low, high, d := r.reg(gpu.U32), r.reg(gpu.U32), r.reg(t)
		o = r.Variable(o, t)
		r.ins("mov.b64 {%s, %s}, %s", low.Name, high.Name, o.Name)
		low, high = exchange(low), exchange(high)
		r.ins("mov.b64 %s, {%s, %s}", d.Name, low.Name, high.Name)
		return d
	}
	return exchange(o)
}

// Mma is one instruction.
func (r *printer) Mma(in *program.Instr, shape string) {
	names := func(words []operand, t gpu.Type) string {
		return fragment(lists.Map(words, func(o operand) operand { return r.Variable(o, t) }))
	}
	c := names(r.Storage(in.Args[0]), r.StorageType(in.Args[0]))
	a, b := names(r.Fragment(in.Args[1])), names(r.Fragment(in.Args[2]))
	out := r.Variables(in.Result)
	r.ins("mma.sync.aligned.%s %s, %s, %s, %s", shape, fragment(out), a, b, c)
}
