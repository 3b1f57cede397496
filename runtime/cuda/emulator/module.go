package emulator

import (
	"tgc/internal/ptxemu"
	"tgc/runtime/cuda/driver"
)

// function is a kernel of a loaded module.
type function struct {
	module  driver.Module
	kernel  *ptxemu.Kernel
	dynamic int // most bytes of dynamic shared memory, raised by FuncSetAttribute
}

// defaultShared is the shared memory that a block has without asking, in bytes.
const defaultShared = 48 << 10

// Link reads the text and returns it: it is what ModuleLoad takes.
func (d *Driver) Link(_, text string) (image []byte, log string, err error) {
	if _, err := ptxemu.Parse(text); err != nil {
		return nil, err.Error(), refuse("cuLinkAddData", driver.InvalidPTX, "a PTX compilation failed")
	}
	return []byte(text), "", nil
}

// ModuleLoad reads PTX.
func (d *Driver) ModuleLoad(image []byte) (m driver.Module, log string, err error) {
	m, err = made(d, "cuModuleLoadDataEx", func(c *gpuContext, h driver.Module) error {
		parsed, err := ptxemu.Parse(string(image))
		if err != nil {
			log = err.Error()
			return refuse("cuModuleLoadDataEx", driver.InvalidPTX, "a PTX compilation failed")
		}
		c.modules[h] = parsed
		return nil
	})
	return m, log, err
}

// ModuleUnload drops a module after all work that may use it.
func (d *Driver) ModuleUnload(m driver.Module) error {
	return d.in("cuModuleUnload", func(c *gpuContext) error {
		loaded := c.modules[m]
		if loaded == nil {
			return refuse("cuModuleUnload", driver.InvalidHandle, "no such module")
		}
		if err := c.drainAll(); err != nil {
			return err
		}
		for h, f := range c.functions {
			if f.module == m {
				delete(c.functions, h)
			}
		}
		delete(c.modules, m)
		return loaded.Unload(c.memory)
	})
}

// ModuleFunction finds a kernel.
func (d *Driver) ModuleFunction(m driver.Module, name string) (driver.Func, error) {
	return made(d, "cuModuleGetFunction", func(c *gpuContext, h driver.Func) error {
		loaded := c.modules[m]
		if loaded == nil {
			return refuse("cuModuleGetFunction", driver.InvalidHandle, "no such module")
		}
		k, err := loaded.Kernel(name)
		if err != nil {
			return refuse("cuModuleGetFunction", driver.NotFound, "%v", err)
		}
		c.functions[h] = &function{module: m, kernel: k, dynamic: defaultShared}
		return nil
	})
}

// FuncAttribute is what the text says of a kernel, and its registers by
// liveness.
func (d *Driver) FuncAttribute(h driver.Func, a driver.FuncAttribute) (value int, err error) {
	err = d.in("cuFuncGetAttribute", func(c *gpuContext) error {
		f := c.functions[h]
		if f == nil {
			return refuse("cuFuncGetAttribute", driver.InvalidHandle, "no such function")
		}
		switch a {
		case driver.FuncMaxThreads:
			value = d.desc.MaxThreads
			if most := f.kernel.MaxThreads; most > 0 {
				value = min(value, most)
			}
		case driver.FuncSharedBytes:
			value = f.kernel.Shared
		case driver.FuncLocalBytes:
			value = f.kernel.Local()
		case driver.FuncRegisters:
			value = f.kernel.Registers
		case driver.FuncDynamicShared:
			value = f.dynamic
		default:
			return refuse("cuFuncGetAttribute", driver.InvalidValue, "attribute %d", a)
		}
		return nil
	})
	return value, err
}

// FuncSetAttribute raises the limit of dynamic shared memory, or divides a first cache, which changes nothing here.
func (d *Driver) FuncSetAttribute(h driver.Func, a driver.FuncAttribute, value int) error {
	return d.in("cuFuncSetAttribute", func(c *gpuContext) error {
		f := c.functions[h]
		switch {
		case f == nil:
			return refuse("cuFuncSetAttribute", driver.InvalidHandle, "no such function")
		case a == driver.FuncCarveout && value >= -1 && value <= 100:
			return nil
		case a != driver.FuncDynamicShared || value < 0 || value+f.kernel.Shared > d.desc.SharedBytes:
			return refuse("cuFuncSetAttribute", driver.InvalidValue, "attribute %d of %d", a, value)
		}
		f.dynamic = value
		return nil
	})
}
