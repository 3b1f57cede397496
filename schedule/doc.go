// Package schedule turns a tensor graph into kernels (pipeline form 1 to 2).
//
// Before: movement ops, one graph, SINK(ASSIGN...). After: launches of kernels,
// each SINK(STORE...) over RANGEs with no movement op left, plus the buffers
// they use: the user's, and temporaries planned into one arena.
//
// The unit of every rule is a value, P[r1..rn] := body, an expression over its
// own ranges that reads other values as LOAD(VALUE P, index...). Rangeify (R0)
// cuts the graph into values; the algebra rewrites bodies once each; placement
// inlines values into their readers to a fixpoint; what is left is stored: one
// value, one store. Then each kernel's loops are unified, kernels of one
// dependence level become one launch (PAR), and memory is planned.
//
// The rules know shapes, formats as FIELD reads, and integer cost constants
// (Profile). They know no device, no Opt, no model and no quantisation type.
//
// Start at schedule.go (the phases as a table), then value.go and rangeify.go.
package schedule
