// Package engine is the pipeline: a tensor graph goes in, a step that a device
// replays comes out. compile.go is the whole way on one page, as a table of
// passes; step.go captures and replays; manifest.go describes the kernels (package traffic counts bytes and operations);
// config.go is the one place where options are read.
//
// A broken invariant of the compiler, a panic below, is caught here and becomes
// a *BugError with the pass and a reproducer.
package engine
