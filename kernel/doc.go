// Package kernel turns one kernel and a plan into a linear program (pipeline
// form kernel to program).
//
// Before: SINK of STOREs over RANGEs and a plan.Plan, a list of Opts that says how
// each range runs. After: a program.Program with a prologue (once per worker)
// and one grid loop over flat work units. Three packages do the work:
//
//	kernel/plan   plans, the axes that they name, and which Opts are legal
//	kernel/shape  carries a plan out: ranges become sub-axes, each with a role
//	kernel/lower  writes the program of a shaped kernel
//
// The packages know no model, no quantised type and no device beyond the
// numbers of a target.Desc. Which plan is good is package heuristic's business.
package kernel
