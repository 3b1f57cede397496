package devices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"tgc/runtime"
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
	for i := range families {
		f := &families[i]
		for number := 0; f.open != nil; number++ {
			info, err := f.inspect(ctx, number, opt)
			if errors.Is(err, ErrAbsent) {
				break
			}
			if err != nil {
				return nil, err
			}
			list = append(list, info)
			if f.suffix == nil || !f.suffix.many || info.Absent != "" {
				break
			}
		}
	}
	return list, nil
}

// inspect opens a device to describe it.
func (f *family) inspect(ctx context.Context, number int, opt Options) (Info, error) {
	info := Info{Device: f.numberedName(number), Name: f.doc, Threads: 1}
	dev, err := f.start(ctx, number, opt)
	switch {
	case err != nil && f.lacks != nil:
		info.Absent = f.lacks(err)
	case errors.Is(err, ErrAbsent):
		return info, err
	case errors.Is(err, ErrNoLLVM), err != nil && f.byName:
		info.Absent = err.Error()
	case err != nil:
		return info, err
	}
	var inner runtime.Device
	if dev != nil {
		info.describe(dev.Target())
		inner = dev.Device
	}
	if f.describe != nil {
		f.describe(&info, inner, opt)
	}
	if dev != nil {
		if err := dev.Close(); err != nil {
			return info, fmt.Errorf("device %s: %w", info.Device, err)
		}
	}
	return info, nil
}

// describe says what the description of the target has; the interpreter's vectors
// and caches are made up.
func (info *Info) describe(d *target.Desc) {
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
}

// Threads is the number of workers that the device runs kernels with: cores, or
// a GPU's multiprocessors.
func (d *Device) Threads(opt Options) int {
	if d.family.workers == nil {
		return 1
	}
	return d.family.workers(d.Device, opt)
}

// Measure adds read bandwidth and peak arithmetic to a device's description, where
// its family has such figures.
func Measure(ctx context.Context, info *Info) (err error) {
	f, number, err := find(info.Device)
	if err != nil || info.Absent != "" || f.rates == nil {
		return err
	}
	dev, err := f.start(ctx, number, Options{Threads: info.Threads})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	r := f.rates(dev.Device)
	counts := r.workers
	if counts == nil {
		counts = slices.Compact([]int{1, info.Threads})
	}
	info.ReadRate, info.Arithmetic = make(map[string]float64), make(map[string]float64)
	for _, n := range counts {
		if info.ReadRate[strconv.Itoa(n)], err = r.read(ctx, n); err != nil {
			return err
		}
	}
	info.Arithmetic["f32"], err = r.peak(ctx, info.Threads)
	return err
}

// ReadRate returns a function that measures the bandwidth of reads from memory
// in GB/s, or nil for a device that has no such figure.
func (d *Device) ReadRate(opt Options) func(context.Context) (float64, error) {
	return d.rate(opt, func(r *rates) measurement { return r.read })
}

// PeakRate returns a function that measures the peak of f32 multiply-adds in
// GFLOP/s, or nil for a device that has no such figure.
func (d *Device) PeakRate(opt Options) func(context.Context) (float64, error) {
	return d.rate(opt, func(r *rates) measurement { return r.peak })
}

// CopyRate returns a function that measures how fast memory is copied within the
// device, bytes read and written together in GB/s, or nil for a device that has
// no such figure.
func (d *Device) CopyRate(opt Options) func(context.Context) (float64, error) {
	return d.rate(opt, func(r *rates) measurement { return r.copy })
}

func (d *Device) rate(opt Options, of func(*rates) measurement) func(context.Context) (float64, error) {
	if d.family.rates == nil {
		return nil
	}
	measure := of(d.family.rates(d.Device))
	if measure == nil {
		return nil
	}
	return func(ctx context.Context) (float64, error) { return measure(ctx, d.Threads(opt)) }
}

// Fast reports a device that runs kernels as machine code.
func (d *Device) Fast() bool { return !d.family.slow }
