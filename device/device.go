// Package device opens devices by name: the one place that knows them all.
package device

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tgc/runtime"
	"tgc/runtime/cpu"
	"tgc/runtime/interp"
)

// Options configure a device.
type Options struct {
	Threads  int    // CPU workers; 0 for all cores
	CacheDir string // compiled objects; empty for the user's cache folder
	// Notice is told, in one line, why a slower device was taken than the
	// machine could offer, and how to get the faster one. It may be nil.
	Notice func(line string)
}

// Errors that Open wraps.
var (
	ErrUnknown = errors.New("unknown device")
	ErrAbsent  = errors.New("no such device here")
)

// Names lists the names that Open takes.
func Names() []string { return []string{"interp", "cpu", "cuda[:N]", "tegra", "nv[:N]"} }

// Open opens a device by name; the empty name is the best one present: cpu, or
// interp where libLLVM is missing.
func Open(ctx context.Context, name string, opt Options) (runtime.Device, error) {
	kind, _, _ := strings.Cut(name, ":")
	switch kind {
	case "":
		dev, err := openCPU(ctx, opt)
		if errors.Is(err, cpu.ErrNoLLVM) {
			if opt.Notice != nil {
				opt.Notice("libLLVM was not found: running on the interpreter, which is slow. For the fast path: apt install libllvm19")
			}
			return interp.NewDevice(), nil
		}
		return dev, err
	case "interp":
		return interp.NewDevice(), nil
	case "cpu":
		return openCPU(ctx, opt)
	case "cuda", "tegra", "nv":
		return nil, fmt.Errorf("device %q: %w: this build runs on cpu and interp", name, ErrAbsent)
	}
	return nil, fmt.Errorf("device %q: %w, want one of %s", name, ErrUnknown, strings.Join(Names(), ", "))
}

func openCPU(ctx context.Context, opt Options) (runtime.Device, error) {
	return cpu.New(ctx, cpu.Options{Threads: opt.Threads, CacheDir: opt.CacheDir})
}
