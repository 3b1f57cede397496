package devices

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"tgc/runtime/cpu/native"
	"tgc/runtime/cuda"
	"tgc/target"
)

// Info describes a device of this machine.
type Info struct {
	Device  string `json:"device"`
	Name    string `json:"name"`
	Threads int    `json:"threads"`
	Target  string `json:"target,omitempty"`
	Absent  string `json:"absent,omitempty"` // why it cannot be used

	MemoryBytes  int64    `json:"memory_bytes,omitempty"` // of the device's own
	Driver       int      `json:"cuda_driver,omitempty"`  // 13000 is CUDA 13.0
	VectorBytes  int      `json:"vector_bytes,omitempty"`
	CacheL1      int      `json:"l1_bytes,omitempty"`
	CacheL2      int      `json:"l2_bytes,omitempty"`
	Contractions []string `json:"contractions,omitempty"`

	// ReadRate is GB/s of reads from memory by number of threads, Arithmetic
	// GFLOP/s by type on all threads: what Measure found.
	ReadRate   map[string]float64 `json:"read_gb_s,omitempty"`
	Arithmetic map[string]float64 `json:"gflops,omitempty"`
}

// List describes the devices of this machine and those that are there and
// cannot be used: Absent says why.
func List(ctx context.Context, opt Options) ([]Info, error) {
	var list []Info
	for i := range kinds {
		k := &kinds[i]
		for number := 0; k.open != nil; number++ {
			info, err := k.inspect(ctx, number, opt)
			if errors.Is(err, ErrAbsent) {
				break
			}
			if err != nil {
				return nil, err
			}
			list = append(list, info)
			if !k.numbered || info.Absent != "" {
				break
			}
		}
	}
	return list, nil
}

// inspect opens a device to describe it.
func (k *kind) inspect(ctx context.Context, number int, opt Options) (Info, error) {
	info := Info{Device: k.numberedName(number), Name: k.doc, Threads: 1}
	dev, err := k.start(ctx, number, opt)
	switch {
	case errors.Is(err, ErrAbsent):
		return info, err
	case errors.Is(err, ErrNoLLVM), err != nil && k.byName:
		info.Absent = err.Error()
	case err != nil:
		return info, err
	default:
		info.describe(dev)
		if err := dev.Close(); err != nil {
			return info, fmt.Errorf("device %s: %w", info.Device, err)
		}
	}
	if k.name == "cpu" {
		info.Name, info.Threads = processorName(), cores(opt)
	}
	return info, nil
}

func (info *Info) describe(dev *Device) {
	d := dev.Target()
	info.Target = d.Name
	if d.Kind == target.Interpreter {
		return
	}
	info.VectorBytes, info.CacheL1, info.CacheL2 = d.VectorBytes, d.CacheL1Bytes, d.CacheL2Bytes
	for _, c := range d.Contractions {
		if !slices.Contains(info.Contractions, c.Name) { // one row a shape
			info.Contractions = append(info.Contractions, c.Name)
		}
	}
	if gpu, ok := dev.Device.(*cuda.Device); ok {
		board := gpu.Info()
		info.Name, info.Threads, info.MemoryBytes, info.Driver = board.Board, board.Multiprocessors, board.MemoryBytes, board.CUDAVersion
	}
}

// Threads is the number of workers that the device runs kernels with: cores, or
// a GPU's multiprocessors.
func (d *Device) Threads(opt Options) int {
	switch d.Target().Kind {
	case target.Interpreter:
		return 1
	case target.GPU:
		return d.Target().Cost.Workers
	}
	return cores(opt)
}

func cores(opt Options) int {
	if opt.Threads > 0 {
		return opt.Threads
	}
	return goruntime.GOMAXPROCS(0)
}

// processorName is what the operating system calls the CPU.
func processorName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return goruntime.GOARCH
}

// Measure adds read bandwidth and peak arithmetic to a device's description.
// The interpreter has neither.
func Measure(ctx context.Context, info *Info) error {
	k, number, err := find(info.Device)
	switch {
	case err != nil:
		return err
	case info.Absent != "" || k.name == "interp" || k.emulated:
		return nil
	}
	info.ReadRate, info.Arithmetic = make(map[string]float64), make(map[string]float64)
	if k.name == "cuda" {
		return measureCUDA(ctx, info, number)
	}
	counts := []int{1}
	if info.Threads > 1 {
		counts = append(counts, info.Threads)
	}
	for _, n := range counts {
		rate, err := native.MeasureRead(ctx, n)
		if err != nil {
			return err
		}
		info.ReadRate[strconv.Itoa(n)] = rate
	}
	rate, err := native.MeasureFMA(ctx, info.Threads)
	if err != nil {
		return err
	}
	info.Arithmetic["f32"] = rate
	return nil
}

func measureCUDA(ctx context.Context, info *Info, number int) (err error) {
	dev, err := cuda.New(cuda.Options{Index: number})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	if info.ReadRate[strconv.Itoa(info.Threads)], err = dev.MeasureRead(ctx); err != nil {
		return err
	}
	info.Arithmetic["f32"], err = dev.MeasureFMA(ctx)
	return err
}

// ReadRate returns a function that measures the bandwidth of reads from memory
// in GB/s, or nil for a device that has no such figure.
func (d *Device) ReadRate(opt Options) func(context.Context) (float64, error) {
	if gpu, ok := d.Device.(*cuda.Device); ok && !d.kind.emulated {
		return gpu.MeasureRead
	}
	if d.kind.name != "cpu" {
		return nil
	}
	return func(ctx context.Context) (float64, error) { return native.MeasureRead(ctx, cores(opt)) }
}

// PeakRate returns a function that measures the peak of f32 multiply-adds in
// GFLOP/s, or nil for a device that has no such figure.
func (d *Device) PeakRate(opt Options) func(context.Context) (float64, error) {
	if gpu, ok := d.Device.(*cuda.Device); ok && !d.kind.emulated {
		return gpu.MeasureFMA
	}
	if d.kind.name != "cpu" {
		return nil
	}
	return func(ctx context.Context) (float64, error) { return native.MeasureFMA(ctx, cores(opt)) }
}

// CopyRate returns a function that measures how fast memory is copied within the
// device, bytes read and written together in GB/s, or nil for a device that has
// no such figure.
func (d *Device) CopyRate(opt Options) func(context.Context) (float64, error) {
	if d.kind.name != "cpu" {
		return nil
	}
	return func(ctx context.Context) (float64, error) { return native.MeasureCopy(ctx, cores(opt)) }
}

// Fast reports a device that runs kernels as machine code.
func (d *Device) Fast() bool { return d.kind.name != "interp" && !d.kind.emulated }
