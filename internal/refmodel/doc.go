// Package refmodel runs language models in plain Go, in float64, one token at a
// time: the reference that compiled models are compared with when the recorded
// answers do not reach (other shapes, long contexts, generated models) or when a
// fault has to be located.
//
// It is independent on purpose. It shares the file reader with the rest of tgc
// and nothing else: block decoding is written again as loops over bytes, and the
// layers as loops over slices, without graphs, formats or layers of other
// packages. Nothing here is fast, nothing here is approximate: weights are the
// exact f32 values of the blocks, everything after them is float64.
//
// A State's Hook sees every intermediate value under the name that llama.cpp
// gives it ("embd", "Qcur.0", "l_out.0", "result_norm" ...), so that the first
// layer with a wrong value can be named.
//
// Start at step.go.
package refmodel
