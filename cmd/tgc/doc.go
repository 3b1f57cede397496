// Command tgc compiles and runs language models: generate text from a GGUF
// file, look at the kernels that a step is compiled to, measure speed.
//
// Here flags are parsed, packages called and results printed; whatever decides
// or computes lives in a package below. One file a command; main.go says how a
// command ends (exit status, signals, the form of an error), output.go how
// results are printed.
package main
