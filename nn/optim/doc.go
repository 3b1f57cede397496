// Package optim holds optimisers, learning-rate schedules and gradient clipping
// as graph operations: an update assigns weights and its own state in place, so
// that forward pass, backward pass and update are one captured step. The state
// (momenta, moments) lives in buffers registered in a tree of parameters, and
// with the count of steps it is all that a run needs to resume.
//
// Groups give parts of a model optimisers and rates of their own; Average says how weights
// are averaged; Plateau lowers a rate by a value that is watched, on the host.
package optim
