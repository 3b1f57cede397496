// Package nn holds what models are built of, as functions on lazy tensors: each
// returns new graph nodes and computes nothing. No layer is opaque: what fuses
// is found by the compiler.
//
// Parameters is the tree of a model's named values, with initial distributions;
// package layer has layers as structs that register in it, package optim
// changes it by gradients, package train captures the whole step and runs it on
// what package data gives.
package nn
