// Package gguf reads and writes GGUF model files: metadata, and named, typed,
// packed tensors. It is a leaf of the house: it ends at bytes with a type and a
// shape, and knows neither what a model is nor how a block decodes (package
// format's table does).
//
// Reading maps the file and checks everything that can be checked without
// touching tensor data, so that opening costs the metadata and not the weights.
// Files are untrusted: every length is compared with the bytes that remain
// before anything is allocated, and every error says file, place, what was
// found and what was wanted. Start at Open in file.go, then parse.go.
//
// Writing collects metadata and tensors in a Writer, which asks for tensor bytes
// chunk by chunk, in parallel, straight into the file or into memory.
package gguf
