package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/cuda/driver"
)

// Executable is a program loaded on a device.
type Executable struct {
	device   *Device
	program  *program.Program
	rendered *Rendered
	kernel   driver.Kernel // without parameters
	stats    Stats
}

// Stats are figures of a kernel's machine code.
type Stats struct {
	Registers   int // of a thread
	LocalBytes  int // of a thread: stack and spilled registers
	SharedBytes int // of a block, static and dynamic
}

// code is machine code on the device.
type code struct {
	module   driver.Module
	function driver.Func
	stats    Stats
}

// Program is what was loaded.
func (e *Executable) Program() *program.Program { return e.program }

// Source is what was rendered: PTX or CUDA C.
func (e *Executable) Source() string { return e.rendered.Text }

// Stats are figures of the machine code.
func (e *Executable) Stats() Stats { return e.stats }

// Load renders and assembles programs, as many at once as there are processors.
// Equal texts are assembled once, and once for all processes that share the
// cache.
func (d *Device) Load(ctx context.Context, programs []*program.Program) ([]runtime.Executable, error) {
	return runtime.LoadEach(ctx, programs, d.load)
}

func (d *Device) load(ctx context.Context, p *program.Program) (runtime.Executable, error) {
	rendered, err := d.options.Renderer(p, d.desc)
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	e := &Executable{device: d, program: p, rendered: rendered}
	for _, i := range rendered.Params {
		if p.Params[i].Kind == program.ParamTable {
			return nil, fmt.Errorf("cuda: kernel %s: a table as parameter %d, want it in the text", p.Name, i)
		}
	}
	c, err := d.compile(ctx, rendered)
	if err != nil {
		return nil, fmt.Errorf("cuda: kernel %s: %w", p.Name, err)
	}
	if e.kernel, err = rendered.launch(c.function); err != nil {
		return nil, fmt.Errorf("cuda: kernel %s: %w", p.Name, err)
	}
	e.stats = c.stats
	if c.stats.LocalBytes > 0 && d.options.Warn != nil {
		d.options.Warn(fmt.Sprintf("kernel %s: %d registers and %d bytes of stack a thread: spilled registers are slow",
			p.Name, c.stats.Registers, c.stats.LocalBytes))
	}
	return e, nil
}

// pending is machine code that somebody is making or has made.
type pending struct {
	done chan struct{} // closed when the rest is set
	code *code
	err  error
}

// compile loads the machine code of a text, once however many ask for it.
func (d *Device) compile(ctx context.Context, r *Rendered) (*code, error) {
	compiler, err := d.nvrtc.fingerprint(d, r)
	if err != nil {
		return nil, err
	}
	key := strings.Join([]string{compiler + d.asm.fingerprint(), r.Entry, r.Text}, "\n")
	for {
		d.mu.Lock()
		p := d.loaded[key]
		if p == nil {
			p = &pending{done: make(chan struct{})}
			d.loaded[key] = p
			d.mu.Unlock()
			d.settle(ctx, key, p, r)
			return p.code, p.err
		}
		d.mu.Unlock()
		select {
		case <-p.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !errors.Is(p.err, context.Canceled) {
			return p.code, p.err
		} // who made it gave up, not this caller
	}
}

// settle makes the code of a pending entry. A failure does not stay.
func (d *Device) settle(ctx context.Context, key string, p *pending, r *Rendered) {
	defer close(p.done)
	if p.code, p.err = d.assemble(ctx, key, r); p.err != nil {
		d.mu.Lock()
		delete(d.loaded, key)
		d.mu.Unlock()
	}
}

// assemble takes the machine code of a text from the cache or the assembler.
func (d *Device) assemble(ctx context.Context, key string, r *Rendered) (*code, error) {
	if cubin, hit := d.cache.Get(key); hit {
		if c, err := d.module(cubin, r); err == nil {
			return c, nil
		} // machine code that does not load is assembled again
	}
	text, err := d.nvrtc.ptx(d, r)
	if err != nil {
		return nil, err
	}
	cubin, log, err := d.asm.assemble(ctx, r.Entry, text)
	if err != nil {
		return nil, assemblyError(err, log)
	}
	c, err := d.module(cubin, r)
	if err != nil {
		return nil, assemblyError(err, log)
	}
	_ = d.cache.Put(key, cubin) // a full or read-only cache is no failure
	return c, nil
}

// assemblyError adds what the assembler said.
func assemblyError(err error, log string) error {
	if log = strings.TrimSpace(log); log == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, log)
}

// module loads machine code and reads its figures.
func (d *Device) module(cubin []byte, r *Rendered) (*code, error) {
	c := &code{}
	err := d.with(func() error {
		m, log, err := d.drv.ModuleLoad(cubin)
		if err != nil {
			return assemblyError(err, log)
		}
		c.module = m
		if err := d.function(c, r); err != nil {
			return errors.Join(err, d.drv.ModuleUnload(m))
		}
		return nil
	})
	return c, err
}

func (d *Device) function(c *code, r *Rendered) error {
	var err error
	if c.function, err = d.drv.ModuleFunction(c.module, r.Entry); err != nil {
		return err
	}
	threads := 0
	for _, read := range []struct {
		attribute driver.FuncAttribute
		to        *int
	}{
		{driver.FuncRegisters, &c.stats.Registers},
		{driver.FuncLocalBytes, &c.stats.LocalBytes},
		{driver.FuncSharedBytes, &c.stats.SharedBytes},
		{driver.FuncMaxThreads, &threads},
	} {
		if *read.to, err = d.drv.FuncAttribute(c.function, read.attribute); err != nil {
			return err
		}
	}
	if want := max(r.Block[0], 1) * max(r.Block[1], 1) * max(r.Block[2], 1); want > threads {
		return fmt.Errorf("%d threads a block, %d registers each: the device runs at most %d", want, c.stats.Registers, threads)
	}
	if !r.Dynamic {
		return nil
	}
	c.stats.SharedBytes += r.Shared
	return d.drv.FuncSetAttribute(c.function, driver.FuncDynamicShared, r.Shared)
}
