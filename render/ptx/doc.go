// Package ptx renders programs as PTX (pipeline form 4 to 5), the assembly of
// NVIDIA GPUs from sm_75 on. Before: a program. After: the text of one module
// with one entry, which the driver's JIT or ptxas turns into machine code.
// Render is a pure function.
//
// What a program means on a GPU: the work units are the blocks of the grid, in
// flat order; the threads of a block all run the program. What is before
// the GridLoop runs first in every block, then its body runs once with the
// block's own index (or, with Options.Persistent, with every gridDim-th one).
//
// Every value of the result is defined by the program alone, so runtime/interp,
// internal/ptxemu and a GPU agree bit for bit (NaN payloads excepted, and the
// approximations that target.Desc.ApproxMath allows): arithmetic says its
// rounding, fma is printed only where the program says FMA or in the steps to
// a rounded reciprocal or root, of which only the first guess flushes subnormals.
//
// Package render/gpu selects the instructions; this package prints each. Registers
// are untyped (.b32, .b64, .pred).
//
// Start at render.go; variables.go has registers and literals.
package ptx
