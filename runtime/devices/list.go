package devices

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"

	"tgc/runtime"
	"tgc/runtime/cpu/native"
	"tgc/target"
)

// Info describes a device of this machine.
type Info struct {
	Device  string `json:"device"`
	Name    string `json:"name"`
	Threads int    `json:"threads"`
	Target  string `json:"target,omitempty"`
	Absent  string `json:"absent,omitempty"` // why it cannot be used

	VectorBytes  int      `json:"vector_bytes,omitempty"`
	CacheL1      int      `json:"l1_bytes,omitempty"`
	CacheL2      int      `json:"l2_bytes,omitempty"`
	Contractions []string `json:"contractions,omitempty"`

	// ReadRate is GB/s of reads from memory by number of threads, Arithmetic
	// GFLOP/s by type on all threads: what Measure found.
	ReadRate   map[string]float64 `json:"read_gb_s,omitempty"`
	Arithmetic map[string]float64 `json:"gflops,omitempty"`
}

// List describes the devices of this machine and those that only lack a
// library.
func List(ctx context.Context, opt Options) ([]Info, error) {
	var list []Info
	for i := range kinds {
		k := &kinds[i]
		if k.open == nil {
			continue
		}
		info := Info{Device: k.name, Name: k.doc, Threads: 1}
		dev, err := k.start(ctx, opt)
		switch {
		case errors.Is(err, ErrNoLLVM):
			info.Absent = err.Error()
		case err != nil:
			return nil, err
		default:
			info.describe(dev)
			if err := dev.Close(); err != nil {
				return nil, fmt.Errorf("device %s: %w", k.name, err)
			}
		}
		if k.name == "cpu" {
			info.Name, info.Threads = processorName(), cores(opt)
		}
		list = append(list, info)
	}
	return list, nil
}

func (info *Info) describe(dev runtime.Device) {
	d := dev.Target()
	info.Target = d.Name
	if d.Kind == target.Interpreter {
		return
	}
	info.VectorBytes, info.CacheL1, info.CacheL2 = d.VectorBytes, d.CacheL1Bytes, d.CacheL2Bytes
	for _, c := range d.Contractions {
		info.Contractions = append(info.Contractions, c.Name)
	}
}

// Threads is the number of workers that the device runs kernels with.
func (d *Device) Threads(opt Options) int {
	if d.Target().Kind == target.Interpreter {
		return 1
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
	if info.Device != "cpu" || info.Absent != "" {
		return nil
	}
	info.ReadRate, info.Arithmetic = make(map[string]float64), make(map[string]float64)
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

// ReadRate returns a function that measures the bandwidth of reads from memory
// in GB/s, or nil for a device that has no such figure.
func (d *Device) ReadRate(opt Options) func(context.Context) (float64, error) {
	if d.kind.name != "cpu" {
		return nil
	}
	return func(ctx context.Context) (float64, error) { return native.MeasureRead(ctx, cores(opt)) }
}
