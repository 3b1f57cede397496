package opt

import "tgc/ir/program"

// sinkConversions moves computation on what was loaded ahead of a block's wait for the
// grid before to where it is first used. In front of the rows a block works on what
// the grid before has written; a conversion of a weight that stands there stops it
// until the weights have come from memory (a third of all samples of an H200's
// profile of a matrix-vector product).
func sinkConversions(p *program.Program) {
	b := gridBody(p)
	wait := -1
	for i := range b.Instrs {
		if b.Instrs[i].Op == program.WaitGrid {
			wait = i
			break
		}
	}
	if wait < 0 {
		return
	}
	d := &delayer{early: make(map[*program.Value]bool), users: make(map[*program.Value][]int)}
	for i := range b.Instrs {
		d.note(i, &b.Instrs[i], i < wait)
	}
	// Where each instruction goes: in front of the first of its users, which come
	// later and are placed before it.
	to := make([]int, len(b.Instrs))
	before := make(map[int][]int) // what moves in front of an instruction, last first
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = i
		in := &b.Instrs[i]
		if i < wait || !d.early[in.Result] || !delayable(in) || len(d.users[in.Result]) == 0 {
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

type delayer struct {
	early map[*program.Value]bool  // loaded ahead of the wait, and what is made of that
	users map[*program.Value][]int // instructions of the block that read a value, in blocks in them too
}

// note finds the values that come from ahead of the wait, and the users of values.
func (d *delayer) note(i int, in *program.Instr, ahead bool) {
	for _, a := range in.Args {
		d.users[a] = append(d.users[a], i)
		if in.Result != nil && delayable(in) && d.early[a] {
			d.early[in.Result] = true
		}
	}
	if ahead && in.Result != nil && (in.Op == program.Load || in.Op == program.Gather) {
		d.early[in.Result] = true
	}
	for _, b := range []*program.Block{in.Body, in.Else} {
		if b == nil {
			continue
		}
		for k := range b.Instrs {
			d.note(i, &b.Instrs[k], false)
		}
	}
}

// delayable reports arithmetic on one operand: with several, moving it would keep
// more registers waiting instead of one.
func delayable(in *program.Instr) bool {
	switch in.Op {
	case program.Alu, program.Broadcast, program.Extract, program.FoldLanes:
		return !in.Result.Type.Ptr && len(in.Args) == 1
	}
	return false
}
