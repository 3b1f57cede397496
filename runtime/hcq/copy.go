package hcq

import (
	"context"
	"fmt"

	"tgc/runtime"
	"tgc/runtime/hcq/word"
)

// Copies go one of two ways. Both sides see all memory, so that the CPU copies, at once and
// without the GPU, what nothing under way uses. What is in use the copy queue copies: it waits
// for the timeline of compute where a step uses the memory, and the next step that uses it
// waits for the timeline of copies; steps that do not use it go on beside, and the host waits
// for none.

const (
	// pieceBytes is the staging memory of one upload: a page, for what is written while a
	// step is under way is small (tokens, positions, settings of a sampler).
	pieceBytes = 4096
	// mostStaged bounds what is uploaded in pieces. More is written by the CPU, once all has
	// ended.
	mostStaged = 16 * pieceBytes
	// mostByHost bounds the copies between memories that the CPU makes. Others measured 46 us
	// for a round trip by the queue, and 6.35 GB/s of a CPU's copies: 290 KB.
	mostByHost = 256 << 10
)

// usedUntil is the value of the compute timeline at which the last run of a step that uses
// the memory ends. The device's lock is held.
func (m *memory) usedUntil() (value uint64) {
	for r := range m.steps {
		value = max(value, r.last)
	}
	return value
}

// quiet reports memories that nothing under way uses.
func (d *Device) quiet(memories ...*memory) bool {
	if d.queued {
		return false
	}
	for _, m := range memories {
		if !d.queue.done(m.usedUntil()) || !d.copies.done(m.copied) {
			return false
		}
	}
	return true
}

// enlist notes the recording in the memory that it uses. The device's lock is held.
func (r *Recording) enlist() {
	for _, m := range r.uses.Memory {
		m.steps[r] = true
	}
}

func (r *Recording) delist() {
	for _, m := range r.uses.Memory {
		delete(m.steps, r)
	}
}

// afterCopies are words that wait for the copies of the step's memory; none if these have
// ended.
func (r *Recording) afterCopies() ([]uint32, error) {
	q := r.device.copies
	if q.done(q.last) {
		return nil, nil
	}
	value := uint64(0)
	for _, m := range r.uses.Memory {
		value = max(value, m.copied)
	}
	if q.done(value) {
		return nil, nil
	}
	b := &word.Builder{}
	q.after(b, value)
	return b.Words, b.Err
}

// queueCopy has the copy queue copy bytes, once the steps have ended that use the memories.
// The lock is held.
func (d *Device) queueCopy(from, to uint64, bytes int64, memories ...*memory) error {
	after := uint64(0)
	for _, m := range memories {
		after = max(after, m.usedUntil())
	}
	for bytes > 0 {
		b := &word.Builder{}
		if !d.queue.done(after) {
			d.queue.after(b, after)
		}
		part := min(bytes, word.MostCopied)
		b.Copy(from, to, part)
		if b.Err != nil {
			return b.Err
		}
		value, err := d.copies.submitAfter(b.Words)
		if err != nil {
			return err
		}
		for _, m := range memories {
			m.copied = value
		}
		from, to, bytes = from+uint64(part), to+uint64(part), bytes-part
	}
	return nil
}

// upload has the copy queue write bytes, of which it keeps a copy.
func (d *Device) upload(m *memory, offset int64, from []byte) error {
	if d.staging == nil {
		s, err := d.board.Alloc(pieceBytes*slotCount, UseData)
		if err != nil {
			return err
		}
		d.staging = s
	}
	for len(from) > 0 {
		slot, err := d.copies.freeSlot() // the piece of a slot is free with it
		if err != nil {
			return err
		}
		at := slot * pieceBytes
		n := copy(d.staging.Host[at:at+pieceBytes], from)
		if err := d.queueCopy(d.staging.Address+uint64(at), m.Address()+uint64(offset), int64(n), m); err != nil {
			return err
		}
		from, offset = from[n:], offset+int64(n)
	}
	return nil
}

// CopyFrom copies bytes of another memory of the device, after what was submitted and before
// what will be.
func (m *memory) CopyFrom(ctx context.Context, offset int64, from runtime.Memory, fromOffset, bytes int64) error {
	source, ok := from.(*memory)
	if !ok || source.device != m.device {
		return fmt.Errorf("hcq: copy from memory of another device (%T)", from)
	}
	if bytes < 0 {
		return fmt.Errorf("hcq: copy of %d bytes", bytes)
	}
	if err := source.CheckRead(fromOffset, int(bytes)); err != nil {
		return fmt.Errorf("hcq: %w", err)
	}
	return m.touch(ctx, m.CheckWrite, offset, int(bytes), func() error {
		d := m.device
		overlaps := source == m && offset < fromOffset+bytes && fromOffset < offset+bytes
		if overlaps { // a copy queue says nothing of the order of its bytes
			if err := d.ended(ctx); err != nil {
				return err
			}
		}
		if overlaps || bytes <= mostByHost && d.quiet(m, source) {
			copy(m.host[offset:offset+bytes], source.host[fromOffset:])
			return nil
		}
		return d.queueCopy(source.Address()+uint64(fromOffset), m.Address()+uint64(offset), bytes, m, source)
	})
}
