package gpu

import (
	"fmt"
	"strings"

	"tgc/ir/program"
	"tgc/target"
)

// Options are choices that do not change what a program computes.
type Options struct {
	// Persistent lets a grid of any size run all work units: each block runs
	// its own, then every gridDim-th one after it.
	Persistent bool
	// MinBlocks asks the assembler for registers so few that this many blocks
	// fit a multiprocessor; 0 leaves it free.
	MinBlocks int
	// MaxRegisters bounds the registers of a thread; 0 does not.
	MaxRegisters int
	// Annotate prints each instruction of the program as a comment before what is
	// made of it.
	Annotate bool
}

// Kernel is a rendered program and how to launch it.
type Kernel struct {
	Text  string
	Entry string // name of the function
	// Params are indices into the program's Params: one 8-byte parameter each,
	// in this order (tables are part of the module).
	Params []int
	Blocks int64  // grid size in x; y and z are 1
	Block  [3]int // threads in x, y, z
	// Cluster is the number of blocks, one after the other, that run at once; the text says so too.
	Cluster int
	Shared  int // bytes, static or dynamic
	// Carveout is how many KB of a multiprocessor's first cache are shared memory while the kernel runs; 0: the driver
	// chooses. No text can say so but in a comment, by which kernels that differ in it have different texts.
	Carveout int
	// Dynamic says that the shared bytes are given at launch (they exceed the
	// 48 KB that a module may ask for itself).
	Dynamic bool
	// WaitsGrid says that the kernel waits for its predecessor itself, so it
	// may be launched before that has ended.
	WaitsGrid bool
}

// CarveoutComment is the line of a text that says how the first cache is divided; empty: nothing does.
func (k *Kernel) CarveoutComment() string {
	if k.Carveout == 0 {
		return ""
	}
	return fmt.Sprintf("// carveout: %d KB of shared memory\n", k.Carveout)
}

// Registers are those of a multiprocessor.
const Registers = 64 << 10

// OptionsFor is what the plan of a program says of registers. Without it, the assembler is
// asked for so few that 512 threads fit a multiprocessor: with one block alone, its phases
// would follow each other with nothing beside them. Matrix instructions want registers
// more than threads: 256 of them are two warps for each of its four schedulers.
func OptionsFor(p *program.Program) Options {
	o := Options{MinBlocks: p.Options.Of(program.Blocks), MaxRegisters: p.Options.Of(program.Regs)}
	if o.MinBlocks+o.MaxRegisters > 0 {
		return o
	}
	wanted := int64(512)
	if HasOp(p.Body, program.Mma) || HasOp(p.Body, program.GroupMma) {
		wanted = 256
	}
	o.MinBlocks = int(max(wanted/p.Threads(), 1))
	return o
}

// Architecture is a target's name for NVIDIA's tools: sm_87, sm_90a.
func Architecture(desc *target.Desc) string {
	if desc.Special {
		return fmt.Sprintf("sm_%da", desc.SM)
	}
	return fmt.Sprintf("sm_%d", desc.SM)
}

// StaticShared is what a module may reserve, in bytes; more must be asked for
// at launch.
const StaticShared = 48 << 10

// EntryName makes an identifier of a kernel's name.
func EntryName(name string) string {
	clean := func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
			return c
		}
		return '_'
	}
	return "k_" + strings.Map(clean, name)
}

// BlockShape turns axes, outermost first, into x, y, z.
func BlockShape(axes []int64) [3]int {
	shape := [3]int{1, 1, 1}
	for i, n := range axes {
		shape[len(axes)-1-i] = int(n)
	}
	return shape
}

// HasOp reports an op anywhere in a block.
func HasOp(b *program.Block, op program.Op) bool {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Op == op || in.Body != nil && HasOp(in.Body, op) || in.Else != nil && HasOp(in.Else, op) {
			return true
		}
	}
	return false
}
