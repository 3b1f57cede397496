package cpu

import (
	"context"
	"errors"
	"fmt"

	"tgc/ir/program"
	"tgc/render/llvm"
	"tgc/runtime"
	"tgc/runtime/cpu/native"
	"tgc/runtime/cpu/object"
)

// executable is a compiled program.
type executable struct {
	device  *Device
	program *program.Program
	source  string
	entry   uintptr
	tables  []*native.Memory // by parameter, nil where it is no table
}

func (e *executable) Program() *program.Program { return e.program }
func (e *executable) Source() string            { return e.source }

// Load renders and compiles programs, as many at once as there are processors.
// Equal programs are compiled once, and once for all processes that share the
// object cache.
func (d *Device) Load(ctx context.Context, programs []*program.Program) ([]runtime.Executable, error) {
	return runtime.LoadEach(ctx, programs, d.load)
}

func (d *Device) load(ctx context.Context, p *program.Program) (runtime.Executable, error) {
	if err := program.Verify(p); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	text, entry, err := llvm.Render(p, d.desc)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	c, err := d.compile(ctx, text, entry)
	if err != nil {
		return nil, fmt.Errorf("cpu: kernel %s: %w", p.Name, err)
	}
	e := &executable{device: d, program: p, source: text, entry: c.entry, tables: make([]*native.Memory, len(p.Params))}
	for i := range p.Params {
		if p.Params[i].Kind == program.ParamTable {
			if e.tables[i], err = d.table(p.Params[i].Table); err != nil {
				return nil, fmt.Errorf("cpu: kernel %s: table: %w", p.Name, err)
			}
		}
	}
	return e, nil
}

// compile maps the object of an IR text, from memory, the cache or LLVM.
func (d *Device) compile(ctx context.Context, text, entry string) (*code, error) {
	key := d.compiler.Fingerprint() + "\n" + text
	d.mu.Lock()
	c := d.loaded[key]
	d.mu.Unlock()
	if c != nil {
		return c, nil
	}
	var mapped *object.Object
	var err error
	file, hit := d.cache.Get(key)
	if hit {
		mapped, err = object.Load(file)
	}
	if !hit || err != nil { // a cached object that does not load is compiled again
		if file, err = d.compiler.Compile(ctx, []byte(text)); err != nil {
			return nil, err
		}
		if mapped, err = object.Load(file); err != nil {
			return nil, err
		}
		_ = d.cache.Put(key, file) // a full or read-only cache is no failure
	}
	address, ok := mapped.Entry(entry)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the object has no function %s", entry), mapped.Close())
	}
	return d.keep(key, &code{object: mapped, entry: address})
}

// keep records mapped code; another goroutine may have been faster.
func (d *Device) keep(key string, c *code) (*code, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if other := d.loaded[key]; other != nil {
		return other, c.object.Close()
	}
	d.loaded[key] = c
	return c, nil
}

// table is constant memory with these bytes, shared by all kernels.
func (d *Device) table(data string) (*native.Memory, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.tables[data]; m != nil {
		return m, nil
	}
	m, err := native.Alloc(int64(len(data)) + padding)
	if err != nil {
		return nil, err
	}
	copy(m.Bytes(), data)
	d.tables[data] = m
	return m, nil
}
