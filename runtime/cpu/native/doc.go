// Package native runs compiled kernels: the CPU device's execution layer,
// after the object loader (package object).
//
// A Step is a list of launches in memory outside the Go heap. Pool.Run plays
// it with one native call: the calling thread is worker 0, and workers 1 to
// W-1 are threads that never return to Go. Inside one launch every call is
// cut into one slab of work units per worker; between launches there is a
// barrier. Go schedules nothing while a step runs and its collector is not
// held up by it.
//
// A kernel that faults (a bad address, an integer division by zero, an
// illegal instruction) does not end the program: a guard around each call
// turns the signal into a FaultError that names the kernel.
//
// The kernel ABI is the platform's C ABI:
//
//	void kernel(void **args, int64_t lo, int64_t hi, int64_t *queue)
//
// where args is an array of 8-byte slots (addresses or integer values) and
// [lo, hi) the work units to do. A kernel that shares (Call.Shares) goes on with what it takes
// out of the queue: it adds queue[1] to queue[0] at once, and what was there is the first of the queue[1]
// units that it does next, up to queue[2].
//
// Cost on 2 virtual Zen 5 cores, kernels that do nothing: a step 0.09 us with
// one worker and 0.3 us with two, a further launch 4 ns and 60 ns.
//
// Start at pool.go; step.go is the data that native code reads, layout.go
// its memory layout, and loop_*.s the worker loop, which is fixed machine
// code so that a pool needs no LLVM. Other architectures have the slower,
// unguarded loop of loop_generic.go. MeasureRead and MeasureFMA give the
// limits of the machine that kernels are compared with.
package native
