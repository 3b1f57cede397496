package emulator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"tgc/runtime/cuda/driver"
	"tgc/target"
)

// Options describe the GPU. The zero value is an sm_90 with MemoryBytes.
type Options struct {
	SM          int   // compute capability: 90 is 9.0
	MemoryBytes int64 // of the device
	Seed        uint64
}

const (
	defaultSM = 90
	// defaultMemory is far more than a host has to spare for it; pages that
	// nobody touches cost nothing.
	defaultMemory = 64 << 30
	// cudaVersion is that of the driver it plays: 13.0 knows every edge.
	cudaVersion = 13000
	// clockKHz is of no consequence.
	clockKHz = 1_000_000
)

// Driver is an emulated GPU with its driver. It has one context at a time. All
// methods may be called from any goroutine; one of them runs at once.
type Driver struct {
	options Options
	desc    *target.Desc
	started time.Time

	mu      sync.Mutex
	random  *rand.Rand
	handles uintptr // the last one given
	context *gpuContext
	left    []string // what the last context held when it was destroyed
}

// New makes a GPU of an architecture that package target knows.
func New(options Options) (*Driver, error) {
	if options.SM == 0 {
		options.SM = defaultSM
	}
	if options.MemoryBytes == 0 {
		options.MemoryBytes = defaultMemory
	}
	desc, err := target.ForGPU(options.SM, false)
	if err != nil {
		return nil, fmt.Errorf("cuda emulator: %w", err)
	}
	return &Driver{options: options, desc: desc, started: time.Now(), random: rand.New(rand.NewPCG(options.Seed, 2))}, nil
}

var _ driver.Driver = (*Driver)(nil)

// Version is that of a driver which knows all that package cuda uses.
func (d *Driver) Version() int { return cudaVersion }

// Path says that there is no library.
func (d *Driver) Path() string { return "built in" }

// Checks is true: see driver.Checker.
func (d *Driver) Checks() bool { return true }

// DeviceCount is 1.
func (d *Driver) DeviceCount() (int, error) { return 1, nil }

// DeviceAt is the only device.
func (d *Driver) DeviceAt(index int) (driver.Device, error) {
	if index != 0 {
		return 0, refuse("cuDeviceGet", driver.InvalidDevice, "device %d of 1", index)
	}
	return 0, nil
}

// DeviceName names the architecture.
func (d *Driver) DeviceName(driver.Device) (string, error) {
	return fmt.Sprintf("PTX emulator (sm_%d)", d.options.SM), nil
}

// DeviceAttribute is the architecture's.
func (d *Driver) DeviceAttribute(_ driver.Device, a driver.Attribute) (int, error) {
	switch a {
	case driver.MaxThreadsPerBlock:
		return d.desc.MaxThreads, nil
	case driver.WarpSize:
		return d.desc.WarpSize, nil
	case driver.ClockKHz:
		return clockKHz, nil
	case driver.Multiprocessors:
		return d.desc.Cost.Workers, nil
	case driver.Integrated:
		return 0, nil
	case driver.CacheL2Bytes:
		return d.desc.CacheL2Bytes, nil
	case driver.ComputeMajor:
		return d.options.SM / 10, nil
	case driver.ComputeMinor:
		return d.options.SM % 10, nil
	case driver.SharedBytesOptIn:
		return d.desc.SharedBytes, nil
	}
	return 0, refuse("cuDeviceGetAttribute", driver.InvalidValue, "attribute %d", a)
}

// DeviceMemory is the size of its memory in bytes.
func (d *Driver) DeviceMemory(driver.Device) (uint64, error) {
	return uint64(d.options.MemoryBytes), nil
}

// Programmatic is true from the architecture on that has such edges.
func (d *Driver) Programmatic() bool { return true }

// handle is a number that no other handle has.
func (d *Driver) handle() uintptr {
	d.handles++
	return d.handles << 4 // no handle is the next one plus one
}

// names of the codes, as the real driver spells them.
var names = map[driver.Code]string{
	driver.InvalidValue: "CUDA_ERROR_INVALID_VALUE", driver.OutOfMemory: "CUDA_ERROR_OUT_OF_MEMORY",
	driver.InvalidDevice: "CUDA_ERROR_INVALID_DEVICE", driver.InvalidContext: "CUDA_ERROR_INVALID_CONTEXT",
	driver.InvalidPTX: "CUDA_ERROR_INVALID_PTX", driver.InvalidHandle: "CUDA_ERROR_INVALID_HANDLE", driver.NotFound: "CUDA_ERROR_NOT_FOUND",
	driver.IllegalAddress: "CUDA_ERROR_ILLEGAL_ADDRESS", driver.MisalignedAddress: "CUDA_ERROR_MISALIGNED_ADDRESS",
	driver.LaunchFailed: "CUDA_ERROR_LAUNCH_FAILED", driver.NoBinaryForGPU: "CUDA_ERROR_NO_BINARY_FOR_GPU",
}

// refuse is an error of a call.
func refuse(call string, code driver.Code, format string, args ...any) *driver.Error {
	return &driver.Error{Call: call, Code: code, Name: names[code], Text: fmt.Sprintf(format, args...)}
}

// in runs f with the context locked. A context that a fault has ended answers
// every call with that fault.
func (d *Driver) in(call string, f func(*gpuContext) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch c := d.context; {
	case c == nil:
		return refuse(call, driver.InvalidContext, "no context is current")
	case c.fault != nil:
		return &driver.Error{Call: call, Code: c.fault.Code, Name: c.fault.Name, Text: c.fault.Text, Kernel: c.fault.Kernel}
	default:
		return f(c)
	}
}

// made runs f, which makes something, and returns its handle.
func made[H ~uintptr](d *Driver, call string, f func(c *gpuContext, h H) error) (H, error) {
	var h H
	err := d.in(call, func(c *gpuContext) error {
		h = H(d.handle())
		return f(c, h)
	})
	if err != nil {
		return 0, err
	}
	return h, nil
}

// StreamSynchronizeContext is StreamSynchronize that ends with an error when ctx
// is cancelled; what was under way is then half done.
func (d *Driver) StreamSynchronizeContext(ctx context.Context, s driver.Stream) error {
	return d.in("cuStreamSynchronize", func(c *gpuContext) error { return c.drain(ctx, s) })
}
