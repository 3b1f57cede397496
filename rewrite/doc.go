// Package rewrite turns graphs into equal, simpler graphs by named rules.
//
// A Rule is data: two patterns, guards with a text, the algebra in a doc
// string. Rules stand in a Set, which states the measure that every rule of it
// lowers. An Engine applies sets bottom-up to a fixpoint, visits each node a
// constant number of times, does not recurse on graph depth and names the
// rules of a cycle. Tests check sets by sampling (check_test.go).
//
// Index arithmetic (dtype Idx) is no list of patterns: sums are brought to a
// linear normal form, and division, remainder, comparison and minimum work on
// forms and bounds (index_*.go). These rules are Go code.
//
// Simplify is the one entry that other packages need: every set of this
// package at once. It comes after any pass that builds indices or substitutes
// ranges. Start at rule.go, then engine.go, then sets.go for what exists.
package rewrite
