// Package target holds machine descriptions: pure data, a leaf. Heuristics and
// cost models read these checked-in constants, never a measurement, so that a
// plan is a function of the graph and the description alone.
//
// target.go is the type, cpu.go the table of CPU levels and dot products,
// gpu.go the table of GPU architectures, and parse.go turns what --target says
// into a description.
package target
