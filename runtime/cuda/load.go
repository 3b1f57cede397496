package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/cuda/driver"
	"tgc/runtime/nvidia"
)

// Executable is a program loaded on a device.
type Executable struct {
	device   *Device
	program  *program.Program
	rendered *Rendered
	kernel   driver.Kernel // without parameters
	stats    Stats
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

// Rendered is the source and how to launch it.
func (e *Executable) Rendered() *Rendered { return e.rendered }

// Stats are figures of the machine code.
func (e *Executable) Stats() Stats { return e.stats }

// Load renders and assembles programs, as many at once as there are processors.
// Equal texts are assembled once, and once for all processes that share the
// cache.
func (d *Device) Load(ctx context.Context, programs []*program.Program) ([]runtime.Executable, error) {
	return runtime.LoadEach(ctx, programs, d.load)
}

func (d *Device) load(ctx context.Context, p *program.Program) (runtime.Executable, error) {
	rendered, err := nvidia.Render(p, d.desc, d.options.Renderer)
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	e := &Executable{device: d, program: p, rendered: rendered}
	c, err := d.compile(ctx, rendered)
	if err != nil {
		return nil, fmt.Errorf("cuda: kernel %s: %w", p.Name, err)
	}
	if e.kernel, err = kernelOf(rendered, c.function); err != nil {
		return nil, fmt.Errorf("cuda: kernel %s: %w", p.Name, err)
	}
	e.stats = c.stats
	if warning := c.stats.Warning(p.Name); warning != "" && d.options.Warn != nil {
		d.options.Warn(warning)
	}
	return e, nil
}

// kernelOf is a rendered kernel as the driver takes it, without parameters.
func kernelOf(r *Rendered, f driver.Func) (driver.Kernel, error) {
	shape, err := r.Shape()
	return driver.Kernel{Func: f, Grid: shape.Grid, Block: shape.Block, Shared: shape.Shared}, err
}

// compile loads the machine code of a text, once however many ask for it.
func (d *Device) compile(ctx context.Context, r *Rendered) (*code, error) {
	compiler, err := d.nvrtc.fingerprint(d, r)
	if err != nil {
		return nil, err
	}
	return d.loader.Load(ctx, compiler+d.asm.fingerprint(), r)
}

// assemble makes machine code of a text.
func (d *Device) assemble(ctx context.Context, r *Rendered) (cubin []byte, log string, err error) {
	text, err := d.nvrtc.ptx(d, r)
	if err != nil {
		return nil, "", err
	}
	return d.asm.assemble(ctx, r.Entry, text)
}

// module loads machine code and reads its figures.
func (d *Device) module(cubin []byte, r *Rendered) (*code, error) {
	c := &code{}
	err := d.with(func() error {
		m, log, err := d.drv.ModuleLoad(cubin)
		if err != nil {
			return nvidia.AssemblyError(err, log)
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
	if want := r.Threads(); want > threads {
		return fmt.Errorf("%d threads a block, %d registers each: the device runs at most %d", want, c.stats.Registers, threads)
	}
	if r.Carveout > 0 {
		if err := d.drv.FuncSetAttribute(c.function, driver.FuncCarveout, d.carveout(r.Carveout)); err != nil {
			return err
		}
	}
	if !r.Dynamic {
		return nil
	}
	c.stats.SharedBytes += r.Shared
	return d.drv.FuncSetAttribute(c.function, driver.FuncDynamicShared, r.Shared)
}

// carveout is so many KB as the driver takes them: hundredths of the most, which it rounds up to the next division
// there is.
func (d *Device) carveout(kb int) int { return 100 * kb / slices.Max(d.desc.Carveouts) }
