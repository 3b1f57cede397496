package program

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// Uniformity of values over the threads of a cluster. A barrier must be reached
// by all threads of the block together, that of a cluster by all of its blocks, and an
// instruction that moves data between lanes by all threads of the warp: VerifyGPU proves it.

// variance says which threads see one value; more is less uniform.
type variance uint8

const (
	perCluster variance = iota // the same in all threads of the cluster, or of the grid
	perBlock                   // the same in all threads of the block
	perWarp                    // the same in all threads of a warp
	perThread
)

var varianceNames = [...]string{"all threads of the cluster", "all threads of the block", "all threads of a warp", "one thread"}

// VerifyGPU is Verify and, for a program with threads:
//
//   - a Barrier stands only where control flow depends on what is equal in all
//     threads of the block, and one of the first threads alone in a branch that just these
//     take; ClusterArrive in all of the cluster; ShuffleLane, SyncWarp and Mma only where it depends
//     on what is equal in all threads of a warp;
//   - a GroupMma stands only where control flow depends on what is equal in all threads of the block, and
//     what it points to is equal in all threads of a warp;
//   - threads per block are 1..1024 on at most three axes; with instructions
//     of a warp, a multiple of 32, of a warpgroup of 128.
func VerifyGPU(p *Program) error {
	if err := Verify(p); err != nil {
		return err
	}
	u := &uniformity{program: p, of: make(map[*Value]variance), consts: make(map[*Value]int64)}
	if err := u.shape(); err != nil {
		return fmt.Errorf("program %s: %w", p.Name, err)
	}
	if err := u.block(p.Body, perCluster); err != nil {
		return fmt.Errorf("program %s: %w", p.Name, err)
	}
	return nil
}

// UniformBranches lists the conditions of Ifs that are equal in all threads of a
// block: a block runs one of the two arms, never both, so that what the arms
// keep in shared memory may lie in one place.
func UniformBranches(p *Program) map[*Value]bool {
	u := &uniformity{program: p, of: make(map[*Value]variance), consts: make(map[*Value]int64), lenient: true}
	out := make(map[*Value]bool)
	if u.shape() != nil || u.block(p.Body, perCluster) != nil {
		return out
	}
	p.Body.Each(func(in *Instr) {
		if in.Op == If && u.of[in.Args[0]] <= perBlock {
			out[in.Args[0]] = true
		}
	})
	return out
}

// SharedBytes is the shared memory of a block: what its arrays take one after
// the other, where arms of a branch that the whole block takes share a place.
func SharedBytes(p *Program) int64 {
	return sharedEnd(p.Body, UniformBranches(p), 0)
}

// sharedEnd lays out the arrays of b from an offset on.
func sharedEnd(b *Block, uniform map[*Value]bool, at int64) int64 {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		switch {
		case in.Op == Alloca && in.Result.Type.Space == SharedSpace:
			align := int64(max(in.Align, 1))
			at = (at+align-1)/align*align + in.Count*int64(in.Result.Type.Elem.Size())
		case in.Op == If && uniform[in.Args[0]]:
			at = max(sharedEnd(in.Body, uniform, at), sharedEnd(in.Else, uniform, at))
		default:
			for inner := range in.Blocks() {
				at = sharedEnd(inner, uniform, at)
			}
		}
	}
	return at
}

type uniformity struct {
	program *Program
	lenient bool // only find out: what must not be is not an error
	of      map[*Value]variance
	consts  map[*Value]int64 // scalar integers
	threads int64
	present int64 // the first threads of the block, which alone are in the branch at hand; 0: all
	// lane holds values that count consecutive threads from a warp's start on:
	// comparing them with, or dividing them by, a multiple of the warp's size
	// gives equal results in a warp.
	lane map[*Value]bool
	// leading holds conditions that are true in as many threads, the first ones of the block.
	leading map[*Value]int64
	// unit holds values that count consecutive blocks from a cluster's start on.
	unit map[*Value]bool
}

func (u *uniformity) shape() error {
	u.lane, u.unit, u.leading = make(map[*Value]bool), make(map[*Value]bool), make(map[*Value]int64)
	u.threads = 1
	if len(u.program.Block) > 3 {
		return fmt.Errorf("%d block axes, want at most 3", len(u.program.Block))
	}
	for _, n := range u.program.Block {
		if n < 1 || n > 1024 {
			return fmt.Errorf("block extent %d, want 1..1024", n)
		}
		u.threads *= n
	}
	if u.threads > 1024 {
		return fmt.Errorf("%d threads a block, want at most 1024", u.threads)
	}
	return nil
}

func (u *uniformity) block(b *Block, flow variance) error {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if err := u.instr(in, flow); err != nil {
			return err
		}
	}
	return nil
}

func (u *uniformity) instr(in *Instr, flow variance) error {
	switch in.Op {
	case Barrier, ClusterWait:
		return u.barrier(in, flow, perBlock)
	case ClusterArrive:
		return u.barrier(in, flow, perCluster)
	case ShuffleLane, SyncWarp, Mma:
		if err := u.together(in, flow, perWarp); err != nil {
			return err
		}
		if u.threads%warpSize != 0 && !u.lenient {
			return fmt.Errorf("`%s`: a block of %d threads, want a multiple of %d", PrintInstr(in), u.threads, warpSize)
		}
	case GroupMma:
		if err := u.group(in, flow); err != nil {
			return err
		}
	case For:
		return u.loop(in, flow)
	case If:
		return u.branch(in, flow)
	case GridLoop:
		u.of[in.Body.Args[0]] = perCluster
		if u.program.Cluster > 1 {
			u.of[in.Body.Args[0]], u.unit[in.Body.Args[0]] = perBlock, true
		}
		return u.block(in.Body, flow)
	}
	if in.Result != nil {
		u.of[in.Result] = u.result(in)
	}
	return nil
}

// barrier checks that all threads that an instruction waits for come to it, and no others. In a branch of the first threads of a
// block none waits for a cluster, which has the others, too.
func (u *uniformity) barrier(in *Instr, flow, need variance) error {
	if err := u.together(in, flow, need); err != nil {
		return err
	}
	if in.Int != u.present {
		return u.together(in, perWarp, perBlock)
	}
	return nil
}

// group checks an instruction of a warpgroup.
func (u *uniformity) group(in *Instr, flow variance) error {
	if err := u.together(in, flow, perBlock); err != nil || u.lenient {
		return err
	}
	if u.present%GroupThreads != 0 {
		return u.together(in, perWarp, perBlock)
	}
	if u.threads%GroupThreads != 0 {
		return fmt.Errorf("`%s`: a block of %d threads, want a multiple of %d", PrintInstr(in), u.threads, GroupThreads)
	}
	for _, p := range in.Args[1:] {
		if u.of[p] > perWarp {
			return fmt.Errorf("`%s`: %s is that of %s, want %s", PrintInstr(in), p, varianceNames[u.of[p]], varianceNames[perWarp])
		}
	}
	return nil
}

func (u *uniformity) together(in *Instr, flow, need variance) error {
	if flow > need && !u.lenient {
		return fmt.Errorf("`%s` stands where control flow is that of %s, want %s", PrintInstr(in), varianceNames[flow], varianceNames[need])
	}
	return nil
}

// result is the variance of an instruction's result.
func (u *uniformity) result(in *Instr) variance {
	worst := perCluster
	for _, a := range in.Args {
		worst = max(worst, u.of[a])
	}
	switch in.Op {
	case Const:
		if t := in.Result.Type; t.Lanes == 1 && !t.Ptr && !t.Elem.IsFloat() {
			u.consts[in.Result] = in.Int
		}
		return perCluster
	case ThreadIndex:
		return u.threadIndex(in)
	case Alloca:
		if in.Result.Type.Space == LocalSpace {
			return perThread // what it points to
		}
		return perBlock // what it points to
	case PeerPtr:
		return max(worst, perBlock)
	case Atomic:
		return perThread
	case Mma, GroupMma:
		return perThread
	case Alu:
		return u.alu(in, worst)
	}
	return worst
}

// threadIndex: the last axis runs through a warp; an outer axis is equal in it
// when the threads below are whole warps.
func (u *uniformity) threadIndex(in *Instr) variance {
	block := u.program.Block
	if len(block) == 0 || block[in.Lane] == 1 {
		return perCluster
	}
	below := lists.Product(block[in.Lane+1:])
	if below%warpSize == 0 {
		return perWarp
	}
	if below == 1 && (block[in.Lane]%warpSize == 0 || u.threads == block[in.Lane]) {
		u.lane[in.Result] = true
	}
	return perThread
}

// alu finds the warp's index and comparisons that end at a warp's edge.
func (u *uniformity) alu(in *Instr, worst variance) variance {
	if worst == perBlock {
		return u.units(in)
	}
	if worst != perThread || len(in.Args) == 0 {
		return worst
	}
	if in.Ir == ir.OpCast && u.lane[in.Args[0]] && in.Result.Type.Elem.Size() >= 4 && !in.Result.Type.Elem.IsFloat() {
		u.lane[in.Result] = true
		return worst
	}
	if len(in.Args) != 2 || !u.lane[in.Args[0]] {
		return worst
	}
	c, known := u.consts[in.Args[1]]
	whole := known && c > 0 && c%warpSize == 0
	if whole && in.Ir == ir.OpCmpLt && c < u.threads && slices.Max(u.program.Block) == u.threads {
		u.leading[in.Result] = c
	}
	switch {
	case (in.Ir == ir.OpFloorDiv || in.Ir == ir.OpCmpLt) && whole,
		in.Ir == ir.OpShr && known && c >= 5 && c < 32:
		return perWarp
	}
	return worst
}

// units finds the cluster's index, comparisons that end at a cluster's edge, and what still
// counts its blocks.
func (u *uniformity) units(in *Instr) variance {
	if len(in.Args) != 2 || !u.unit[in.Args[0]] {
		return perBlock
	}
	n := u.program.Cluster
	c, known := u.consts[in.Args[1]]
	switch whole := known && c%n == 0; {
	case (in.Ir == ir.OpFloorDiv || in.Ir == ir.OpCmpLt) && whole && (in.Ir == ir.OpCmpLt || c > 0),
		in.Ir == ir.OpShr && known && c >= 0 && c < 32 && 1<<c%n == 0:
		return perCluster
	case (in.Ir == ir.OpSub || in.Ir == ir.OpMax) && whole, in.Ir == ir.OpMin && known && (c+1)%n == 0:
		u.unit[in.Result] = true
	}
	return perBlock
}

// loop: what is carried may become less uniform from one round to the next, so
// the body is walked until nothing changes.
func (u *uniformity) loop(in *Instr, flow variance) error {
	bounds := max(u.of[in.Args[0]], u.of[in.Args[1]], u.of[in.Args[2]])
	u.of[in.Body.Args[0]] = bounds
	carried := in.Body.Args[1:]
	for i, init := range in.Args[3:] {
		u.of[carried[i]] = max(u.of[init], bounds)
	}
	for {
		if err := u.block(in.Body, max(flow, bounds)); err != nil {
			return err
		}
		changed := false
		for i, next := range in.Body.Instrs[len(in.Body.Instrs)-1].Args {
			if u.of[next] > u.of[carried[i]] {
				u.of[carried[i]] = u.of[next]
				changed = true
			}
		}
		if !changed {
			break
		}
	}
	for i, r := range in.Results {
		u.of[r] = u.of[carried[i]]
	}
	return nil
}

func (u *uniformity) branch(in *Instr, flow variance) error {
	cond := u.of[in.Args[0]]
	leading := u.leading[in.Args[0]]
	for b := range in.Blocks() {
		within := max(flow, cond)
		if b == in.Body && leading > 0 && flow <= perBlock && u.present == 0 {
			u.present, within = leading, flow
		}
		err := u.block(b, within)
		if within < cond {
			u.present = 0
		}
		if err != nil {
			return err
		}
		for i, a := range b.Instrs[len(b.Instrs)-1].Args {
			u.of[in.Results[i]] = max(u.of[in.Results[i]], u.of[a], cond)
		}
	}
	return nil
}
