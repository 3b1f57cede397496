// Package data gives training its batches: datasets say what a sample is, a loader which
// samples a step takes.
//
//	samples := data.Table{data.Of("x", pictures, 28, 28), data.Of("y", digits)}
//	learned, unseen := data.Split(samples, 0.9, 1)
//	loader := data.NewLoader(learned, data.Options{Batch: 64, Shuffle: true})
//	for batch, err := range loader.Batches(ctx, 0, 1000) { .. }
//
// Batch n is a function of the loader's options and n alone: no position is kept anywhere, so
// a run that resumes at step n asks for batch n. Batches ahead of the one in use are made by
// goroutines of their own.
package data
