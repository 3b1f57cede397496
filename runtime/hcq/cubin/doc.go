// Package cubin reads NVIDIA's machine code, ELF files that ptxas makes: which kernels
// there are, what a launch of each needs, and the bytes as they have to lie in memory,
// with the addresses filled in.
//
// Nothing is guessed: a section that would be loaded, a relocation or a symbol that is
// not known here is an error with its name.
//
// elf.go reads the file, info.go the attributes, image.go lays out and relocates.
package cubin
