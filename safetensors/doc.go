// Package safetensors reads and writes the safetensors file format: named
// tensors as raw little-endian bytes, with a dtype and a shape, behind a header
// in JSON. It is a leaf of the house, like package gguf: it ends at bytes.
//
// A file is the header's length as 8 bytes, the header, and the data:
//
//	{"__metadata__": {"key": "text", ...},
//	 "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//
// Offsets count from the end of the header. Tensors lie without gaps or overlaps
// and fill the data; shapes may hold 0 and may be empty (a scalar).
//
// Reading maps the file and checks the whole header against it, so that opening
// costs the header and not the data. Files are untrusted. Start at Open.
package safetensors
