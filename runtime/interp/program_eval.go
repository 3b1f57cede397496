package interp

import (
	"fmt"
	"sync"

	"tgc/ir/program"
	"tgc/ir/program/opt"
)

// Arg is an argument of a program: bytes for a buffer, an integer for a VAR.
// The argument of a table is ignored.
type Arg struct {
	Bytes []byte
	Int64 int64
}

// Compiled is a program ready to be interpreted. It is safe for concurrent
// use: every run has registers of its own, kept for the next one.
type Compiled struct {
	source *program.Program
	basic  *program.Program // after ExpandMath
	debug  bool

	mu   sync.Mutex
	idle []*machine
}

// Compile verifies a program and prepares it. debug fills what is undefined
// with NaN patterns.
func Compile(p *program.Program, debug bool) (*Compiled, error) {
	if err := program.VerifyGPU(p); err != nil {
		return nil, fmt.Errorf("interp: %w", err)
	}
	c := &Compiled{source: p, basic: opt.ExpandMath(p), debug: debug}
	m, err := newMachine(c.basic, debug)
	if err != nil {
		return nil, err
	}
	c.idle = append(c.idle, m)
	return c, nil
}

// Program is the program that was compiled.
func (c *Compiled) Program() *program.Program { return c.source }

// Source is empty: nothing is printed.
func (c *Compiled) Source() string { return "" }

// Run executes the prologue and the work units [lo, hi), in order, with one
// argument per parameter. A bad memory access is an error that names kernel,
// instruction, buffer and offset; stores before it have happened.
func (c *Compiled) Run(args []Arg, lo, hi int64) error {
	m, err := c.take()
	if err != nil {
		return err
	}
	defer c.put(m)
	if err := m.bind(args); err != nil {
		return err
	}
	return m.run(lo, hi)
}

func (c *Compiled) take() (*machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		m := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return m, nil
	}
	return newMachine(c.basic, c.debug)
}

func (c *Compiled) put(m *machine) {
	c.mu.Lock()
	c.idle = append(c.idle, m)
	c.mu.Unlock()
}

// RunProgram compiles a program and runs the work units [lo, hi).
func RunProgram(p *program.Program, args []Arg, lo, hi int64) error {
	c, err := Compile(p, true)
	if err != nil {
		return err
	}
	return c.Run(args, lo, hi)
}
