package gguf

import "math"

const maxInt = math.MaxInt

// Limits on what a file may ask for. They bound time and memory on hostile
// files, sparse ones included, and lie far beyond any real model: the largest
// heads measure some tens of megabytes, the most tensors some thousands.
const (
	maxHead       = 256 << 20 // bytes of metadata and tensor list
	maxKeys       = 1 << 20
	maxTensors    = 1 << 20
	maxKeyLength  = 1<<16 - 1 // bytes, from the format's description
	maxNameLength = 64        // bytes of a tensor's name, likewise
	maxDims       = 4         // likewise
	maxDepth      = 8         // of arrays in arrays
	minAlignment  = 8         // so that every scalar in a mapped tensor is aligned
	maxShards     = 1<<16 - 1 // split.count is a uint16
)
