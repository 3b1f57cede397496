package hcq

import (
	"encoding/binary"

	"tgc/runtime/nvidia"
)

// Descriptors are the addresses of a step's launch descriptors in the set that the last run
// took, in order.
func (r *Recording) Descriptors() []uint64 {
	var list []uint64
	for _, c := range r.calls {
		list = append(list, r.own.Address+uint64(c.qmd[r.before()]))
	}
	return list
}

// before is the set of the last run.
func (r *Recording) before() int { return (r.next + len(r.sets) - 1) % len(r.sets) }

// Words are those of the step, and Sets how many copies there are of it.
func (r *Recording) Words() []uint32 {
	s := r.sets[r.before()]
	words := make([]uint32, s.entry>>42&(1<<21-1))
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(r.own.Host[s.words+4*i:])
	}
	return words
}

func (r *Recording) Sets() int { return len(r.sets) }

// Own is what the step lies in.
func (r *Recording) Own() []byte { return r.own.Host }

// Written is how many bytes the host writes for a run whose variables have changed: the
// parameters of calls with variables, the words that signal, entries and the pointer.
func (r *Recording) Written() int {
	const signalWords, pointerBytes = 6, 4
	n := 4*signalWords + entryBytes*(r.times+1) + pointerBytes
	for _, c := range r.calls {
		if c.HasVars() {
			n += 8 * len(c.Params)
		}
	}
	return n
}

// QueueCopies has the queue make all copies, those too that the CPU would make.
func (d *Device) QueueCopies() { d.queued = true }

// Pass moves the timeline on, as if values up to this one had been asked for and reached.
func (d *Device) Pass(value uint64) {
	q := d.queue
	q.last = value
	for i := range q.slots {
		q.slots[i] = value
	}
	binary.LittleEndian.PutUint64(q.cell.Host, value)
	d.board.Publish()
}

// Unload gives the machine code of an executable back, as a device does that keeps no code
// it does not need: the next code takes its address.
func (d *Device) Unload(e *Executable) error {
	for i, c := range d.images {
		if c == e.code {
			d.images = append(d.images[:i], d.images[i+1:]...)
			return d.board.Free(c.image)
		}
	}
	return nil
}

// TargetConfig is what a launch descriptor asks for.
func TargetConfig(r *nvidia.Rendered, registers, shared int) int {
	return targetConfig(r, registers, shared)
}
