package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"tgc/runtime/hcq/port"
)

// Recorder writes a trace of what passes through a port. Its methods may be called from
// any goroutine.
type Recorder struct {
	port port.Port
	to   io.Writer

	mu     sync.Mutex
	err    error // the first of to
	count  int   // of mappings
	mapped []*recorded
	waited map[string]uint64 // value that was last waited for, by place
}

// recorded is a mapping with what it held when it was last looked at.
type recorded struct {
	name string
	data []byte
	old  []byte
}

// NewRecorder records what passes through a port.
func NewRecorder(of port.Port, to io.Writer) *Recorder {
	r := &Recorder{port: of, to: to, waited: make(map[string]uint64)}
	r.print(first)
	return r
}

// Err is the first error of what the trace is written to.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Recorder) print(line any) {
	if _, err := fmt.Fprintln(r.to, line); err != nil && r.err == nil {
		r.err = fmt.Errorf("trace: %w", err)
	}
}

// Open opens a node.
func (r *Recorder) Open(path string) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fd, err := r.port.Open(path)
	r.print(&Event{Kind: Open, Path: path, FD: fd, Result: errnoOf(err)})
	return fd, err
}

// Close closes a descriptor.
func (r *Recorder) Close(fd int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.port.Close(fd)
	r.print(&Event{Kind: Close, FD: fd})
	return err
}

// Ioctl makes a request. What it points to is written as it is afterwards.
func (r *Recorder) Ioctl(fd int, number uint32, argument, pointee []byte, pointer int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &Event{Kind: Ioctl, FD: fd, Request: number, Bytes: withoutPointer(argument, pointer)}
	err := r.port.Ioctl(fd, number, argument, pointee, pointer)
	if e.Result = errnoOf(err); err == nil {
		e.Out = Exactly(withoutPointer(argument, pointer))
		e.Pointed, e.Pointee = len(pointee) > 0, Exactly(bytes.Clone(pointee))
	}
	r.print(e)
	return err
}

func withoutPointer(argument []byte, pointer int) []byte {
	b := bytes.Clone(argument)
	if pointer >= 0 && pointer+8 <= len(b) {
		clear(b[pointer : pointer+8])
	}
	return b
}

// IoctlValue makes a request by value.
func (r *Recorder) IoctlValue(fd int, number uint32, value uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.port.IoctlValue(fd, number, value)
	r.print(&Event{Kind: Ioctl, FD: fd, Request: number, ByValue: true, Value: value, Result: errnoOf(err)})
	return err
}

// Mmap maps memory.
func (r *Recorder) Mmap(fd, length int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, err := r.port.Mmap(fd, length)
	e := &Event{Kind: Mmap, FD: fd, Value: uint64(length), Result: errnoOf(err)}
	if err == nil {
		e.Name = fmt.Sprintf("m%d", r.count)
		r.count++
		r.mapped = append(r.mapped, &recorded{name: e.Name, data: b, old: bytes.Clone(b)})
	}
	r.print(e)
	return b, err
}

// Munmap ends a mapping.
func (r *Recorder) Munmap(b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.port.Munmap(b)
	if m, _ := r.find(b); m != nil {
		r.print(&Event{Kind: Munmap, Name: m.name})
		r.mapped = slices.DeleteFunc(r.mapped, func(other *recorded) bool { return other == m })
	}
	return err
}

// find is the mapping that bytes lie in, and where.
func (r *Recorder) find(b []byte) (*recorded, uint64) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for _, m := range r.mapped {
		if base := uintptr(unsafe.Pointer(unsafe.SliceData(m.data))); at >= base && at < base+uintptr(len(m.data)) {
			return m, uint64(at - base)
		}
	}
	return nil, 0
}

// Publish writes what was stored since the last time, and is a full barrier.
func (r *Recorder) Publish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.mapped {
		r.stores(m)
	}
	r.port.Publish()
	r.print(&Event{Kind: Publish})
}

const (
	compareBytes = 4096 // at once
	runGap       = 16   // bytes that are the same between two stores that become one
)

// stores writes the runs of a mapping that have changed.
func (r *Recorder) stores(m *recorded) {
	for at := 0; at < len(m.data); at += compareBytes {
		end := min(at+compareBytes, len(m.data))
		if bytes.Equal(m.data[at:end], m.old[at:end]) {
			continue
		}
		for i := at; i < end; i++ {
			if m.data[i] == m.old[i] {
				continue
			}
			last := i
			for j := i; j < end && j <= last+runGap; j++ {
				if m.data[j] != m.old[j] {
					last = j
				}
			}
			r.print(&Event{Kind: Store, Name: m.name, Offset: uint64(i), Bytes: m.data[i : last+1]})
			copy(m.old[i:], m.data[i:last+1])
			i = last
		}
	}
}

// Doorbell rings.
func (r *Recorder) Doorbell(b []byte, offset int, value uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, at := r.find(b); m != nil {
		r.print(&Event{Kind: Doorbell, Name: m.name, Offset: at + uint64(offset), Value: uint64(value)})
	}
	r.port.Doorbell(b, offset, value)
	r.said()
}

// said writes what an emulated machine says of its launches, where it does.
func (r *Recorder) said() {
	machine, ok := r.port.(interface{ Said() []string })
	if !ok {
		return
	}
	for _, line := range machine.Said() {
		r.print(&Event{Kind: GPU, Text: line})
	}
}

// Waited notes that a cell was waited for: it holds a value or a later one.
func (r *Recorder) Waited(cell []byte, value uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, at := r.find(cell)
	if m == nil {
		return
	}
	r.said()
	e := &Event{Kind: Wait, Name: m.name, Offset: at, Value: value}
	if place := fmt.Sprintf("%s+%x", m.name, at); r.waited[place] != value {
		r.waited[place] = value
		r.print(e)
	}
	copy(m.old, m.data) // the GPU has written, not the CPU
}

// Kernel notes what the program at an address needs: see the keys of a kernel event.
func (r *Recorder) Kernel(address uint64, name string, needs map[string]uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print(&Event{Kind: Kernel, Value: address, Label: name, Needs: needs})
}

// errnoOf is the name of an error; 0 for none.
func errnoOf(err error) string {
	if err == nil {
		return "0"
	}
	var e syscall.Errno
	if !errors.As(err, &e) {
		return "EIO"
	}
	for name, number := range errnos {
		if number == e {
			return name
		}
	}
	return "EIO"
}

// errnos are those that a kernel driver answers.
var errnos = map[string]syscall.Errno{
	"EPERM": syscall.EPERM, "ENOENT": syscall.ENOENT, "EINTR": syscall.EINTR, "EIO": syscall.EIO, "EBADF": syscall.EBADF, "EAGAIN": syscall.EAGAIN,
	"ENOMEM": syscall.ENOMEM, "EACCES": syscall.EACCES, "EFAULT": syscall.EFAULT, "EBUSY": syscall.EBUSY, "EEXIST": syscall.EEXIST,
	"ENODEV": syscall.ENODEV, "EINVAL": syscall.EINVAL, "EMFILE": syscall.EMFILE, "ENOTTY": syscall.ENOTTY, "ENOSPC": syscall.ENOSPC,
	"EOVERFLOW": syscall.EOVERFLOW, "ETIMEDOUT": syscall.ETIMEDOUT, "EOPNOTSUPP": syscall.EOPNOTSUPP,
}
