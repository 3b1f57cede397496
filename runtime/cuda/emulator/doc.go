// Package emulator is a GPU that is not there: a driver.Driver whose kernels run
// on package ptxemu. What package cuda does above a driver, and every kernel that
// is rendered, runs on any machine, and what a GPU would get wrong in silence is
// an error here: addresses outside of an allocation or not aligned, reads of
// what nothing wrote, races on shared memory, and, with programmatic dependent
// launch, a kernel that touches ahead of its wait what those before it write.
//
// Queues are lazy: work runs when somebody waits for it, so that a host which
// reads too early gets old bytes. Kernels that do not depend on each other run in
// random order, blocks and warps too, and a kernel after a programmatic edge
// begins before the one ahead of it has ended. All order comes from a seed.
//
// Machine code is the PTX text itself. Registers are counted by liveness; there
// is no limit on them and no spilling.
//
// Start at driver.go, then graph.go and replay.go.
package emulator
