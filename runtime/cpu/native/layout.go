package native

// The structures below live outside the Go heap and are read and written by
// machine code, which knows the offsets through go_asm.h. They hold no Go
// pointers. Fields that different threads write are kept two cache lines
// apart, because x86 prefetches lines in pairs.

// control is shared by the workers of one pool.
type control struct {
	// epoch numbers the steps; raising it starts one. Workers that sleep
	// wait on it with a futex.
	epoch    uint32
	shutdown uint32 // workers end when it is set and epoch is raised
	profile  uint32 // 1: a barrier and a time stamp after each call
	_        uint32
	calls    uintptr // the step's first callRecord
	end      uintptr // after its last
	started  uint64  // time stamp at the start of a profiled step
	_        [128 - 40]byte

	sleepers uint32 // workers that are in, or on their way to, the futex
	_        [124]byte

	// arrived counts arrivals at barriers since the pool began; barrier
	// number n of a pool of W is open once arrived >= n*W.
	arrived uint64
	_       [120]byte

	// cancelled and faulted hold the epoch of the last step that was
	// stopped. Workers skip the rest of the calls of such a step, but go
	// through its barriers, so that they need not agree on when it stopped.
	cancelled uint32
	faulted   uint32
	spinTicks uint64 // how long an idle worker polls before it sleeps
	_         [112]byte
}

// workerBlock is one worker's own state, and what the fault handler finds.
type workerBlock struct {
	control uintptr
	index   uint64 // 0 to count-1
	count   uint64 // workers in the pool

	thread  uint64 // thread pointer of the thread that runs the worker
	active  uint32 // 1 while a kernel runs: its faults are ours
	epoch   uint32 // the last step seen
	call    uintptr
	arrives uint64 // value of control.arrived that opens the last barrier

	// Where a fault continues.
	savedSP uintptr
	savedPC uintptr

	// The last fault; faultSignal is 0 where there is none.
	faultSignal uint32
	faultCode   int32
	faultAddr   uintptr
	faultPC     uintptr

	// Arguments of sigaltstack and rt_sigprocmask (threads made here).
	altStack   uintptr
	altFlags   uint64
	altSize    uint64
	signalMask uint64

	_ [256 - 136]byte
}

// callRecord is one call of a step. Its size is one cache line.
type callRecord struct {
	fn          uintptr
	args        uintptr
	units       int64
	granularity int64
	granules    int64 // those that are dealt out before it begins: units / granularity, rounded up, or a part
	flags       uint64
	tick        uint64 // time stamp of its end in a profiled step
	queue       uintptr
}

// queue is what is left of a call's units when each worker has done its own: kernels that share take
// chunks of it while they run (Call.Shares). Renderers know its words.
type queue struct {
	next  int64 // the first unit that nobody has taken; raised by workers, also above end
	chunk int64 // units taken at once
	end   int64
	_     [128 - 24]byte
}

// flagBarrier: all workers wait for each other after this call.
const flagBarrier = 1
