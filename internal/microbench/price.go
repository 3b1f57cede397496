package microbench

import (
	"math"

	"tgc/engine"
	"tgc/engine/traffic"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/target"
)

// priceOf counts the instructions and bytes of a compiled graph's kernels, each as long as
// the slower of the two, and an edge for each launch.
func priceOf(c *engine.Compiled) Side {
	var s Side
	desc, arena := c.Target, ir.NewArena()
	microseconds := 0.0
	for _, launch := range c.Launches {
		for _, call := range launch {
			k := call.Kernel
			s.Kernels = append(s.Kernels, k.Name)
			n := traffic.Instructions(k.Program, nil, instructionBytes(desc))
			read, written := traffic.Of(arena, arena.Import(k.AST), nil).Bytes()
			s.Instructions += n
			s.Bytes += read + written
			microseconds += kernelTime(desc, k.Program, n, float64(read+written))
		}
		microseconds += launchTime(desc)
	}
	s.Price = microseconds
	return s
}

// instructionBytes is what an instruction computes: a vector, or an element of a GPU's
// thread.
func instructionBytes(desc *target.Desc) int {
	if desc.Kind == target.GPU {
		return 4
	}
	return desc.VectorBytes
}

// kernelTime is how many microseconds a kernel's instructions take, or its bytes, where
// those take longer.
func kernelTime(desc *target.Desc, p *program.Program, instructions, bytes float64) float64 {
	cost, workers := &desc.Cost, float64(max(desc.Cost.Workers, 1))
	op, byteTime := float64(cost.Op), float64(cost.ByteCache)
	if desc.Kind == target.GPU {
		// An instruction of a thread is as long as a multiply-add, two operations.
		return max(2*instructions*op/filled(desc, p), bytes*byteTime) / 1e9
	}
	lanes := float64(max(desc.VectorBytes/4, 1))
	return max(instructions*lanes*op/min(float64(p.Units()), workers), bytes*byteTime) / 1e6
}

// filled is the share of a GPU that a kernel's threads keep busy: blocks have a
// multiprocessor each, and one issues at its full rate from so many warps on.
func filled(desc *target.Desc, p *program.Program) float64 {
	units := float64(p.Units())
	used := min(units, float64(max(desc.Cost.Workers, 1)))
	warps := math.Ceil(float64(p.Threads())/float64(max(desc.WarpSize, 1))) * units / used
	return used / float64(max(desc.Cost.Workers, 1)) * min(1, warps/max(desc.Threads.Busy, 1))
}

// launchTime is how many microseconds pass from the end of a kernel to the first
// instruction of the next one.
func launchTime(desc *target.Desc) float64 {
	return float64(desc.Cost.Launch)/1e6 + desc.Threads.Start/1e3
}
