// Package testkit is how the pipeline is tested as a whole: random tensor
// graphs with contents, an eager model with sound error bounds, and ways to run a
// graph through the compiler. Mutants that its tests and those of engine must
// notice are beside the tests.
//
// The eager model (eager.go) computes a graph op by op like interp.EvalTensor,
// but carries for every element an error bound and the sum of the absolute
// values of its terms. Two evaluations may differ by that bound and by no more:
// values that no sum, no transcendental function and no cancellation reached
// have the bound zero and must be equal bit for bit.
//
// The generator (generate.go and the ops_*.go tables) keeps only nodes that the
// eager model finds tame: finite, with small bounds, so that a wrong value
// cannot hide behind a large tolerance.
package testkit
