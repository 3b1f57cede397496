package cpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"tgc/internal/cachefile"
	"tgc/internal/cpucache"
	"tgc/internal/processor"
	"tgc/runtime/cpu/llvmc"
	"tgc/runtime/cpu/native"
	"tgc/runtime/cpu/object"
	"tgc/target"
)

// ErrNoLLVM is wrapped by the error of New when no usable libLLVM is found; its
// text says how to get one.
var ErrNoLLVM = llvmc.ErrNoLLVM

// Options configures New. The zero value is this machine with all its cores
// and the user's cache folder.
type Options struct {
	Threads  int    // workers; 0 means GOMAXPROCS
	CacheDir string // of objects; empty means cachefile.DefaultDir
	NoCache  bool
	// CPU and Features name another target for LLVM, as in llvmc.Options;
	// empty means the host's. It must be able to run here.
	CPU, Features string
	// EmulateTiles has functions in place of the tile instructions that the CPU may lack: slow,
	// and without effect where vectors have no 64 bytes.
	EmulateTiles bool
	// Passes is LLVM's pass pipeline; empty means llvmc.DefaultPasses.
	Passes string
}

// Device compiles and runs programs on this machine's CPU.
type Device struct {
	desc     *target.Desc
	compiler *llvmc.Compiler
	pool     *native.Pool
	cache    *cachefile.Cache

	mu     sync.Mutex
	loaded map[string]*code          // by object key
	tables map[string]*native.Memory // by contents
	closed bool
}

// code is a mapped object and the address of its kernel.
type code struct {
	object *object.Object
	entry  uintptr
}

// New starts a device: compiler, workers, cache.
func New(ctx context.Context, options Options) (*Device, error) {
	compiler, err := llvmc.Start(ctx, llvmc.Options{CPU: options.CPU, Features: options.Features, Passes: options.Passes})
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	pool, err := native.NewPool(native.Options{Workers: options.Threads})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cpu: %w", err), compiler.Close())
	}
	d := &Device{
		compiler: compiler,
		pool:     pool,
		desc:     describe(compiler, options, pool.Workers()),
		loaded:   make(map[string]*code),
		tables:   make(map[string]*native.Memory),
	}
	if !options.NoCache {
		d.cache = cachefile.Open(options.CacheDir, cachefile.MaxBytes(cachefile.FolderBytes))
	}
	return d, nil
}

// describe is the target in use: the host unless the options name another, of which the caches
// are not known either.
func describe(c *llvmc.Compiler, options Options, workers int) *target.Desc {
	name, features := cmp.Or(processor.Name(), c.Host().CPU), c.Host().Features
	if options.CPU != "" {
		name, features = options.CPU, ""
	}
	if options.Features != "" {
		features = strings.TrimPrefix(options.Features, llvmc.NoFeatures)
	}
	var list []string
	if features != "" {
		list = strings.Split(features, ",")
	}
	if options.EmulateTiles {
		list = append(list, "-amx-int8", "-amx-bf16", target.EmulatedTiles)
	}
	desc := withPermission(target.ForCPU(name, list, workers), func(without []string) *target.Desc {
		return target.ForCPU(name, append(list, without...), workers)
	})
	if options.CPU == "" && options.Features == "" {
		sizes := cpucache.OfCore()
		desc = desc.WithCaches(sizes.L1, sizes.L2, sizes.L3)
	}
	return desc
}

// withPermission is a target, or what it is without tile instructions where the system
// does not let the process use them.
func withPermission(desc *target.Desc, without func(features []string) *target.Desc) *target.Desc {
	if desc.HasTiles() && !desc.EmulatesTiles() && askForTiles() != nil {
		return without([]string{"-amx-int8", "-amx-bf16"})
	}
	return desc
}

// Name is the name of the target, as --target prints it.
func (d *Device) Name() string { return d.desc.Name }

// Target describes the CPU.
func (d *Device) Target() *target.Desc { return d.desc }

// Close ends the workers and the compiler and unmaps all code. Nothing of the
// device may be in use.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	errs := []error{d.pool.Close(), d.compiler.Close()}
	if d.cache != nil {
		errs = append(errs, d.cache.Close())
	}
	for _, c := range d.loaded {
		errs = append(errs, c.object.Close())
	}
	for _, m := range d.tables {
		errs = append(errs, m.Free())
	}
	return errors.Join(errs...)
}
