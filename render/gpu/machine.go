package gpu

import (
	"context"
	"errors"
	"slices"

	"tgc/internal/cudatools"
	"tgc/ir/program"
)

// Machine is what NVIDIA's own tools say of a program's machine code.
type Machine struct {
	Registers int // of a thread
	Spilled   int // bytes stored and loaded because registers ran out
	// Executed is how many instructions a thread executes, 0 where the trips of
	// its loops are not known: every branch forward counts as taken.
	Executed int64
	Threads  int64 // of the whole grid
}

// Inspect assembles PTX and lists its instructions. Loops of the machine code
// are those of the program in order; where there are fewer, the assembler has
// unrolled the shortest. Those of a program without loops are branches back from slow
// paths and the loop around a wait for the grid, which run once. The figures are all 0 where the installed tools do not
// know the architecture.
func Inspect(ctx context.Context, tools cudatools.Tools, arch string, p *program.Program, ptx string) (*Machine, error) {
	made, err := tools.Ptxas(ctx, ptx, arch)
	if errors.Is(err, cudatools.ErrArchitecture) {
		return &Machine{}, nil
	}
	if err != nil {
		return nil, err
	}
	m := &Machine{Registers: made.Registers, Spilled: made.SpillStores + made.SpillLoads, Threads: p.Units()}
	for _, n := range p.Block {
		m.Threads *= n
	}
	if tools.NvdisasmPath == "" {
		return m, nil
	}
	list, err := tools.Nvdisasm(ctx, made.Cubin)
	if err != nil {
		return nil, err
	}
	trips, known := loopTrips(p.Body, make(map[*program.Value]int64), nil)
	if known && len(trips) == 0 {
		trips = slices.Repeat([]int64{1}, len(list.Loops))
	}
	if known && len(trips) >= len(list.Loops) {
		m.Executed = list.Executed(longest(trips, len(list.Loops)))
	}
	return m, nil
}

// longest keeps the n longest of some loops, in their order.
func longest(trips []int64, n int) []int64 {
	kept := slices.Clone(trips)
	for len(kept) > n {
		at := 0
		for i, t := range kept {
			if t < kept[at] {
				at = i
			}
		}
		kept = slices.Delete(kept, at, at+1)
	}
	return kept
}

// loopTrips lists how often the loops of a block run, outer before inner; known
// is false where a bound is no constant.
func loopTrips(b *program.Block, consts map[*program.Value]int64, trips []int64) (list []int64, known bool) {
	known = true
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Op == program.Const {
			consts[in.Result] = in.Int
		}
		if in.Op == program.For {
			lo, okLo := consts[in.Args[0]]
			hi, okHi := consts[in.Args[1]]
			step, okStep := consts[in.Args[2]]
			known = known && okLo && okHi && okStep && step > 0
			trips = append(trips, max((hi-lo+step-1)/max(step, 1), 0))
		}
		for inner := range in.Blocks() {
			var ok bool
			trips, ok = loopTrips(inner, consts, trips)
			known = known && ok
		}
	}
	return trips, known
}
