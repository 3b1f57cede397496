package main

import (
	"tgc/engine/traffic"
	"tgc/ir/program"
	"tgc/llm"
	"tgc/target"
)

// What loads do on an H200.
const (
	latency = 700  // ns, of one from memory
	reached = 0.97 // share of the bandwidth
)

// machine is what a device can do, by its target's numbers.
type machine struct {
	units, warp float64
	bandwidth   float64 // bytes a ns
	rate        float64 // instructions of threads a ns
	shared      int64   // bytes of a multiprocessor
	t           *target.Threads
}

func machineOf(desc *target.Desc) machine {
	return machine{
		units: float64(desc.Cost.Workers), warp: float64(desc.WarpSize), shared: int64(desc.SharedBytes), t: &desc.Threads,
		bandwidth: 1e6 / float64(desc.Cost.ByteDRAM) * reached,
		rate:      1e6 / (2 * float64(desc.Cost.Op)) * desc.Threads.Issue,
	}
}

// roofline is the least time of a kernel that reads some bytes and executes some
// instructions on a share of the device, in nanoseconds.
func (m *machine) roofline(bytes, instructions, share float64) float64 {
	return m.t.Start + latency + max(bytes/m.bandwidth, instructions/m.rate)/share
}

// instructionsOf counts what a program executes, all threads together.
func instructionsOf(p *program.Program) float64 {
	const register = 4 // bytes
	return traffic.Instructions(p, map[string]int64{llm.VarLength: depth + 1}, register)
}

// Limits of a multiprocessor of the architectures that are priced.
const (
	unitThreads = 2048
	unitBlocks  = 32
)

// priceOf is what a part is expected to cost, in nanoseconds, on which share of the
// device: as its plan was priced, or as its program is.
func (m *machine) priceOf(p *part) (ns, share float64) {
	if ns, share = p.Price(); ns > 0 {
		return ns, share
	}
	blocks, threads := float64(p.Program.Units()), float64(p.Program.Threads())
	resident := max(min(float64(int(unitThreads/threads)), unitBlocks), 1)
	if shared := program.SharedBytes(p.Program); shared > 0 {
		resident = max(min(resident, float64(m.shared/shared)), 1)
	}
	running := min(blocks, m.units*resident)
	flight := running * threads * float64(max(p.loads.flight, 1))
	memory := float64(p.bytes) / min(m.bandwidth, flight/latency)
	warps := running * threads / m.warp
	issue := p.instructions / (m.rate * min(1, warps/(m.units*m.t.Busy)))
	return m.t.Start + latency + max(memory, issue, m.chain(p)), 1
}

// chain is the time of a thread's iterations along a row, one after the other.
func (m *machine) chain(p *part) float64 { return float64(p.share.iterations) * m.t.Iteration }
