package opt

import (
	"slices"

	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// sinkConversions moves computation on what was loaded before a block's wait for the
// kernel before it to where it is first used. Before its rows a block works on what
// that kernel has written; a conversion of a weight among that work stops it until the weights have come from memory (a third of all samples of an H200's
// profile of a matrix-vector product).
func sinkConversions(p *program.Program) {
	b := gridBody(p)
	wait := slices.IndexFunc(b.Instrs, func(in program.Instr) bool { return in.Op == program.WaitGrid })
	if wait < 0 {
		return
	}
	d := &conversions{early: make(map[*program.Value]bool), users: make(map[*program.Value][]int)}
	for i := range b.Instrs {
		d.note(i, &b.Instrs[i], i < wait)
	}
	// Where each instruction goes: before the first of its users, which come later in
	// the block and so have been placed already.
	to := make([]int, len(b.Instrs))
	before := make(map[int][]int) // what moves before an instruction, last first
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = i
		in := &b.Instrs[i]
		if i < wait || !d.early[in.Result] || !isConversion(in) || len(d.users[in.Result]) == 0 {
			continue
		}
		to[i] = len(to)
		for _, user := range d.users[in.Result] {
			to[i] = min(to[i], to[user])
		}
		before[to[i]] = append(before[to[i]], i)
	}
	out := make([]program.Instr, 0, len(to))
	for i := range to {
		if to[i] != i {
			continue
		}
		for k := len(before[i]) - 1; k >= 0; k-- {
			out = append(out, b.Instrs[before[i][k]])
		}
		out = append(out, b.Instrs[i])
	}
	b.Instrs = out
}

type conversions struct {
	early map[*program.Value]bool  // loaded before the wait, and what is computed from that
	users map[*program.Value][]int // instructions of the block that read a value, in blocks in them too
}

// note finds the values that come from before the wait, and the users of values.
func (d *conversions) note(i int, in *program.Instr, beforeWait bool) {
	for _, a := range in.Args {
		d.users[a] = append(d.users[a], i)
		if in.Result != nil && isConversion(in) && d.early[a] {
			d.early[in.Result] = true
		}
	}
	if beforeWait && in.Result != nil && (in.Op == program.Load || in.Op == program.Gather) {
		d.early[in.Result] = true
	}
	for b := range in.Blocks() {
		for k := range b.Instrs {
			d.note(i, &b.Instrs[k], false)
		}
	}
}

// isConversion reports arithmetic on one operand: with several, moving it would keep
// more registers waiting instead of one.
func isConversion(in *program.Instr) bool {
	return dep.Pure(in) && len(in.Args) == 1 && !in.Result.Type.Ptr
}
