// Package programtest makes programs for tests of what evaluates or renders
// them: one elementwise op on every legal combination of dtypes (case.go),
// random programs over all instructions (generate.go), and matrix products of
// warpgroups (group.go).
package programtest
