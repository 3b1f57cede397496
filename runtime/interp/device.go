package interp

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"tgc/internal/lists"
	"tgc/internal/mapfile"
	"tgc/ir/program"
	"tgc/runtime"
	"tgc/target"
)

// Options configures the interpreter device.
type Options struct {
	// Debug fills undefined stack arrays with NaN patterns and checks after
	// every call that nothing was written past a buffer.
	Debug bool
	// Shuffle runs the calls of a launch and the work units of a call in
	// random order, from this seed: results must not depend on either.
	Shuffle uint64
	// Target is the target to run programs for, a GPU say; nil is the
	// interpreter's own.
	Target *target.Desc
}

// Device interprets programs. It is always present: pure Go, slow, exact.
type Device struct{ options Options }

// New makes an interpreter device.
func New(options ...Options) *Device {
	d := new(Device)
	if len(options) > 0 {
		d.options = options[0]
	}
	return d
}

// Name is "interp".
func (d *Device) Name() string { return "interp" }

// Target describes the interpreter: the vectors of a wide CPU, because a long
// vector costs it one instruction.
func (d *Device) Target() *target.Desc {
	if d.options.Target != nil {
		return d.options.Target
	}
	return target.Interp()
}

// padding is the room after every allocation, in bytes. Programs may read it.
const padding = 64

// canary is what padding holds in debug runs.
var canary = bytes.Repeat([]byte{0xa5}, padding)

// memory is a buffer of the interpreter; padded has the room after it.
type memory struct {
	runtime.HostMemory
	padded []byte
}

func (m *memory) Free() { m.Data, m.padded = nil, nil }

// Alloc returns zeroed memory.
func (d *Device) Alloc(_ context.Context, size int64) (runtime.Memory, error) {
	if size < 0 || size > 1<<46 {
		return nil, fmt.Errorf("interp: allocation of %d bytes", size)
	}
	padded := newBytes(int(size) + padding)
	m := &memory{runtime.HostMemory{Data: padded[:size:size]}, padded}
	if d.options.Debug {
		copy(padded[size:], canary)
	}
	return m, nil
}

// Import reads host bytes where they are.
func (d *Device) Import(_ context.Context, b []byte) (runtime.Memory, error) {
	return &memory{runtime.HostMemory{Data: b, ReadOnly: true}, b}, nil
}

// Load verifies and prepares programs.
func (d *Device) Load(ctx context.Context, programs []*program.Program) ([]runtime.Executable, error) {
	return runtime.LoadEach(ctx, programs, func(_ context.Context, p *program.Program) (runtime.Executable, error) {
		return Compile(p, d.options.Debug)
	})
}

// Close does nothing: memory belongs to the garbage collector.
func (d *Device) Close() error { return nil }

// call is a recorded call; vars are the parameters to fill at each run.
type call struct {
	exec   *Compiled
	args   []Arg
	memory []*memory
}

type recording struct {
	device *Device
	mu     sync.Mutex
	calls  [][]call // by launch
	random *rand.Rand
}

// Record captures launches.
func (d *Device) Record(_ context.Context, launches []runtime.Launch) (runtime.Recording, error) {
	r := &recording{device: d, random: rand.New(rand.NewPCG(d.options.Shuffle, 0))}
	for _, l := range launches {
		var calls []call
		for _, c := range l.Calls {
			bound, err := bindCall(c)
			if err != nil {
				return nil, err
			}
			calls = append(calls, bound)
		}
		r.calls = append(r.calls, calls)
	}
	return r, nil
}

func bindCall(c runtime.Call) (call, error) {
	exec, ok := c.Exec.(*Compiled)
	if !ok {
		return call{}, fmt.Errorf("interp: record: an executable of another device (%T)", c.Exec)
	}
	p := exec.Program()
	out := call{exec: exec, args: make([]Arg, len(p.Params))}
	for i := range p.Params {
		param := &p.Params[i]
		if param.Kind != program.ParamBuffer {
			continue
		}
		m, data, err := bindBuffer(c, param)
		if err != nil {
			return call{}, fmt.Errorf("interp: record kernel %s: slot %d: %w", p.Name, param.Slot, err)
		}
		out.args[i].Bytes = data
		out.memory = append(out.memory, m)
	}
	return out, nil
}

func bindBuffer(c runtime.Call, p *program.Param) (*memory, []byte, error) {
	m, offset, err := runtime.Bound[*memory](c, p)
	if err == nil && offset%int64(p.Align) != 0 {
		err = fmt.Errorf("offset %d is not aligned to %d", offset, p.Align)
	}
	if err != nil {
		return nil, nil, err
	}
	return m, m.padded[offset:], nil
}

// Run replays the step. It stops between calls when the context ends.
func (r *recording) Run(ctx context.Context, vars map[string]int64) error {
	return mapfile.Guard(func() error { return r.play(ctx, vars, nil) }) // weights may be a mapped file
}

// Profile replays the step and reports the time of every call.
func (r *recording) Profile(ctx context.Context, vars map[string]int64) ([]time.Duration, error) {
	var times []time.Duration
	err := r.play(ctx, vars, func(d time.Duration) { times = append(times, d) })
	return times, err
}

// Free does nothing: memory belongs to the garbage collector.
func (r *recording) Free() {}

func (r *recording) play(ctx context.Context, vars map[string]int64, report func(time.Duration)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, calls := range r.calls {
		for _, i := range r.order(len(calls), report != nil) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			start := time.Now()
			if err := r.run(&calls[i], vars); err != nil {
				return err
			}
			if report != nil {
				report(time.Since(start))
			}
		}
	}
	return nil
}

// order is 0..n-1, shuffled in the test mode unless the caller needs order.
func (r *recording) order(n int, keep bool) []int {
	if r.device.options.Shuffle != 0 && !keep {
		return r.random.Perm(n)
	}
	return lists.Upto(n)
}

func (r *recording) run(c *call, vars map[string]int64) error {
	p := c.exec.Program()
	for i := range p.Params {
		if p.Params[i].Kind != program.ParamVar {
			continue
		}
		v, ok := vars[p.Params[i].Name]
		if !ok {
			return fmt.Errorf("interp: kernel %s: variable %q has no value", p.Name, p.Params[i].Name)
		}
		c.args[i].Int64 = v
	}
	if err := r.units(c, p.Units()); err != nil {
		return err
	}
	if !r.device.options.Debug {
		return nil
	}
	for _, m := range c.memory {
		if !m.ReadOnly && !bytes.Equal(m.padded[len(m.Data):], canary) {
			return fmt.Errorf("interp: kernel %s wrote behind a buffer of %d bytes", p.Name, m.Size())
		}
	}
	return nil
}

func (r *recording) units(c *call, n int64) error {
	if r.device.options.Shuffle == 0 {
		return c.exec.Run(c.args, 0, n)
	}
	for _, unit := range r.random.Perm(int(n)) {
		if err := c.exec.Run(c.args, int64(unit), int64(unit)+1); err != nil {
			return err
		}
	}
	return nil
}
