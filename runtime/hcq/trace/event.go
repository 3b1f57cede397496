package trace

import (
	"fmt"
	"strings"
)

// Kind is what an event is.
type Kind string

// Kinds of events.
const (
	Open     Kind = "open"
	Ioctl    Kind = "ioctl"
	Mmap     Kind = "mmap"
	Store    Kind = "store"
	Publish  Kind = "publish"
	Doorbell Kind = "doorbell"
	Wait     Kind = "wait"
	Load     Kind = "load"
	Munmap   Kind = "munmap"
	Close    Kind = "close"
	Kernel   Kind = "kernel"
	GPU      Kind = "gpu"
)

// Event is a line. Which fields mean something its kind says.
type Event struct {
	Line    int
	Kind    Kind
	Path    string
	FD      int // also the result of open
	Request uint32
	Bytes   []byte  // of a request, a store; the length of mmap is Value
	Value   uint64  // of doorbell, wait, an ioctl by value, the length of mmap, the address of kernel
	ByValue bool    // an ioctl
	Result  string  // 0 or the name of an errno; empty for 0 of open and mmap
	Out     Pattern // what a request gave back, or a load read
	Pointee Pattern
	Pointed bool   // there is a pointee
	Name    string // of a mapping
	Offset  uint64
	Needs   map[string]uint64 // of kernel
	Label   string            // its name
	Text    string            // of gpu
}

// OK says that the event succeeded.
func (e *Event) OK() bool { return e.Result == "" || e.Result == "0" }

// Pattern is bytes, some of which may be anything.
type Pattern struct {
	Bytes []byte
	Any   []bool // nil where all bytes are given
	Rest  bool   // all that follows may be anything
}

// Exactly is the pattern of bytes.
func Exactly(b []byte) Pattern { return Pattern{Bytes: b} }

// Match is the first byte that differs; -1 for none.
func (p Pattern) Match(b []byte) int {
	for i, want := range p.Bytes {
		if i >= len(b) || b[i] != want && !p.any(i) {
			return i
		}
	}
	if len(b) > len(p.Bytes) && !p.Rest {
		return len(p.Bytes)
	}
	return -1
}

func (p Pattern) any(i int) bool { return p.Any != nil && p.Any[i] }

// Word is the little-endian word of 32 bits at an offset, where all of it is given.
func (p Pattern) Word(at int) (v uint32, ok bool) {
	for i := range 4 {
		if at+i >= len(p.Bytes) || p.any(at+i) {
			return 0, false
		}
		v |= uint32(p.Bytes[at+i]) << (8 * i)
	}
	return v, true
}

func (p Pattern) String() string {
	var b strings.Builder
	for i, v := range p.Bytes {
		if p.any(i) {
			b.WriteString("..")
			continue
		}
		fmt.Fprintf(&b, "%02x", v)
	}
	return b.String()
}

func (e *Event) String() string {
	place := fmt.Sprintf("%s+%x", e.Name, e.Offset)
	switch e.Kind {
	case Open:
		return fmt.Sprintf("open %s = %s", e.Path, e.number(fmt.Sprintf("%x", e.FD)))
	case Ioctl:
		return e.ioctl()
	case Mmap:
		return fmt.Sprintf("mmap %x %x = %s", e.FD, e.Value, e.number(e.Name))
	case Store:
		return fmt.Sprintf("store %s %x", place, e.Bytes)
	case Doorbell:
		return fmt.Sprintf("doorbell %s %x", place, e.Value)
	case Wait:
		return fmt.Sprintf("wait %s geq %x", place, e.Value)
	case Load:
		return fmt.Sprintf("load %s = %s", place, e.Out)
	case Munmap:
		return "munmap " + e.Name
	case Close:
		return fmt.Sprintf("close %x", e.FD)
	case Kernel:
		return e.kernel()
	case GPU:
		return "gpu " + e.Text
	}
	return string(e.Kind)
}

// number is a result, or the errno where there is none.
func (e *Event) number(result string) string {
	if !e.OK() {
		return e.Result
	}
	return result
}

func (e *Event) ioctl() string {
	result := e.Result
	if result == "" {
		result = "0"
	}
	if e.ByValue {
		return fmt.Sprintf("ioctl %x %x =%x = %s", e.FD, e.Request, e.Value, result)
	}
	text := fmt.Sprintf("ioctl %x %x %x = %s", e.FD, e.Request, e.Bytes, result)
	if len(e.Bytes) == 0 {
		text = fmt.Sprintf("ioctl %x %x = %s", e.FD, e.Request, result)
	}
	if !e.OK() {
		return text
	}
	if len(e.Out.Bytes) > 0 {
		text += " " + e.Out.String()
	}
	if e.Pointed {
		text += " | " + e.Pointee.String()
	}
	return text
}

// needs are the keys of a kernel, in the order in which they are written.
var needs = []string{"size", "regs", "barriers", "shared", "stack", "bank0", "bank2", "bank4"}

func (e *Event) kernel() string {
	text := fmt.Sprintf("kernel %x", e.Value)
	for _, key := range needs {
		if v, ok := e.Needs[key]; ok {
			text += fmt.Sprintf(" %s=%x", key, v)
		}
	}
	if e.Label != "" {
		text += " name=" + e.Label
	}
	return text
}
