// Package kernel turns one kernel and a plan into a linear program (pipeline
// form 3 to 4).
//
// Before: SINK of STOREs over RANGEs and a Plan, a list of Opts that says how
// each range runs. After: a program.Program with a prologue (once per worker)
// and one grid loop over flat work units.
//
// The steps, one file each:
//
//	axes.go      names the ranges of a kernel: s0.. stores, r0.. reduces, z0.. stages
//	legality.go  which Opts a kernel and a target accept, with the reason if not
//	apply.go     splits ranges into digits, each with a role (grid, serial, unroll, lane)
//	hoist.go     the STAGE Opt: values move into arrays filled once per worker or tile
//	pack.go      the PACK Opt: lanes that are words of packed bytes; word.go lowers them
//	scope.go     coordinates, and the stack of open loops
//	expr.go      expressions to SSA values, each in the outermost loop it can stand in
//	wide.go      slow factors as vectors, contraction to fma
//	reduce.go    loops with carried accumulators; tuple.go the same for tuples
//	memory.go    loads and fields: patterns of lane addresses; store.go, stage.go
//	prefetch.go  streamed buffers; preload.go, pipeline.go what a GPU loads ahead,
//	             rowloop.go the registers for it
//
// Plans, the axes that they name and which Opts are legal stand in package plan.
//
// The package knows no model, no quantised type and no device beyond the
// numbers of a target.Desc. Which plan is good is package heuristic's business.
// Start at lower.go.
package kernel
