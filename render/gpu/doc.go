// Package gpu holds what the renderers of NVIDIA GPUs share (pipeline form 4 to
// 5): how a rendered kernel is launched, which indices fit 32 bits, which
// arrays need no memory, how an access is cut into words. render/ptx and
// render/cuda print; nothing here does.
package gpu
