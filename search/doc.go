// Package search finds plans for kernels by trying them on a device.
//
// A search starts from plans that are known (the heuristic's, the price's next best, some
// that are given), changes them by moves, and keeps the fastest few. No time counts before
// values do: a candidate's results are compared with the interpreter's at sampled points and
// with the heuristic's as a whole, from two seeds, twice for the same bits, between canaries,
// over poison. Whatever goes wrong with a candidate is its outcome.
//
//	moves.go    neighbours of a plan
//	beam.go     the search over plans of one kernel
//	bench.go    one kernel on a device: candidates lowered, compared, loaded, checked, timed
//	values.go   what a kernel must compute, and how far rounding may carry it
//	contents.go what its buffers hold
//	calls.go    its buffers, weights cold, and the time of a call
//	child.go    a bench in a process of its own, which may die
//	task.go     a kernel that another machine searches, and what it finds
//	spread.go   kernels of a step for workers on other machines (package lease)
//	step.go     the kernels of a whole step, and which plans make it faster
//
// Package database keeps what was found.
package search
