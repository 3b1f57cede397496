// Command mutants plants small faults in the compiler, one at a time, and runs the
// tests that should notice. A fault that no test notices shows what is not tested.
//
//	go run ./internal/mutants [-only PART] [-again] [-list] [-write]
//
// faults.txt holds the faults, each a piece of source text and what takes its place:
//
//	fault write-after-read
//	in ir/program/opt
//	- if a.read[v] {
//	+ if false {
//	test ./ir/program/opt -run TestRewrites
//	test ./kernel
//	harmless values do not change: ...
//
// The text is looked for in all sources below a folder, not in a named file, and must
// be there once: code that moves takes its faults along. "in" may end with the name of
// a file, where the same text is in several. Lines after the first may be indented
// differently. The source tree stays as it is: "go test -overlay" reads the changed
// file instead, and all packages that do not need it come from the build cache. Tests
// run in order, those that probably notice first; the first failure ends a row.
//
// results.txt holds what came of each fault, and at which commit, so that a run goes on
// where the last one stopped; a row that was changed runs again. -write makes
// docs/mutants.md of it. The exit status is 1 if a fault survives for which faults.txt
// gives no reason (harmless), or does not apply, or does not compile.
//
// The mutations in the tests of internal/testkit and engine are others: they change
// graphs and programs, to show that
// verifiers and comparisons notice, not the compiler.
package main
