package runtime

import (
	"context"
	"errors"
	"fmt"

	"tgc/internal/mapfile"
	"tgc/ir/program"
)

// HostMemory is a Memory of host bytes, for devices whose memory is the host's.
// They add how it is freed.
type HostMemory struct {
	Data     []byte
	ReadOnly bool // imported
}

func (m *HostMemory) Size() int64      { return int64(len(m.Data)) }
func (m *HostMemory) Host() []byte     { return m.Data }
func (m *HostMemory) IsReadOnly() bool { return m.ReadOnly }

// Read copies bytes out.
func (m *HostMemory) Read(_ context.Context, offset int64, into []byte) error {
	if err := CheckSpan(m, "read", offset, len(into)); err != nil {
		return err
	}
	copy(into, m.Data[offset:])
	return nil
}

// Write copies bytes in.
func (m *HostMemory) Write(_ context.Context, offset int64, from []byte) error {
	if m.ReadOnly {
		return errors.New("write: imported memory is read-only")
	}
	if err := CheckSpan(m, "write", offset, len(from)); err != nil {
		return err
	}
	// from may be a mapped file.
	return mapfile.Guard(func() error { copy(m.Data[offset:], from); return nil })
}

// CheckSpan reports n bytes at an offset that do not lie in a memory.
func CheckSpan(m interface{ Size() int64 }, what string, offset int64, n int) error {
	if offset < 0 || offset > m.Size() || int64(n) > m.Size()-offset {
		return fmt.Errorf("%s: %d bytes at %d of a buffer of %d", what, n, offset, m.Size())
	}
	return nil
}

// Bound is the memory that a call binds to a parameter, and the offset in it. M is
// the device's own type of memory.
func Bound[M interface {
	Memory
	IsReadOnly() bool
}](c Call, p *program.Param) (m M, offset int64, err error) {
	view, ok := c.Slots[p.Slot]
	if !ok {
		return m, 0, errors.New("no buffer is bound")
	}
	m, ok = view.Memory.(M)
	switch {
	case !ok:
		return m, 0, fmt.Errorf("memory of another device (%T)", view.Memory)
	case p.Write && m.IsReadOnly():
		return m, 0, errors.New("the kernel writes imported memory, which is read-only")
	case view.Offset < 0 || view.Offset+p.Bytes > m.Size():
		return m, 0, fmt.Errorf("%d bytes at offset %d of a buffer of %d", p.Bytes, view.Offset, m.Size())
	}
	return m, view.Offset, nil
}
