package nvidia

import (
	"errors"
	"fmt"
	"slices"

	"tgc/ir/program"
	"tgc/runtime"
)

// Executable is a program that a device has loaded, as calls need it.
type Executable interface {
	runtime.Executable
	Rendered() *Rendered
}

// Memory is a device's own memory.
type Memory interface {
	runtime.Memory
	IsReadOnly() bool
	Address() uint64
	Freed() bool
}

// Call is a recorded kernel with its parameters.
type Call struct {
	Program  *program.Program
	Rendered *Rendered
	Params   []uint64 // in the order of Rendered.Params
	Launch   int      // number of its launch
	Stale    bool     // a parameter has changed since somebody last set this to false
	vars     []variable
}

// variable is a parameter that holds the value of a VAR.
type variable struct {
	param int
	name  string
}

// Bind fills in the parameters of a call of a launch. Use checks that memory is this
// device's and notes it.
func Bind[M Memory](c runtime.Call, exec Executable, launch int, use func(M) error) (Call, error) {
	p, rendered := exec.Program(), exec.Rendered()
	out := Call{Program: p, Rendered: rendered, Params: make([]uint64, len(rendered.Params)), Launch: launch}
	for at, i := range rendered.Params {
		param := &p.Params[i]
		if param.Kind == program.ParamVar {
			out.vars = append(out.vars, variable{at, param.Name})
			continue
		}
		address, err := bindBuffer(c, param, use)
		if err != nil {
			return Call{}, fmt.Errorf("record kernel %s: slot %d: %w", p.Name, param.Slot, err)
		}
		out.Params[at] = address
	}
	return out, nil
}

func bindBuffer[M Memory](c runtime.Call, p *program.Param, use func(M) error) (uint64, error) {
	m, offset, err := runtime.Bound[M](c, p)
	if err != nil {
		return 0, err
	}
	if err := use(m); err != nil {
		return 0, err
	}
	if m.Freed() {
		return 0, errors.New("the memory has been freed")
	}
	address := m.Address() + uint64(offset)
	if p.Align > 0 && address%uint64(p.Align) != 0 {
		return 0, fmt.Errorf("address %#x is not aligned to %d", address, p.Align)
	}
	return address, nil
}

// SetVars fills variables in and notes whether one has changed.
func (c *Call) SetVars(vars map[string]int64) error {
	for _, v := range c.vars {
		value, ok := vars[v.name]
		if !ok {
			return fmt.Errorf("kernel %s: variable %q has no value", c.Name(), v.name)
		}
		if c.Params[v.param] != uint64(value) {
			c.Params[v.param] = uint64(value)
			c.Stale = true
		}
	}
	return nil
}

// HasVars reports whether a parameter holds the value of a VAR.
func (c *Call) HasVars() bool { return len(c.vars) > 0 }

// Name is the program's.
func (c *Call) Name() string { return c.Program.Name }

// Again is the same call some launches later, with parameters of its own.
func (c *Call) Again(launches int) Call {
	out := *c
	out.Params = slices.Clone(c.Params)
	out.Launch += launches
	return out
}

// Fault describes a call as the one at fault.
func (c *Call) Fault(in string, err error) *FaultError {
	f := &FaultError{Runtime: in, Kernel: c.Name(), Err: err}
	for at, i := range c.Rendered.Params {
		p := &c.Program.Params[i]
		switch p.Kind {
		case program.ParamVar:
			f.Arguments = append(f.Arguments, fmt.Sprintf("%s = %d", p.Name, int64(c.Params[at])))
		case program.ParamBuffer:
			f.Arguments = append(f.Arguments, fmt.Sprintf("slot %d %s: %d bytes at %#x", p.Slot, p.Name, p.Bytes, c.Params[at]))
		}
	}
	return f
}

// LaunchAt lists the calls of the launch that starts at a call; launchOf is the
// number of a call's launch.
func LaunchAt(calls, at int, launchOf func(call int) int) []int {
	var launch []int
	for i := at; i < calls && launchOf(i) == launchOf(at); i++ {
		launch = append(launch, i)
	}
	return launch
}
