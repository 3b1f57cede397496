// Package dep is the dependence analysis of programs that all passes over them share:
// what an instruction does besides computing its result, what pointers lead into, what
// an instruction needs of its block, and where values are used last.
package dep

import "tgc/ir/program"

// Effects are what an instruction does besides computing its result from its
// operands. An instruction without any is pure: it may be moved, repeated and left
// out.
type Effects uint16

// The effects.
const (
	Reads        Effects = 1 << iota // memory
	Writes                           // memory
	Exchanges                        // values between the threads of a warp, which all must take part
	Synchronises                     // with other threads, copies or kernels: memory accesses stay on their side
	Controls                         // flow: has blocks, or ends one
	Reserves                         // memory of its own
	Hints                            // changes no value
)

const nothing Effects = 0

// effects is the table of instructions.
var effects = map[program.Op]Effects{
	program.Alu:         nothing,
	program.Const:       nothing,
	program.ConstLanes:  nothing,
	program.Broadcast:   nothing,
	program.Extract:     nothing,
	program.Shuffle:     nothing,
	program.Concat:      nothing,
	program.FoldLanes:   nothing,
	program.PtrAdd:      nothing,
	program.ThreadIndex: nothing,
	program.PeerPtr:     nothing,
	program.Dot4:        nothing,
	program.ShuffleLane: Exchanges,
	program.Mma:         Exchanges,
	program.GroupMma:    Exchanges | Reads,
	program.CopyAsync:   Reads | Writes,
	program.WaitCopies:  Synchronises,
	program.TileDot:     Reads | Writes,
	program.Load:        Reads,
	program.Gather:      Reads,
	program.Guarded:     Reads,
	program.Store:       Writes,
	program.Scatter:     Writes,
	program.Prefetch:    Hints,
	program.Alloca:      Reserves,
	program.For:         Controls,
	program.If:          Controls,
	program.Yield:       Controls,
	program.GridLoop:    Controls,
	program.Barrier:     Synchronises,
	program.SyncWarp:    Synchronises,
	program.WaitGrid:    Synchronises,
	program.LaunchNext:  Synchronises,

	program.ClusterArrive: Synchronises,
	program.ClusterWait:   Synchronises,

	program.Fence:  Synchronises,
	program.Atomic: Reads | Writes | Synchronises,
}

// Known reports an instruction that the table has.
func Known(op program.Op) bool {
	_, ok := effects[op]
	return ok
}

// Of are the effects of an instruction itself, its blocks apart.
func Of(in *program.Instr) Effects { return effects[in.Op] }

// MovesLanes reports an instruction that only says which lanes of its operands are meant.
func MovesLanes(in *program.Instr) bool {
	switch in.Op {
	case program.Extract, program.Concat, program.Shuffle, program.Broadcast:
		return true
	}
	return false
}

// Pure reports an instruction that only computes its result from its operands.
func Pure(in *program.Instr) bool { return effects[in.Op] == nothing }

// Free reports an instruction whose place only operands, results and memory decide:
// between writes and synchronisation it may be put anywhere.
func Free(in *program.Instr) bool { return effects[in.Op]&^(Reads|Exchanges) == 0 }

// Pointer is the address of a load or store, nil for other instructions.
func Pointer(in *program.Instr) *program.Value {
	switch in.Op {
	case program.Guarded:
		return in.Args[1]
	case program.Load, program.Gather, program.Store, program.Scatter:
		return in.Args[0]
	}
	return nil
}

// Pointers are the addresses of what an instruction of a GPU reads and of what it writes; those of atomic accesses,
// which do both, are left out.
func Pointers(in *program.Instr) (read, written []*program.Value) {
	switch in.Op {
	case program.GroupMma:
		return in.Args[1:], nil
	case program.CopyAsync:
		return in.Args[1:], in.Args[:1]
	}
	switch p := Pointer(in); {
	case p == nil:
		return nil, nil
	case Of(in)&Writes != 0:
		return nil, []*program.Value{p}
	default:
		return []*program.Value{p}, nil
	}
}
