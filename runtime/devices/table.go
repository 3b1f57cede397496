package devices

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strconv"
	"strings"

	"tgc/runtime"
	"tgc/runtime/cpu"
	"tgc/runtime/cpu/native"
	"tgc/runtime/cuda"
	"tgc/runtime/cuda/emulator"
	"tgc/runtime/interp"
)

// family is a row: all that is said of a family of devices. How its programs are
// printed, the name of its target says (package render); what its hardware is good
// at, the target's description.
type family struct {
	name   string
	doc    string
	suffix *suffix // what may follow the name; nil: nothing
	byName bool    // never the best device: not all models run on it yet
	slow   bool    // programs are interpreted: no speed is worth a figure
	traces bool    // Options.Trace means something
	// lacks says why it does not open, in a line of the list of devices, which has it also
	// where it is absent; nil: the error, and it is left out where it is absent.
	lacks func(error) string
	// remark is said where this family is the best one present; empty: its name.
	remark string
	open   func(ctx context.Context, number int, opt Options) (runtime.Device, error) // nil: not in this version

	// workers is the number of workers that run a kernel; nil: one.
	workers func(dev runtime.Device, opt Options) int
	// describe adds what the machine says; dev is nil where opening failed.
	describe func(info *Info, dev runtime.Device, opt Options)
	rates    func(dev runtime.Device) *rates // nil: not measured
}

// suffix is what may follow the name of a family: which of its devices.
type suffix struct {
	form  string // "[:N]"
	parse func(text string) (number int, ok bool)
	print func(number int) string
	many  bool // numbers count the devices of a machine
}

// measurement is a rate of a number of workers.
type measurement func(ctx context.Context, workers int) (float64, error)

// rates measure a device.
type rates struct {
	workers []int       // for which reads are listed; nil: one and all
	read    measurement // from memory, in GB/s
	peak    measurement // of f32 multiply-adds, in GFLOP/s
	copy    measurement // within memory, in GB/s; nil: not measured
}

// families are all devices, the best first.
var families = []family{
	{
		name: "cuda", doc: "NVIDIA GPU through its driver", suffix: &numbered, byName: true, open: openCUDA,
		workers: multiprocessors, describe: describeCUDA, rates: ratesCUDA,
	},
	{
		name: "tegra", doc: "Jetson GPU through its kernel driver; not tried on a board yet", byName: true, traces: true,
		lacks: lacksTegra, open: openTegra, workers: multiprocessors, describe: describeTegra,
	},
	{name: "nv", doc: "NVIDIA GPU through its hardware queue", suffix: &numbered},
	{
		name: "cpu", doc: "this machine's CPU through libLLVM", byName: goruntime.GOOS == "darwin", open: openCPU,
		workers: func(_ runtime.Device, opt Options) int { return cores(opt) }, describe: describeCPU, rates: ratesCPU,
	},
	{
		name: "interp", doc: "interpreter, always present", slow: true, open: openInterp,
		remark: interpreted(goruntime.GOOS),
	},
	{
		name: "cuda:emu", doc: "NVIDIA GPU emulated from PTX, with checks; slow", suffix: &architecture, byName: true, slow: true,
		open: openEmulated, workers: multiprocessors, describe: describeCUDA,
	},
	{
		name: "cpu:emu", doc: "this machine's CPU with emulated tile instructions; slow", byName: true, slow: true, open: openCPUEmulated,
		workers: func(_ runtime.Device, opt Options) int { return cores(opt) }, describe: describeCPU,
	},
	{
		name: "tegra:emu", doc: "Jetson GPU emulated word by word, with checks; slow, needs ptxas", byName: true, slow: true, traces: true,
		open: openTegraEmulated, workers: multiprocessors, describe: describeTegra,
	},
}

// interpreted is said where the interpreter is the best device: what a faster one wants.
// On macOS the CPU opens by name only, until somebody has tried it there.
func interpreted(goos string) string {
	const slow = "device: interp, which is slow: "
	switch goos {
	case "linux":
		return slow + "no libLLVM was found. For the fast path install LLVM 15 to 22 (Debian: apt install libllvm19)"
	case "darwin":
		return slow + "--device cpu runs machine code through libLLVM (brew install llvm), which is not tried on macOS yet"
	}
	return slow + "machine code runs on Linux and macOS only"
}

// numbered counts devices from 0.
var numbered = suffix{
	form: "[:N]", many: true,
	parse: func(text string) (int, bool) {
		digits, ok := strings.CutPrefix(text, ":")
		n, err := strconv.ParseUint(digits, 10, 16)
		return int(n), ok && err == nil
	},
	print: func(n int) string { return fmt.Sprintf(":%d", n) },
}

// architecture is the number of an NVIDIA architecture.
var architecture = suffix{
	form: "[:sm_NN]",
	parse: func(text string) (int, bool) {
		digits, ok := strings.CutPrefix(text, ":sm_")
		n, err := strconv.ParseUint(digits, 10, 16)
		return int(n), ok && err == nil && n > 0
	},
	print: func(n int) string { return fmt.Sprintf(":sm_%d", n) },
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

func multiprocessors(dev runtime.Device, _ Options) int { return dev.Target().Cost.Workers }

func describeCUDA(info *Info, dev runtime.Device, _ Options) {
	if gpu, ok := dev.(*cuda.Device); ok {
		board := gpu.Info()
		info.Name, info.Threads, info.MemoryBytes, info.Driver = board.Board, board.Multiprocessors, board.MemoryBytes, board.CUDAVersion
	}
}

func ratesCUDA(dev runtime.Device) *rates {
	gpu, ok := dev.(*cuda.Device)
	if !ok {
		return nil
	}
	return &rates{
		workers: []int{gpu.Info().Multiprocessors},
		read:    func(ctx context.Context, _ int) (float64, error) { return gpu.MeasureRead(ctx) },
		peak:    func(ctx context.Context, _ int) (float64, error) { return gpu.MeasureFMA(ctx) },
	}
}

func openCPU(ctx context.Context, _ int, opt Options) (runtime.Device, error) {
	return openCPUWith(ctx, cpu.Options{Threads: opt.Threads, CacheDir: opt.CacheDir})
}

func openCPUEmulated(ctx context.Context, _ int, opt Options) (runtime.Device, error) {
	return openCPUWith(ctx, cpu.Options{Threads: opt.Threads, CacheDir: opt.CacheDir, EmulateTiles: true})
}

// openCPUWith opens the CPU. A nil *cpu.Device must not become a runtime.Device that is not nil.
func openCPUWith(ctx context.Context, options cpu.Options) (runtime.Device, error) {
	dev, err := cpu.New(ctx, options)
	if err != nil {
		return nil, err
	}
	return dev, nil
}

func cores(opt Options) int {
	if opt.Threads > 0 {
		return opt.Threads
	}
	return goruntime.GOMAXPROCS(0)
}

func describeCPU(info *Info, _ runtime.Device, opt Options) {
	info.Name, info.Threads = cmp.Or(processorName(), goruntime.GOARCH), cores(opt)
}

func ratesCPU(runtime.Device) *rates {
	return &rates{read: native.MeasureRead, peak: native.MeasureFMA, copy: native.MeasureCopy}
}

func openInterp(context.Context, int, Options) (runtime.Device, error) {
	return interp.New(interp.Options{}), nil
}
