// Package shape carries a plan out on a kernel.
//
// Before: a kernel as the schedule made it, and a plan. After: a Kernel, whose
// ranges all are sub-axes with a role (grid, serial, unroll, lane, thread); which
// values lie in arrays is decided. The expressions stay a graph: package lower
// writes the program.
//
// Start at passes.go, the table of steps: most have a file of their own, by the name
// of the row. state.go is what they hand on, text.go and parse.go its text form,
// verify.go its contract, and kernel.go what lowering reads.
//
// What several steps need:
//
//	split.go       ranges into sub-axes (subaxes.go); tile.go the reduces of a softmax
//	staging.go     values into arrays; stagesum.go sums of what lies in one
//	matrixtile.go  the lanes and unrolled instances of a matrix instruction
//	terms.go       of how many narrow floats a factor is the sum
//	threads.go     the threads of a block for which a plan asks
package shape
