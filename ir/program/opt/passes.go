package opt

import (
	"tgc/ir/program"
	"tgc/target"
)

// tileRegisters is how many registers of a thread wait for what the next iteration's
// shared-memory tiles are made of.
const tileRegisters = 64

// Run runs the passes of a target over a program as package kernel writes it.
func Run(p *program.Program, desc *target.Desc) {
	if desc.Kind != target.GPU {
		return
	}
	ShareValues(p)
	DropBarriers(p)
	Pipeline(p, tileRegisters, int64(desc.SharedBytes))
	setCachePolicies(p)
	rematerialiseReads(p)
	orderRows(p)
	rotateLoops(p)
	hoistEarlyLoads(p)
	FoldLate(p, epilogueWeights)
	DelayValues(gridBody(p))
	advanceLoads(p)
}
