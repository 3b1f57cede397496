// Package tegra brings a Jetson Orin's GPU up through its kernel driver (nvmap and
// nvgpu of L4T r36): address space, group, channel, memory, doorbell. It does so through
// a port.Port, which is the operating system (package kernel) or an emulator.
//
// Nobody has run it on a board yet; what it does follows the kernel's sources and what
// others recorded on one (docs/jetson.md).
//
// abi.go has requests and structures, board.go the order, memory.go buffers, fault.go
// what went wrong.
package tegra
