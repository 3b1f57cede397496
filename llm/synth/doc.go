// Package synth makes full-size models with random weights: tensor names,
// shapes, metadata and the mixture of quantised types are those of published
// files, only the numbers and the vocabulary are made up. A model of gigabytes
// is ready in about a second, so speed can be measured, kernels compiled and
// tests run without downloading anything.
//
// The weights are valid blocks of their type with finite scales, zero mean and a
// spread that keeps activations in range through all layers; they depend on the
// seed alone, never on the number of processors.
//
// shape.go holds the table of models, custom.go reads descriptions of others,
// mixtures.go is the table of mixtures and mixture.go how one gives a tensor its type,
// layout.go the tensors of an architecture, blocks.go the random blocks, vocabulary.go
// and metadata.go the rest of the file. Start at synth.go.
package synth
