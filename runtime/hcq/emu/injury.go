package emu

import "syscall"

// Injury is something that goes wrong although nobody made a mistake.
type Injury struct {
	Where Where
	// Number says which one, from 1.
	Number int
	// Errno is the answer to a request.
	Errno syscall.Errno
	// Notify is the number in the error notifier after a launch, WarpESR what a
	// multiprocessor says of it.
	Notify, WarpESR uint32
}

// Where is what an injury happens to.
type Where int

// Places of injuries.
const (
	// OnRequest refuses an open, a mapping or a request, which do nothing then; what gives
	// something back is done, and an error all the same.
	OnRequest Where = iota + 1
	// OnDoorbell loses it.
	OnDoorbell
	// OnLaunch ends the channel with an error.
	OnLaunch
	// OnEnd never comes to the end of a launch or of a copy.
	OnEnd
	// OnCopy ends the channel with an error.
	OnCopy
)

// Counts are how often an injury could have happened so far.
type Counts map[Where]int

// Counts counts what has happened.
func (m *Machine) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(Counts)
	for where, n := range m.counts {
		out[where] = n
	}
	return out
}

// injured counts, and returns the injury that happens now; nil for none.
func (m *Machine) injured(where Where) *Injury {
	m.counts[where]++
	if i := m.options.Injury; i != nil && i.Where == where && i.Number == m.counts[where] {
		return i
	}
	return nil
}

// refused is the error of a request that an injury refuses; nil for none.
func (m *Machine) refused() error {
	if i := m.injured(OnRequest); i != nil {
		return i.Errno
	}
	return nil
}

// struck ends a channel if an injury hits a copy, or the launch of a program.
func (m *Machine) struck(where Where, program uint64) error {
	i := m.injured(where)
	if i == nil {
		return nil
	}
	r := &refusal{Finding: Finding{"sm", "injury", "an injury"}, notify: i.Notify}
	if i.WarpESR != 0 {
		r.state = &smState{globalESR: 1, warpESR: i.WarpESR, pc: program}
	}
	return r
}
