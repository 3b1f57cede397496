// Package ptxemu interprets PTX: it parses the text of a module and runs its
// kernels, so that everything up to a launch is tested without a GPU.
//
// A warp is 32 lanes that execute one instruction together under a mask; at a
// branch they part and meet again at its immediate post-dominator. Blocks,
// warps and the two sides of a branch run in random order (from a seed), so a
// result that depends on the order shows.
//
// What is wrong on a GPU is an error here, with the line and the thread: an
// address outside of its allocation or not a multiple of the access's width; a
// read of a register or of a byte that nothing has written; two threads that
// touch one byte of shared memory, one of them writing, without a barrier
// between; a barrier, a shuffle or a matrix product that not all of its threads
// reach together.
//
// Arithmetic is exact to the bit where PTX defines it; the .approx functions
// are rounded exactly here, which a GPU does not do. Flushing of subnormals
// (.ftz) but by approximations, calls, textures and indirect branches are refused.
//
// parse.go reads the text, code.go turns instructions into closures over
// registers of 32 lanes, warp.go executes them, grid.go runs blocks.
package ptxemu
