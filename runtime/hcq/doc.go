// Package hcq is the device that runs programs on an NVIDIA GPU through the hardware's
// own command queue, without the vendor's driver library: it places machine code in
// memory, writes launch descriptors and pushbuffers, and rings the doorbell. What brings
// memory and a channel is a Board (package tegra: a Jetson's kernel driver).
//
// A step is built when it is recorded: descriptors, constant banks and words lie in
// memory of its own and do not change any more, but for the parameters that hold the
// values of variables. A run puts an entry for the step's words into the ring, and one
// for a few words that signal the timeline: a counter in memory that says how far the
// GPU is, and so what may be written again.
//
// Start at board.go, then device.go, record.go and queue.go. Package word has the words,
// package cubin reads machine code.
package hcq
