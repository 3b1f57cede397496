// Package devices opens devices by the names that the command line and programs
// use, and says which are present on this machine. It is the one place that
// knows all of them: table.go has a row for each family.
package devices

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"tgc/runtime"
	"tgc/runtime/cpu"
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
	// Trace, where not nil, gets the text of what the device asked of its kernel driver
	// and stored for its queue: only a device that has such a text opens then.
	Trace io.Writer
}

// Device is an open device under the name that Open knows it by.
type Device struct {
	runtime.Device
	family *family
	number int
}

// Name is "cpu", "cuda:1" and so on; Target().Name says more.
func (d *Device) Name() string { return d.family.numberedName(d.number) }

// Slow reports a device that interprets programs: no speed of theirs means anything.
func (d *Device) Slow() bool { return d.family.slow }

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

// ImportSource is that of the device, where it has one: see runtime.SourceImporter. Without it interleaved rows lay
// in small pages of Go's heap.
func (d *Device) ImportSource(ctx context.Context, source runtime.Source) (runtime.Memory, error) {
	return runtime.ImportSource(ctx, d.Device, source)
}

// Names lists the names that Open takes.
func Names() string {
	var names []string
	for i := range families {
		name := families[i].name
		if s := families[i].suffix; s != nil {
			name += s.form
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// numberedName names a device of a family; number 0 needs no number.
func (f *family) numberedName(number int) string {
	if number == 0 {
		return f.name
	}
	return f.name + f.suffix.print(number)
}

// Check reports a name that no device has (ErrUnknown).
func Check(name string) error {
	_, _, err := find(name)
	return err
}

func find(name string) (f *family, number int, err error) {
	for i := range families {
		f := &families[i]
		rest, ours := strings.CutPrefix(name, f.name)
		switch {
		case !ours:
			continue
		case rest == "":
			return f, 0, nil
		}
		if f.suffix == nil {
			continue
		}
		if number, ok := f.suffix.parse(rest); ok {
			return f, number, nil
		}
	}
	return nil, 0, fmt.Errorf("%w %q: want one of %s", ErrUnknown, name, Names())
}

// Default is the best device present, or the one that TGC_DEVICE names. It is opened when it
// is first asked for, once, and belongs to the whole program: nobody closes it.
func Default() (*Device, error) { return defaultDevice() }

var defaultDevice = sync.OnceValues(func() (*Device, error) {
	dev, _, err := Open(context.Background(), os.Getenv("TGC_DEVICE"))
	if err != nil {
		return nil, fmt.Errorf("the default device (TGC_DEVICE): %w", err)
	}
	return dev, nil
})

// Open opens a device; the empty name means the best one present, which remark
// then names, with what a better one would need.
func Open(ctx context.Context, name string, options ...Options) (dev *Device, remark string, err error) {
	var opt Options
	if len(options) > 0 {
		opt = options[0]
	}
	if name == "" {
		return openBest(ctx, opt)
	}
	f, number, err := find(name)
	if err != nil {
		return nil, "", err
	}
	dev, err = f.start(ctx, number, opt)
	return dev, "", err
}

func (f *family) start(ctx context.Context, number int, opt Options) (*Device, error) {
	if opt.Trace != nil && !f.traces {
		return nil, fmt.Errorf("device %s: there is no trace of what it does, tegra and tegra:emu have one", f.numberedName(number))
	}
	if f.open == nil {
		return nil, fmt.Errorf("device %s: %w (this version has cuda, cpu, interp and the emulators cuda:emu and tegra:emu)", f.name, ErrAbsent)
	}
	dev, err := f.open(ctx, number, opt)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", f.numberedName(number), err)
	}
	return &Device{Device: dev, family: f, number: number}, nil
}

// openBest takes the first device that is there.
func openBest(ctx context.Context, opt Options) (*Device, string, error) {
	wrong := "" // with what TGC_LLVM says
	for i := range families {
		f := &families[i]
		if f.byName {
			continue
		}
		dev, err := f.start(ctx, 0, opt)
		switch {
		case errors.Is(err, ErrNoLLVM) && os.Getenv("TGC_LLVM") != "":
			wrong = fmt.Sprintf(" (%v)", err)
			continue
		case errors.Is(err, ErrAbsent), errors.Is(err, ErrNoLLVM):
			continue
		case err != nil:
			return nil, "", err
		case f.remark != "":
			return dev, f.remark + wrong, nil
		}
		return dev, fmt.Sprintf("device: %s (%s)", dev.Name(), dev.Target().Name), nil
	}
	return nil, "", ErrAbsent // interp is always there
}
