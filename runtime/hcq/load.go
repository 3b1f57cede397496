package hcq

import (
	"context"
	"errors"
	"fmt"

	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/hcq/cubin"
	"tgc/runtime/hcq/trace"
	"tgc/runtime/hcq/word"
	"tgc/runtime/nvidia"
)

// Executable is a program whose machine code lies on the device.
type Executable struct {
	device   *Device
	program  *program.Program
	rendered *nvidia.Rendered
	code     *code
}

// code is machine code on the device.
type code struct {
	kernel *cubin.Kernel
	image  *Buffer
}

// Program is what was loaded.
func (e *Executable) Program() *program.Program { return e.program }

// Source is what was rendered.
func (e *Executable) Source() string { return e.rendered.Text }

// Rendered is the source and how to launch it.
func (e *Executable) Rendered() *nvidia.Rendered { return e.rendered }

// Stats are figures of the machine code.
func (e *Executable) Stats() nvidia.Stats {
	k := e.code.kernel
	s := nvidia.Stats{Registers: k.Registers, LocalBytes: k.StackBytes, SharedBytes: k.SharedBytes}
	if e.rendered.Dynamic {
		s.SharedBytes += e.rendered.Shared
	}
	return s
}

// Load renders and assembles programs, as many at once as there are processors, and
// places their code. Equal texts are assembled once, and once for all processes that
// share the cache.
func (d *Device) Load(ctx context.Context, programs []*program.Program) ([]runtime.Executable, error) {
	return runtime.LoadEach(ctx, programs, d.load)
}

func (d *Device) load(ctx context.Context, p *program.Program) (runtime.Executable, error) {
	rendered, err := nvidia.Render(p, d.desc, nvidia.RenderPTX)
	if err != nil {
		return nil, fmt.Errorf("hcq: %w", err)
	}
	e := &Executable{device: d, program: p, rendered: rendered}
	if e.code, err = d.loader.Load(ctx, d.machine.Fingerprint(), rendered); err != nil {
		return nil, fmt.Errorf("hcq: kernel %s: %w", p.Name, err)
	}
	if warning := e.Stats().Warning(p.Name); warning != "" && d.options.Warn != nil {
		d.options.Warn(warning)
	}
	return e, nil
}

// place puts machine code into memory.
func (d *Device) place(machine []byte, r *nvidia.Rendered) (*code, error) {
	file, err := cubin.Read(machine)
	if err != nil {
		return nil, err
	}
	k, err := file.Kernel(r.Entry)
	if err != nil {
		return nil, err
	}
	if err := checkKernel(k, r); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if d.options.Loaded != nil {
		if err := d.options.Loaded(machine, r.Text); err != nil {
			return nil, err
		}
	}
	c := &code{kernel: k}
	if c.image, err = d.board.Alloc(int64(file.Size()+cubin.Slack), UseData); err != nil {
		return nil, err
	}
	image, err := file.Image(c.image.Address)
	if err != nil {
		return nil, errors.Join(err, d.board.Free(c.image))
	}
	copy(c.image.Host, image)
	if d.options.Placed != nil {
		d.options.Placed(c.image.Address+uint64(k.Code.Offset), k)
	}
	d.images = append(d.images, c)
	return c, nil
}

// RecordKernel is a function for Options.Placed that writes into a trace what programs
// need.
func RecordKernel(r *trace.Recorder) func(address uint64, k *cubin.Kernel) {
	return func(address uint64, k *cubin.Kernel) {
		needs := map[string]uint64{
			"size": uint64(k.Code.Bytes), "regs": uint64(k.Registers), "barriers": uint64(k.Barriers), "shared": uint64(k.SharedBytes),
			"stack": uint64(k.StackBytes), "bank0": uint64(len(k.Bank0)),
		}
		for _, b := range k.Banks {
			needs[fmt.Sprintf("bank%d", b.Number)] = uint64(b.Bytes)
		}
		r.Kernel(address, k.Name, needs)
	}
}

// paramBytes is the size of every parameter that is rendered.
const paramBytes = 8

// checkKernel reports machine code that cannot be launched as the source says.
func checkKernel(k *cubin.Kernel, r *nvidia.Rendered) error {
	if len(k.Params) != len(r.Params) {
		return fmt.Errorf("machine code with %d parameters, want %d", len(k.Params), len(r.Params))
	}
	for i, p := range k.Params {
		if p.Ordinal != i || p.Bytes != paramBytes {
			return fmt.Errorf("parameter %d of the machine code: number %d of %d bytes", i, p.Ordinal, p.Bytes)
		}
	}
	if most := word.MostThreads(k.Registers); r.Threads() > most {
		return fmt.Errorf("%d threads a block, %d registers each: the device runs at most %d", r.Threads(), k.Registers, most)
	}
	return nil
}
