// Package bench measures the speed of models: prompt and decode rates with
// their spread, bytes and launches of a step, and the memory bandwidth that the
// same machine gives in the same run, so that a rate can be judged.
//
// Start at bench.go; kernels.go is the table of single kernels, grid.go a list of
// models to measure and which of their kernels are below a floor, memory.go what
// the operating system says about this process.
package bench
