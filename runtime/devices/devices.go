// Package devices opens devices by the names that the command line and programs
// use, and says which are present on this machine. It is the one place that
// knows all of them.
package devices

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tgc/runtime"
	"tgc/runtime/cpu"
	"tgc/runtime/cuda"
	"tgc/runtime/cuda/emulator"
	"tgc/runtime/interp"
)

// Errors of Open.
var (
	ErrUnknown = errors.New("unknown device")
	ErrAbsent  = errors.New("no such device here")
	ErrNoLLVM  = cpu.ErrNoLLVM // the CPU device lacks its compiler
)

// MaxThreads bounds Options.Threads.
const MaxThreads = 1024

// Options configures a device; each takes what means something to it.
type Options struct {
	Threads  int    // CPU workers; 0 for all cores
	CacheDir string // of compiled objects; empty for the user's cache folder
}

// kind is a family of devices.
type kind struct {
	name     string
	doc      string
	numbered bool // takes :N
	byName   bool // never the best one: not all models run on it yet
	variant  string
	emulated bool                                                                       // takes :sm_NN, which is then the number; has no speed worth a figure
	open     func(ctx context.Context, number int, opt Options) (runtime.Device, error) // nil: not in this version
}

// kinds are all devices, the best first.
var kinds = []kind{
	{name: "cuda", doc: "NVIDIA GPU through its driver", numbered: true, byName: true, open: openCUDA},
	{name: "tegra", doc: "Jetson GPU through its kernel driver", variant: "emu"},
	{name: "nv", doc: "NVIDIA GPU through its hardware queue", numbered: true},
	{name: "cpu", doc: "this machine's CPU through libLLVM", open: openCPU},
	{name: "interp", doc: "interpreter, always present", open: openInterp},
	{name: "cuda:emu", doc: "NVIDIA GPU emulated from PTX, with checks; slow", emulated: true, byName: true, open: openEmulated},
}

func openCUDA(_ context.Context, number int, opt Options) (runtime.Device, error) {
	dev, err := cuda.New(cuda.Options{Index: number, CacheDir: opt.CacheDir})
	switch {
	case errors.Is(err, cuda.ErrAbsent):
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	case err != nil:
		return nil, err
	}
	return dev, nil
}

// openEmulated makes the GPU of an architecture; 0 is the default one. Reading PTX
// costs less than a cache.
func openEmulated(_ context.Context, sm int, _ Options) (runtime.Device, error) {
	drv, err := emulator.New(emulator.Options{SM: sm})
	if err != nil {
		return nil, err
	}
	dev, err := cuda.New(cuda.Options{Driver: drv, Label: "cuda:emu", NoCache: true})
	if err != nil {
		return nil, err
	}
	return dev, nil
}

func openCPU(ctx context.Context, _ int, opt Options) (runtime.Device, error) {
	// A nil *cpu.Device must not become a runtime.Device that is not nil.
	dev, err := cpu.New(ctx, cpu.Options{Threads: opt.Threads, CacheDir: opt.CacheDir})
	if err != nil {
		return nil, err
	}
	return dev, nil
}

func openInterp(context.Context, int, Options) (runtime.Device, error) {
	return interp.New(interp.Options{}), nil
}

// Names lists the names that Open takes.
func Names() string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.spelling())
	}
	return strings.Join(names, ", ")
}

func (k *kind) spelling() string {
	switch {
	case k.numbered:
		return k.name + "[:N]"
	case k.variant != "":
		return k.name + "[:" + k.variant + "]"
	case k.emulated:
		return k.name + "[:sm_NN]"
	}
	return k.name
}

// Device is an open device under the name that Open knows it by.
type Device struct {
	runtime.Device
	kind   *kind
	number int
}

// Name is "cpu", "cuda:1" and so on; Target().Name says more.
func (d *Device) Name() string { return d.kind.numberedName(d.number) }

// AllocScratch is that of the device, where it has one: see runtime.Scratcher.
func (d *Device) AllocScratch(ctx context.Context, bytes int64) (runtime.Memory, error) {
	if s, ok := d.Device.(runtime.Scratcher); ok {
		return s.AllocScratch(ctx, bytes)
	}
	return d.Alloc(ctx, bytes)
}

// AllocWhole is that of the device, where it has one: see runtime.WholeAllocator.
func (d *Device) AllocWhole(ctx context.Context, bytes int64) (runtime.Memory, error) {
	return runtime.AllocWhole(ctx, d.Device, bytes)
}

// numberedName names a device of a family; number 0 needs no number.
func (k *kind) numberedName(number int) string {
	switch {
	case number == 0:
		return k.name
	case k.emulated:
		return fmt.Sprintf("%s:sm_%d", k.name, number)
	}
	return fmt.Sprintf("%s:%d", k.name, number)
}

// Check reports a name that no device has (ErrUnknown).
func Check(name string) error {
	_, _, err := find(name)
	return err
}

func find(name string) (k *kind, number int, err error) {
	for i := range kinds {
		k := &kinds[i]
		rest, ours := strings.CutPrefix(name, k.name)
		switch {
		case !ours:
			continue
		case rest == "":
			return k, 0, nil
		}
		if number, ok := k.suffix(rest); ok {
			return k, number, nil
		}
	}
	return nil, 0, fmt.Errorf("%w %q: want one of %s", ErrUnknown, name, Names())
}

// suffix reads what stands behind the name of a family.
func (k *kind) suffix(text string) (number int, ok bool) {
	text, ok = strings.CutPrefix(text, ":")
	if ok && k.variant != "" {
		return 0, text == k.variant
	}
	if k.emulated {
		text, ok = strings.CutPrefix(text, "sm_")
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), ok && err == nil && (k.numbered || k.emulated && n > 0)
}

// Open opens a device; the empty name means the best one present, which remark
// then names, with what a better one would need.
func Open(ctx context.Context, name string, opt Options) (dev *Device, remark string, err error) {
	if name == "" {
		return openBest(ctx, opt)
	}
	k, number, err := find(name)
	if err != nil {
		return nil, "", err
	}
	dev, err = k.start(ctx, number, opt)
	return dev, "", err
}

func (k *kind) start(ctx context.Context, number int, opt Options) (*Device, error) {
	if k.open == nil {
		return nil, fmt.Errorf("device %s: %w (this version has cuda, cpu and interp)", k.name, ErrAbsent)
	}
	dev, err := k.open(ctx, number, opt)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", k.numberedName(number), err)
	}
	return &Device{Device: dev, kind: k, number: number}, nil
}

// openBest takes the first device that is there.
func openBest(ctx context.Context, opt Options) (*Device, string, error) {
	for i := range kinds {
		k := &kinds[i]
		if k.byName {
			continue
		}
		dev, err := k.start(ctx, 0, opt)
		switch {
		case errors.Is(err, ErrAbsent), errors.Is(err, ErrNoLLVM):
			continue
		case err != nil:
			return nil, "", err
		case k.name == "interp":
			return dev, "device: interp, which is slow: no libLLVM was found. For the fast path install LLVM 15 to 22 (Debian: apt install libllvm19)", nil
		}
		return dev, fmt.Sprintf("device: %s (%s)", dev.Name(), dev.Target().Name), nil
	}
	return nil, "", ErrAbsent // interp is always there
}
