package interp

import (
	"errors"
	"slices"

	"tgc/ir/program"
)

// Asynchronous copies. What a copy writes has no value until its thread has waited for it, and counts as
// written both where the copy begins and at the wait: whoever touches it in between is found.

// copying is a copy that is under way.
type copying struct {
	in     *program.Instr
	thread int
	to     pointer
	from   []byte // as it was at the beginning
}

func (m *machine) copyAsync(in *program.Instr) func() {
	aligned := *in
	aligned.Align = int(in.Int)
	to, from := m.reg(in.Args[0]).ptrs, m.reg(in.Args[1]).ptrs
	return func() {
		for t, on := range m.block.active {
			if !on {
				continue
			}
			source := m.span(&aligned, from[t], in.Int, t, false)
			if source == nil {
				return
			}
			target := m.span(&aligned, to[t], in.Int, t, true)
			if target == nil {
				return
			}
			m.copying = append(m.copying, copying{&aligned, t, to[t], slices.Clone(source)})
			for i := range target {
				target[i] = undefinedByte
			}
		}
	}
}

// waitCopies ends the copies of the threads that take part.
func (m *machine) waitCopies() {
	m.copying = slices.DeleteFunc(m.copying, func(c copying) bool {
		if !m.block.active[c.thread] {
			return false
		}
		if to := m.span(c.in, c.to, c.in.Int, c.thread, true); to != nil {
			copy(to, c.from)
		}
		return true
	})
}

// endCopies finds copies that nothing has waited for.
func (m *machine) endCopies() {
	if len(m.copying) > 0 {
		m.fail(m.copying[0].in, errors.New("the block ends and has not waited for the copy"))
	}
}
