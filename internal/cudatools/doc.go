// Package cudatools runs NVIDIA's assembler and disassembler, where they are
// installed: ptxas turns PTX into machine code and reports registers and
// spills, nvdisasm lists the instructions. Neither needs a GPU.
//
// They are looked for in the directory that TGC_CUDA_PATH names, in PATH,
// /usr/local/cuda*, Debian's and NixOS's places. Tests skip without them.
package cudatools
