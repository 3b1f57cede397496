package hcq_test

import (
	"syscall"

	"tgc/runtime/hcq/emu"
)

// port is an emulated machine whose answers a test changes.
type port struct {
	*emu.Machine
	calls int
	// before, where not nil, sees every call and may fail it.
	before func(what string, number uint32, argument []byte) error
	space  int    // descriptor of the address space
	deaf   bool   // doorbells are lost
	deafTo uint32 // those for a work submit token are
}

func (p *port) call(what string, number uint32, argument []byte) error {
	p.calls++
	if p.before == nil {
		return nil
	}
	return p.before(what, number, argument)
}

func (p *port) Open(path string) (int, error) {
	if err := p.call("open", 0, nil); err != nil {
		return -1, err
	}
	return p.Machine.Open(path)
}

func (p *port) Ioctl(fd int, number uint32, argument, pointee []byte, pointer int) error {
	if err := p.call("ioctl", number, argument); err == errSkip {
		return nil
	} else if err != nil {
		return err
	}
	err := p.Machine.Ioctl(fd, number, argument, pointee, pointer)
	if number == allocSpace && err == nil {
		p.space = int(argument[4])
	}
	return err
}

func (p *port) Mmap(fd, bytes int) ([]byte, error) {
	if err := p.call("mmap", 0, nil); err != nil {
		return nil, err
	}
	return p.Machine.Mmap(fd, bytes)
}

func (p *port) Doorbell(page []byte, offset int, v uint32) {
	if !p.deaf && (p.deafTo == 0 || p.deafTo != v) {
		p.Machine.Doorbell(page, offset, v)
	}
}

// errSkip of a test's function makes a request succeed that does nothing.
const errSkip = syscall.Errno(0xfff)

// Work submit tokens that the machine gives to the queues.
const (
	computeToken = 0x1ff
	copyToken    = 0x1fe
)

// Requests that tests look for, from the vendor's pages.
const (
	allocMemory = 0x40144e03
	allocSpace  = 0xc0404708
	reserveVA   = 0xc0204106
	freeVA      = 0xc0204103
	mapBuffer   = 0xc0284107
)
