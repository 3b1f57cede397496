// Package ptx renders programs as PTX (pipeline form 4 to 5), the assembly of
// NVIDIA GPUs from sm_75 on. Before: a program. After: the text of one module
// with one entry, which the driver's JIT or ptxas turns into machine code.
// Render is a pure function.
//
// What a program means on a GPU: the work units are the blocks of the grid, in
// flat order; the threads of a block all run the program. What stands before
// the GridLoop runs first in every block, then its body runs once with the
// block's own index (or, with Options.Persistent, with every gridDim-th one).
//
// Every value of the result is defined by the program alone, so runtime/interp,
// internal/ptxemu and a GPU agree bit for bit (NaN payloads excepted, and the
// approximations that target.Desc.ApproxMath allows): arithmetic says its
// rounding, fma stands only where the program says FMA, nothing flushes
// subnormals.
//
// Registers are untyped (.b32, .b64, .pred). A vector is one register per lane,
// but elements of one and two bytes are packed, four or two to a register:
// masks, shifts and dot products work on whole words, and lanes are taken apart
// only where an op needs them. A load is as wide as its proven alignment.
// 64-bit indices whose bounds fit are computed in 32 bits (bounds.go).
//
// Start at render.go; values.go says how values are held, memory.go how
// alignment becomes widths.
package ptx
