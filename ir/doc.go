// Package ir holds the graph that every pass of tgc reads and writes: the UOp,
// its dtypes, the one table of ops, bounds, the text form and the verifiers.
//
// Three pipeline forms are made of UOps, all immutable and hash-consed:
//
//  1. the tensor graph: nodes have shapes, movement ops exist (package tensor
//     builds it, package schedule consumes it);
//  2. kernels: SINK of STOREs over RANGEs, no movement op left (schedule
//     makes them, package kernel plans and lowers them);
//  3. planned kernels: form 2 beside a plan, which is a table and no rewrite.
//
// Form 4, the linear program, is package ir/program.
//
// Interning is per compilation: an Arena is made, filled and dropped whole.
// Names, roles and source positions are side tables, never identity, and
// nothing is ever ordered by creation or by map order.
//
// Start at uop.go, then op.go. Around them: scalar.go (what every op computes),
// bounds.go and linear.go (what is known about integers), text.go and parse.go
// (the text form), verify_tensor.go and verify_kernel.go (the contracts),
// canon.go (kernels up to renaming).
package ir
