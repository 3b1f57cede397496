// Package gpu selects instructions of NVIDIA GPUs for programs (pipeline form 4 to
// 5), and holds how a rendered kernel is launched. Before: a program. After: calls
// of a Printer in order, each one selected instruction; render/ptx and render/cuda
// are the printers.
//
// What is decided here, once for both: in which type a value is held (an index
// whose bounds fit, in 32 bits), which vectors stay packed in words and which byte
// permute moves their lanes, how bytes become floats without a conversion unit,
// which additions of constants become offsets of addresses, how wide an access is
// and past which caches it goes, which arrays need no memory. A printer decides
// how its language spells that: PTX has an instruction for each step, CUDA C
// expressions.
//
// A vector is one variable per lane, but elements of one and two bytes are packed,
// four or two to a word: masks, shifts and dot products work on whole words, and
// lanes are taken apart only where an op needs them.
//
// Start at select.go; printer.go is what a language must print, values.go says how
// values are held, memory.go how alignment becomes widths.
package gpu
