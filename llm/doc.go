// Package llm runs language models from GGUF files: it turns metadata into a
// Config, weights into graph inputs, an architecture into a tensor graph of one
// step, and drives steps to generate text.
//
// Model definitions are plain compositions of package nn. Nothing here says how
// a step is computed; below package engine nothing knows that it is a model.
//
// Start at config.go, then transformer.go, step.go and session.go.
package llm
