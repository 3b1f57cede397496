package gpu

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/target"
)

// Roots that must not wait. Threads add up what others have stored of a norm and take the root of the sum; in integer
// sums the rows are multiplied by it last. Nothing needs it until then, so that an assembler moves its steps to that use,
// behind the loads and products of all rows, which then end together and late (LLaMA 1B int8 on an H200 8 % slower,
// docs/bench/h200-branches.txt). It moves nothing across a branch, and its own root has one: here that is of use.

// branchedRoots are the roots of shared memory alone that stand directly behind a barrier, and whose first use is
// in the same straight run of code, behind loads that do not depend on it.
func branchedRoots(p *program.Program, defs definitions, desc *target.Desc) map[*program.Instr]bool {
	branched := make(map[*program.Instr]bool)
	if desc.ApproxMath { // its roots are one instruction
		return branched
	}
	branchedOf(p.Body, defs, branched)
	return branched
}

func branchedOf(b *program.Block, defs definitions, branched map[*program.Instr]bool) {
	shared := make(map[*program.Value]bool) // computed of shared memory since the barrier
	behind := false                         // a barrier, and nothing but such values since
	ready := func(v *program.Value) bool {
		return shared[v] || v.Type.Ptr || v.Type.Elem == ir.I64 || defs.by(v, program.Const) != nil
	}
	for i := range b.Instrs {
		in := &b.Instrs[i]
		switch {
		case in.Op == program.Barrier:
			behind = true
		case in.Op == program.Const, in.Op == program.PtrAdd:
		case in.Op == program.Load && in.Args[0].Type.Space == program.SharedSpace,
			in.Op == program.Alu && (ready(in.Result) || !slices.ContainsFunc(in.Args, func(v *program.Value) bool { return !ready(v) })):
			shared[in.Result] = true
			if behind && isRoot(in) && usedLate(b.Instrs[i:], defs) {
				branched[in] = true
			}
		default:
			behind = false
		}
		for inner := range in.Blocks() {
			branchedOf(inner, defs, branched)
		}
	}
}

func isRoot(in *program.Instr) bool {
	return in.Op == program.Alu && (in.Ir == ir.OpSqrt || in.Ir == ir.OpRsqrt) && in.Result.Type.Elem == ir.F32
}

// usedLate reports that loads, but no barrier and no block, stand between the first instruction and what uses it.
// A product of it and a constant is moved with it.
func usedLate(instrs []program.Instr, defs definitions) bool {
	moved := map[*program.Value]bool{instrs[0].Result: true}
	fixed := func(v *program.Value) bool { return moved[v] || defs.by(v, program.Const) != nil }
	late := false
	for i := 1; i < len(instrs); i++ {
		in := &instrs[i]
		uses := false
		in.EachUse(func(v *program.Value) { uses = uses || moved[v] })
		switch {
		case uses && (in.Op != program.Alu || slices.ContainsFunc(in.Args, func(v *program.Value) bool { return !fixed(v) })):
			return late
		case uses:
			moved[in.Result] = true
		case in.Op == program.Barrier || in.Body != nil:
			return false
		case in.Op == program.Load:
			late = true
		}
	}
	return false
}
