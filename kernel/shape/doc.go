// Package shape carries a plan out on a kernel.
//
// Before: a kernel as the schedule made it, and a plan. After: a Kernel, whose
// ranges all are sub-axes with a role (grid, serial, unroll, lane, thread); which
// values lie in arrays is decided. The expressions stay a graph: package lower
// writes the program.
package shape
