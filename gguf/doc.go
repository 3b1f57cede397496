// Package gguf reads and writes GGUF model files: metadata, and named, typed,
// packed tensors. It ends at bytes with a type and a shape: how large the blocks of
// a type are, package packed's table says, and what a model is, no package here knows.
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
