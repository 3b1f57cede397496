// Package plan says how a kernel can run: plans, their Opts, and the axes of a
// kernel that Opts name.
//
// A Plan is data: a list of Opts, each one row of the table in opts.go. Read
// distributes them over the axes of a kernel and refuses those that the kernel
// or the target does not accept. Package shape then carries a plan out.
//
//	opts.go       the table of Opts; read.go how those with axes of their own are read
//	plan.go       the text form
//	axes.go       names of ranges: s0.. stores, r0.. reduces, z0.. stages
//	reading.go    a plan while it is read
//	legality.go   what a kernel and a target accept, with the reason if not
//	axisplan.go   what the Opts say about one axis
//	role.go       how the points of a range run
//	free.go       which ranges a value depends on
//	boundaries.go where index expressions cut a range
package plan
