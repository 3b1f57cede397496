// Package heuristic chooses plans by hand-written rules: matrix-matrix product,
// matrix-vector product, attention, reduce, elementwise, in this order. Each
// rule either applies or declines, and says why in a Record with numbers.
//
// Rules look at meaning, never at shape of the graph alone: which operand of a
// sum is large and streamed once, which is small and used again. A CAST, the
// order of factors, a folded norm, a bias or another quantised type changes
// nothing. Choices are a function of the kernel, the target.Desc and the Knobs.
//
// Start at heuristic.go; analysis.go is what all rules share.
package heuristic
