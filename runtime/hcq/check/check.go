// Package check replays a trace on an emulated machine and says where the machine would
// have refused, noticed or answered something else.
package check

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"

	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/trace"
)

// Difference is something in a trace that the machine does otherwise, or does not like.
// Kind is ioctl, pbdma, method, sked, sm, mmu, window, stale, order, wait, load or leak;
// Code an errno, an ESR in hexadecimal, the bit of an interrupt, a method, an address, or
// a word.
type Difference struct {
	Line int    `json:"line"`
	Kind string `json:"kind"`
	Code string `json:"code"`
	Text string `json:"text"`
}

func (d Difference) String() string {
	return fmt.Sprintf("%d %s %s %s", d.Line, d.Kind, d.Code, d.Text)
}

// checker is a replay under way.
type checker struct {
	machine *emu.Machine
	maps    map[string][]byte
	seen    int // findings that were taken
	out     []Difference
	line    int
}

// Trace replays events.
func Trace(events []*trace.Event) []Difference {
	found, _ := Replay(events)
	return found
}

// replayMemory bounds the memory of a replay: what nobody touches costs nothing.
const replayMemory = 8 << 30

// Replay replays events, and counts the launches and copies.
func Replay(events []*trace.Event) (found []Difference, launches int) {
	return replayOn(emu.NewReplay(replayMemory), events)
}

func replayOn(machine *emu.Machine, events []*trace.Event) (found []Difference, launches int) {
	c := &checker{machine: machine, maps: make(map[string][]byte)}
	for _, e := range events { // what programs need is said anywhere
		if e.Kind == trace.Kernel {
			c.declare(e)
		}
	}
	for _, e := range events {
		c.line = e.Line
		c.event(e)
		c.take()
	}
	return c.out, c.machine.Counts()[emu.OnLaunch] + c.machine.Counts()[emu.OnCopy]
}

func (c *checker) differ(kind, code, format string, args ...any) {
	c.out = append(c.out, Difference{c.line, kind, code, fmt.Sprintf(format, args...)})
}

// take notes what the machine has found since.
func (c *checker) take() {
	found := c.machine.Findings()
	for _, f := range found[c.seen:] {
		c.differ(f.Kind, f.Code, "%s", f.Text)
	}
	c.seen = len(found)
}

func (c *checker) declare(e *trace.Event) {
	get := func(key string) int { return int(e.Needs[key]) }
	c.machine.Declare(e.Value, emu.Needs{
		Name: e.Label, Size: get("size"), Registers: get("regs"), Barriers: get("barriers"), Shared: get("shared"), Stack: get("stack"),
		Bank0: get("bank0"), Bank2: get("bank2"), Bank4: get("bank4"),
	})
}

func (c *checker) event(e *trace.Event) {
	switch e.Kind {
	case trace.Open:
		c.machine.ExpectFile(e.FD)
		_, err := c.machine.Open(e.Path)
		c.result(e, err, "open")
	case trace.Ioctl:
		c.ioctl(e)
	case trace.Mmap:
		b, err := c.machine.Mmap(e.FD, int(e.Value))
		if c.result(e, err, "mmap"); err == nil {
			c.maps[e.Name] = b
		}
	case trace.Publish:
		c.machine.Publish()
	case trace.Munmap:
		if err := c.machine.Munmap(c.maps[e.Name]); err != nil {
			c.differ("ioctl", name(err), "munmap of %s", e.Name)
		}
		delete(c.maps, e.Name)
	case trace.Close:
		if err := c.machine.Close(e.FD); err != nil {
			c.differ("ioctl", name(err), "close of %x", e.FD)
		}
	case trace.Doorbell:
		c.machine.Doorbell(c.maps[e.Name], int(e.Offset), uint32(e.Value))
	case trace.Store, trace.Wait, trace.Load:
		c.access(e)
	}
}

// access reads or writes mapped memory.
func (c *checker) access(e *trace.Event) {
	b, n := c.maps[e.Name], len(e.Bytes)
	switch e.Kind {
	case trace.Wait:
		n = 8
	case trace.Load:
		n = len(e.Out.Bytes)
	}
	if e.Offset > uint64(len(b)) || uint64(n) > uint64(len(b))-e.Offset {
		c.differ(string(e.Kind), "mapping", "%d bytes at %#x of %s, which has %d", n, e.Offset, e.Name, len(b))
		return
	}
	b = b[e.Offset:]
	switch e.Kind {
	case trace.Store:
		copy(b, e.Bytes)
	case trace.Wait:
		have := uint64(0)
		for i := 7; i >= 0; i-- {
			have = have<<8 | uint64(b[i])
		}
		if int64(have-e.Value) < 0 {
			c.differ("wait", "never", "%s+%x is %#x, want %#x or more", e.Name, e.Offset, have, e.Value)
		}
	case trace.Load:
		if at := e.Out.Match(b[:n]); at >= 0 {
			c.differ("load", "bytes", "byte %#x of %s is %02x, want %s", e.Offset+uint64(at), e.Name, b[at], e.Out)
		}
	}
}

func (c *checker) ioctl(e *trace.Event) {
	what := fmt.Sprintf("request %x of descriptor %x", e.Request, e.FD)
	if e.ByValue || len(e.Bytes) == 0 {
		c.result(e, c.machine.IoctlValue(e.FD, e.Request, e.Value), what)
		return
	}
	if emu.IsCharacteristics(e.Request) && e.Pointed {
		c.machine.ExpectCharacteristics(e.Pointee.Bytes)
	}
	c.machine.ExpectResult(e.Out.Bytes, func(offset int) bool { return e.Out.Any == nil || !e.Out.Any[offset] })
	argument, pointee := bytes.Clone(e.Bytes), make([]byte, emu.PointeeBytes(e.Request, e.Bytes))
	err := c.machine.Ioctl(e.FD, e.Request, argument, pointee, -1)
	c.result(e, err, what)
	if err != nil || !e.OK() {
		return
	}
	if at := e.Out.Match(argument); len(e.Out.Bytes) > 0 && at >= 0 {
		c.differ("ioctl", "result", "%s: byte %#x of %x differs from %s", what, at, argument, e.Out)
	}
	if at := e.Pointee.Match(pointee); e.Pointed && at >= 0 {
		c.differ("ioctl", "pointee", "%s: byte %#x differs", what, at)
	}
}

// result compares whether something succeeded. A refusal of a request is a finding of
// the machine already.
func (c *checker) result(e *trace.Event, err error, what string) {
	switch {
	case err == nil && !e.OK():
		c.differ("ioctl", "0", "%s: succeeds, was %s", what, e.Result)
	case err != nil && e.OK():
		before := len(c.out)
		if c.take(); len(c.out) == before {
			c.differ("ioctl", name(err), "%s", what)
		}
	case err != nil && name(err) != e.Result:
		c.differ("ioctl", name(err), "%s: was %s", what, e.Result)
	}
}

// name is an errno's.
func name(err error) string {
	var e syscall.Errno
	if errors.As(err, &e) {
		return emu.ErrnoName(e)
	}
	return err.Error()
}
