// Package llvm renders programs as LLVM IR (pipeline form 4 to 5), built with
// llir/llvm. Before: a program. After: the text of one module with one
// exported function, which runtime/cpu compiles. Render is a pure function.
//
// The module is written for libLLVM 13 to 22: pointers are typed, bf16 and
// f8 are integers, f16 is an integer except inside of its two conversions, no
// fast-math flag appears, and no operation is left that LLVM would turn into a
// call of libm. Every value of the result is defined by the program alone, so
// that runtime/interp and a CPU agree bit for bit (NaN payloads excepted).
//
// The entry has the C ABI
//
//	void NAME(void **args, int64_t lo, int64_t hi)
//
// args[i] is Params[i]: an address, or the value of a VAR. It runs the
// prologue, then the work units [lo, hi).
//
// Start at render.go; alu.go and cast.go hold the exact arithmetic.
package llvm
