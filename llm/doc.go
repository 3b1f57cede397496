// Package llm runs language models from GGUF files: it turns metadata into a
// Config, weights into graph inputs, an architecture into a tensor graph of one
// step, and drives steps to generate text.
//
// Model definitions are plain compositions of package nn. Nothing here says how
// a step is computed: layouts of weights, splits of sums and tiles are decided by
// the compiler, and what depends on a device (the largest step, the number of steps
// before the host looks) is read from its target.Tuning. Below this package nothing
// knows that it is a language model.
//
// Start at config.go, then transformer.go, step.go and session.go.
package llm
