package search

import (
	"fmt"
	"math"
	"strings"

	"tgc/engine/traffic"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime"
	"tgc/target"
)

// Figures are what is known of a program besides its time, to say why it takes it.
type Figures struct {
	Instructions float64 `json:"instructions"` // of all threads: of vectors on a CPU, of 4 bytes on a GPU
	Bytes        int64   `json:"bytes"`        // that the kernel must read and write, whatever its plan
	Blocks       int64   `json:"blocks"`       // work units
	Threads      int64   `json:"threads"`      // of a block
	Registers    int     `json:"registers,omitempty"`
	LocalBytes   int     `json:"local_bytes,omitempty"`  // of a thread: stack and spilled registers
	SharedBytes  int     `json:"shared_bytes,omitempty"` // of a block
	Occupancy    float64 `json:"occupancy,omitempty"`    // part of a multiprocessor's threads that run at once
}

// FiguresOf describes a program that was loaded on a target. bytes are what its kernel must read and
// write, vars the values for which it was timed.
func FiguresOf(exec runtime.Executable, desc *target.Desc, bytes int64, vars map[string]int64) *Figures {
	p := exec.Program()
	f := &Figures{Instructions: instructionsOf(p, desc, vars), Bytes: bytes, Blocks: p.Units(), Threads: p.Threads()}
	if m, ok := exec.(runtime.Measured); ok {
		s := m.Stats()
		f.Registers, f.LocalBytes, f.SharedBytes = s.Registers, s.LocalBytes, s.SharedBytes
		f.Occupancy = occupancy(f, desc)
	}
	return f
}

// instructionsOf counts what all threads of a program execute.
func instructionsOf(p *program.Program, desc *target.Desc, vars map[string]int64) float64 {
	return traffic.Instructions(p, vars, instructionBytes(desc))
}

// instructionBytes is what an instruction computes.
func instructionBytes(desc *target.Desc) int {
	if desc.Kind == target.GPU {
		return 4
	}
	return max(desc.VectorBytes, 4)
}

// bytesOf is what a kernel must read and write.
func bytesOf(ast *ir.UOp, vars map[string]int64) int64 {
	arena := ir.NewArena()
	read, written := traffic.Of(arena, arena.Import(ast), vars).Bytes()
	return read + written
}

// Limits of a multiprocessor (CUDA C Programming Guide, table of technical specifications):
// those of threads differ between architectures.
const (
	unitRegisters = 64 << 10
	unitBlocks    = 32
	mostThreads   = 2048
)

var fewerThreads = map[int]int64{75: 1024, 86: 1536, 87: 1536, 89: 1536, 120: 1536}

// occupancy is the part of a multiprocessor's threads that run at once, by what blocks hold.
func occupancy(f *Figures, desc *target.Desc) float64 {
	threads := fewerThreads[desc.SM]
	if threads == 0 {
		threads = mostThreads
	}
	blocks := min(unitBlocks, threads/max(f.Threads, 1))
	if f.Registers > 0 {
		blocks = min(blocks, unitRegisters/(int64(f.Registers)*max(f.Threads, 1)))
	}
	if f.SharedBytes > 0 && desc.SharedBytes > 0 {
		blocks = min(blocks, int64(max(desc.SharedBytes/f.SharedBytes, 1)))
	}
	return float64(max(blocks, 1)*f.Threads) / float64(threads)
}

// why says in which figures two outcomes differ, and what of memory both read. Empty where
// nothing is known of one of them.
func why(before, after Outcome) string {
	x, y := before.Figures, after.Figures
	if x == nil || y == nil || before.Plan == after.Plan {
		return ""
	}
	var list []string
	add := func(name, format string, from, to float64) {
		if math.Abs(to-from) > 0.01*math.Abs(from) {
			list = append(list, fmt.Sprintf("%s "+format+" -> "+format, name, from, to))
		}
	}
	add("instructions", "%.4g", x.Instructions, y.Instructions)
	add("blocks", "%.0f", float64(x.Blocks), float64(y.Blocks))
	add("threads", "%.0f", float64(x.Threads), float64(y.Threads))
	add("registers", "%.0f", float64(x.Registers), float64(y.Registers))
	add("spilled bytes", "%.0f", float64(x.LocalBytes), float64(y.LocalBytes))
	add("shared bytes", "%.0f", float64(x.SharedBytes), float64(y.SharedBytes))
	add("occupancy %", "%.0f", 100*x.Occupancy, 100*y.Occupancy)
	if before.Time > 0 && after.Time > 0 {
		add("GB/s", "%.4g", rate(x, before.Time), rate(y, after.Time))
	}
	return strings.Join(list, ", ")
}

// rate is what a call reads and writes, in GB/s.
func rate(f *Figures, us float64) float64 { return float64(f.Bytes) / us / 1e3 }
