// Package schedule turns a tensor graph into kernels (pipeline form 1 to 2).
//
// Before: movement ops, one graph, SINK(ASSIGN...). After: launches of kernels,
// each SINK(STORE...) over RANGEs with no movement op left, plus the buffers
// they use: the user's, and temporaries planned into one arena.
//
// The unit of every rule is a value, P[r1..rn] := body, an expression over its
// own ranges that reads other values as LOAD(VALUE P, index...). The table of
// passes (passes.go) says what happens, in which order and why:
//
//	rangeify   cuts the graph into values
//	algebra    rewrites the body of each value
//	place      decides which values vanish into their readers
//	emit       makes kernels of those that are left: one value, one store
//
// Each is a package, over two that they share: state is what passes take and
// give, expr what is known of expressions. Arrows between packages point down:
// schedule, then the four, then state, then expr. A file is named for the row of
// the table that it implements.
//
// The rules know shapes, formats as FIELD reads, and integer cost constants
// (state.Profile). They know no device, no Opt, no model and no quantisation type.
//
// Start at passes.go, then state/value.go and rangeify/rangeify.go.
package schedule
