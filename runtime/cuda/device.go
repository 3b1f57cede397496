package cuda

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"tgc/internal/cachefile"
	"tgc/runtime/cuda/driver"
	"tgc/runtime/nvidia"
	"tgc/target"
)

// Options configures New. The zero value is the first GPU with the user's cache
// folder.
type Options struct {
	Index    int      // of the GPU, in the driver's order
	Renderer Renderer // nil means RenderPTX, or what $TGC_CUDA_SOURCE says
	CacheDir string   // of machine code; empty means cachefile.DefaultDir
	NoCache  bool
	// CUDAPath is the library, or a folder that may hold it and its tools; empty
	// means $TGC_CUDA_PATH.
	CUDAPath string
	// Driver replaces the library, and Label then for "cuda:N".
	Driver driver.Driver
	Label  string
	// Assembler is AssembleDriver or AssemblePTXAS; empty means the former.
	Assembler string
	// Serial replays steps kernel by kernel and waits for each, so that a fault
	// names its kernel; $TGC_CUDA_SERIAL sets it too.
	Serial bool
	// Progress is told the bytes that Import and Write have just copied; calls
	// may come from several goroutines.
	Progress func(bytes int64)
	// Warn is told what is legal and slow: a kernel that spills registers.
	Warn func(message string)
}

// serialVariable turns Options.Serial on.
const serialVariable = "TGC_CUDA_SERIAL"

// Device is one GPU in one context.
type Device struct {
	options Options
	drv     driver.Driver
	context driver.Context
	stream  driver.Stream // of steps
	desc    *target.Desc
	info    Info
	cache   *cachefile.Cache
	asm     assembler
	loader  nvidia.Loader[*code]
	nvrtc   sourceCompiler
	staging *staging
	broken  atomic.Pointer[nvidia.BrokenError]

	mu     sync.Mutex
	arena  *nvidia.Arena[driver.Ptr]
	closed bool
}

// Info is what the driver says of a GPU.
type Info struct {
	Board           string // the vendor's name of it
	CUDAVersion     int    // of the driver: 13000 is 13.0
	Library         string // libcuda's path
	Compute         int    // compute capability: 90 is 9.0
	MemoryBytes     int64
	Multiprocessors int
	ClockKHz        int // the highest of its multiprocessors
	CacheL2Bytes    int
	Unified         bool // memory is the host's
}

// New opens a GPU. Where there is none the error wraps ErrAbsent.
func New(options Options) (*Device, error) {
	if options.CUDAPath == "" {
		options.CUDAPath = os.Getenv("TGC_CUDA_PATH")
	}
	if v := os.Getenv(serialVariable); v != "" && v != "0" {
		options.Serial = true
	}
	if options.Renderer == nil {
		var err error
		if options.Renderer, err = rendererNamed(os.Getenv(sourceVariable)); err != nil {
			return nil, err
		}
	}
	drv := options.Driver
	if drv == nil {
		library, err := driver.Open(options.CUDAPath)
		switch {
		case errors.Is(err, driver.ErrNoLibrary), driver.CodeOf(err) == driver.NoDevice:
			return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
		case err != nil:
			return nil, fmt.Errorf("cuda: %w", err)
		}
		drv = library
	}
	d := &Device{options: options, drv: drv}
	id, err := d.find()
	if err != nil {
		return nil, err
	}
	if err := d.open(id); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.Name(), err), d.Close())
	}
	return d, nil
}

// find looks the GPU up and describes it.
func (d *Device) find() (driver.Device, error) {
	count, err := d.drv.DeviceCount()
	if err != nil {
		return 0, fmt.Errorf("cuda: %w", err)
	}
	if d.options.Index < 0 || d.options.Index >= count {
		return 0, fmt.Errorf("%w: number %d of %d", ErrAbsent, d.options.Index, count)
	}
	id, err := d.drv.DeviceAt(d.options.Index)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", d.Name(), err)
	}
	if err := d.describe(id); err != nil {
		return 0, fmt.Errorf("%s: %w", d.Name(), err)
	}
	return id, nil
}

// specialFrom is the first compute capability that has an "a" form, with
// instructions of its own.
const specialFrom = 90

// describe fills Info and the target: the architecture's row, with what this
// board has less or more of.
func (d *Device) describe(id driver.Device) error {
	attributes := map[driver.Attribute]int{
		driver.ComputeMajor: 0, driver.ComputeMinor: 0, driver.Multiprocessors: 0, driver.ClockKHz: 0, driver.Integrated: 0,
		driver.CacheL2Bytes: 0, driver.SharedBytesOptIn: 0, driver.MaxThreadsPerBlock: 0, driver.WarpSize: 0,
	}
	for a := range attributes {
		v, err := d.drv.DeviceAttribute(id, a)
		if err != nil {
			return err
		}
		attributes[a] = v
	}
	name, err := d.drv.DeviceName(id)
	if err != nil {
		return err
	}
	total, err := d.drv.DeviceMemory(id)
	if err != nil {
		return err
	}
	compute := 10*attributes[driver.ComputeMajor] + attributes[driver.ComputeMinor]
	d.info = Info{
		Board: name, CUDAVersion: d.drv.Version(), Library: d.drv.Path(), Compute: compute, MemoryBytes: int64(total),
		Multiprocessors: attributes[driver.Multiprocessors], ClockKHz: attributes[driver.ClockKHz],
		CacheL2Bytes: attributes[driver.CacheL2Bytes], Unified: attributes[driver.Integrated] != 0,
	}
	desc, err := target.ForGPU(compute, compute >= specialFrom)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	desc.MaxThreads = min(desc.MaxThreads, attributes[driver.MaxThreadsPerBlock])
	desc.SharedBytes = min(desc.SharedBytes, attributes[driver.SharedBytesOptIn])
	desc.WarpSize = attributes[driver.WarpSize]
	desc.Cost.Workers = d.info.Multiprocessors
	d.desc = desc
	return nil
}

// open makes context, queue, arena and cache.
func (d *Device) open(id driver.Device) error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	context, err := d.drv.ContextCreate(id)
	if err != nil {
		return err
	}
	d.context = context
	if d.stream, err = d.drv.StreamCreate(); err != nil {
		return err
	}
	_, checks := d.checker()
	d.arena = nvidia.NewArena(d.take, d.drv.MemFree, nvidia.BlockBytes, checks)
	d.staging = newStaging(d)
	if d.asm, err = newAssembler(d); err != nil {
		return err
	}
	if !d.options.NoCache {
		d.cache = cachefile.Open(d.options.CacheDir, cachefile.MaxBytes(cachefile.FolderBytes))
	}
	d.loader.Cache, d.loader.Assemble, d.loader.Make = d.cache, d.assemble, d.module
	return nil
}

// Name is "cuda:N", or Options.Label.
func (d *Device) Name() string {
	if d.options.Label != "" {
		return d.options.Label
	}
	return fmt.Sprintf("cuda:%d", d.options.Index)
}

// Target describes the GPU's architecture.
func (d *Device) Target() *target.Desc { return d.desc }

// Info is what the driver says of the GPU.
func (d *Device) Info() Info { return d.info }

// checker is the driver where it finds mistakes that a GPU does not see.
func (d *Device) checker() (driver.Checker, bool) {
	c, ok := d.drv.(driver.Checker)
	return c, ok && c.Checks()
}

// with runs f on a thread where the device's context is current. It does not
// nest. An error that ends the context marks the device.
func (d *Device) with(f func() error) error {
	if b := d.broken.Load(); b != nil {
		return b
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	err := d.drv.ContextSet(d.context)
	if err == nil {
		err = f()
	}
	if driver.Sticky(err) {
		d.broken.CompareAndSwap(nil, &nvidia.BrokenError{Device: d.Name(), Cause: err})
	}
	return err
}

// Close drops the context and everything in it. Nothing of the device may be in
// use.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	var errs []error
	if d.context != 0 {
		errs = append(errs, d.closeContext())
	}
	errs = append(errs, d.cache.Close())
	return errors.Join(errs...)
}

// closeContext gives back what outlives a context (pinned memory) and the
// context itself. A faulted context refuses all but its end.
func (d *Device) closeContext() error {
	err := d.with(func() error {
		var errs []error
		if d.staging != nil {
			errs = append(errs, d.staging.close())
		}
		for _, c := range d.loader.All() {
			errs = append(errs, d.drv.ModuleUnload(c.module))
		}
		if d.arena != nil {
			errs = append(errs, d.arena.Close())
		}
		if d.stream != 0 {
			errs = append(errs, d.drv.StreamDestroy(d.stream))
		}
		return errors.Join(errs...)
	})
	if errors.Is(err, ErrBroken) {
		err = nil // reported when it happened
	}
	err = errors.Join(err, d.drv.ContextDestroy(d.context))
	if d.broken.Load() != nil {
		return nil
	}
	return err
}
