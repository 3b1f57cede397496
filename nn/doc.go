// Package nn holds the layers that models are built of, as functions on lazy
// tensors: each returns new graph nodes and computes nothing. No layer is
// opaque: what fuses is found by the compiler.
package nn
