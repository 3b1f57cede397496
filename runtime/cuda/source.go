package cuda

import (
	"fmt"
	"sync"

	"tgc/internal/nvrtc"
)

// sourceVariable chooses what kernels are printed as.
const sourceVariable = "TGC_CUDA_SOURCE"

// rendererNamed is the renderer of a value of $TGC_CUDA_SOURCE.
func rendererNamed(source string) (Renderer, error) {
	switch source {
	case "", "ptx":
		return RenderPTX, nil
	case "c":
		return RenderCUDA, nil
	}
	return nil, fmt.Errorf("cuda: %s=%q: want ptx or c", sourceVariable, source)
}

// sourceCompiler makes PTX of CUDA C. The library is opened when the first text
// needs it.
type sourceCompiler struct {
	once    sync.Once
	library *nvrtc.Library
	err     error
}

func (c *sourceCompiler) open(d *Device) error {
	c.once.Do(func() { c.library, c.err = nvrtc.Open(d.options.CUDAPath) })
	if c.err != nil {
		return fmt.Errorf("CUDA C: %w", c.err)
	}
	return nil
}

// fingerprint names the compiler of a text for keys of caches; empty for PTX.
func (c *sourceCompiler) fingerprint(d *Device, r *Rendered) (string, error) {
	if !r.CUDA {
		return "", nil
	}
	if err := c.open(d); err != nil {
		return "", err
	}
	return c.library.Version() + " ", nil
}

// ptx is the PTX of a rendered kernel.
func (c *sourceCompiler) ptx(d *Device, r *Rendered) (string, error) {
	if !r.CUDA {
		return r.Text, nil
	}
	if err := c.open(d); err != nil {
		return "", err
	}
	return c.library.Compile(r.Text, d.architecture())
}
