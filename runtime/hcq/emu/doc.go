// Package emu is the kernel driver and the GPU of a Jetson Orin that are not there
// (nvmap, nvgpu, ga10b): what a runtime asks of the operating system it asks a Machine,
// which answers with the driver's sizes, order, refusals and addresses, reads the words
// of the pushbuffers as the front end does, checks every launch as the scheduler, the
// memory unit and the multiprocessors would, and runs the kernel's PTX.
//
// It imports nothing of the runtime (package lint checks that): what a word means is
// written here a second time, from the vendor's pages, so that a mistake in a table
// shows. Which kernel a launch runs it finds by comparing the code in memory with the
// machine code that it was told of (Know).
//
// What hardware and driver accept in silence although it is a mistake is a Finding.
//
// Start at machine.go; space.go has the addresses, control.go the requests, front.go the
// words, launch.go the launches, code.go the kernels.
package emu
