package llvmc

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// DefaultPasses is the light pipeline: the renderer emits vectors itself, so
// that kernels from it run as fast as from default<O2> at two thirds of the
// compile time (LLVM 19, 1000 lines of IR: 12.7 against 17.9 ms).
const DefaultPasses = "function(early-cse,instcombine,simplifycfg)"

// NoPasses is the value of Options.Passes that runs none.
const NoPasses = "-"

// NoFeatures is the value of Options.Features that means the CPU's own
// features only, where an empty string means the host's.
const NoFeatures = "-"

// CodegenLevel is LLVM's effort in instruction selection and scheduling.
type CodegenLevel int

const (
	CodegenNone CodegenLevel = iota
	CodegenLess
	CodegenDefault
	CodegenAggressive
)

// Options configures Start. The zero value compiles for this machine.
type Options struct {
	// Triple, CPU and Features describe the target; empty means the host's.
	// Feature strings are LLVM's: "+avx2,-avx512f".
	Triple, CPU, Features string
	// Passes is an LLVMRunPasses pipeline; empty means DefaultPasses.
	Passes string
	// Level is the code generator's level; nil means CodegenDefault.
	Level *CodegenLevel
	// Assembly gives assembler text in place of objects: see Assemble.
	Assembly bool
	// Workers is the largest number of child processes, each of which
	// compiles one module at a time; 0 means GOMAXPROCS.
	Workers int
	// Timeout bounds one compile; 0 means DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout is far above any compile seen (3000 lines: 0.06 s).
const DefaultTimeout = 60 * time.Second

// Host is what LLVM says about itself and the machine it runs on.
type Host struct {
	Version  string // of libLLVM, "19.1.7"; LLVM 15 does not tell its minor
	Major    int
	CPU      string // "znver5"; "generic" where LLVM does not know the CPU
	Features string // "+avx512f,+avx512vnni,..."
}

// Has reports whether the host's feature string enables a feature.
func (h Host) Has(feature string) bool {
	for f := range strings.SplitSeq(h.Features, ",") {
		if f == "+"+feature {
			return true
		}
	}
	return false
}

// Compiler compiles IR in child processes. It is safe for concurrent use.
type Compiler struct {
	settings settings
	timeout  time.Duration
	greeting hello

	// slots holds one entry per child that may exist; whoever holds the
	// entry owns the child. A nil child is started when first needed.
	slots   chan *child
	workers int

	close  sync.Once
	closed chan struct{}
}

// Start starts the first child and learns about LLVM and the host from it.
// The error wraps ErrNoLLVM if there is no usable libLLVM.
func Start(ctx context.Context, options Options) (*Compiler, error) {
	c := &Compiler{
		settings: settings{
			Triple: options.Triple, CPU: options.CPU, Features: options.Features,
			Passes: options.Passes, Level: CodegenDefault, Assembly: options.Assembly,
		},
		timeout: options.Timeout,
		workers: options.Workers,
		closed:  make(chan struct{}),
	}
	switch c.settings.Passes {
	case "":
		c.settings.Passes = DefaultPasses
	case NoPasses:
		c.settings.Passes = ""
	}
	if options.Assembly {
		c.settings.Passes = strings.TrimSuffix(numberInstructions+","+c.settings.Passes, ",")
	}
	if options.Level != nil {
		c.settings.Level = *options.Level
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	if c.workers <= 0 {
		c.workers = runtime.GOMAXPROCS(0)
	}
	c.slots = make(chan *child, c.workers)
	for range c.workers - 1 {
		c.slots <- nil
	}
	if _, err := systemOf(runtime.GOOS); err != nil {
		return nil, fmt.Errorf("llvmc: %w", err)
	}
	first, greeting, err := startChild(ctx, c.settings)
	if err != nil {
		return nil, fmt.Errorf("llvmc: %w", err)
	}
	c.greeting = greeting
	c.slots <- first
	return c, nil
}

// Host tells LLVM's version and the machine's CPU and features.
func (c *Compiler) Host() Host { return c.greeting.Host }

// Triple is the target triple in use.
func (c *Compiler) Triple() string { return c.greeting.Triple }

// Fingerprint is everything about the compiler that changes its output: the
// part of an object's cache key that the IR text does not hold.
func (c *Compiler) Fingerprint() string {
	g := c.greeting
	return fmt.Sprintf("llvm %s; %s; cpu %s; features %s; passes %s; level %d; pic small",
		g.Host.Version, g.Triple, g.CPU, g.Features, c.settings.Passes, c.settings.Level)
}

// CompileError is LLVM's answer to IR that it rejects. A child that died has
// another error: it may say nothing about this IR.
type CompileError struct{ Message string }

func (e *CompileError) Error() string { return "llvmc: " + e.Message }

// Compile compiles one module to an object.
func (c *Compiler) Compile(ctx context.Context, irText []byte) ([]byte, error) {
	worker, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { c.slots <- worker }()
	if worker == nil {
		if worker, _, err = startChild(ctx, c.settings); err != nil {
			return nil, fmt.Errorf("llvmc: %w", err)
		}
	}
	// The deadline starts here: waiting for a child is not compiling.
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout,
		fmt.Errorf("compile took longer than %v: %w", c.timeout, context.DeadlineExceeded))
	defer cancel()
	reply, err := worker.ask(ctx, irText)
	if err != nil {
		worker = nil // it is dead; the slot starts another when needed
		return nil, fmt.Errorf("llvmc: %w", err)
	}
	status, rest := reply[0], reply[1:]
	if status != replyObject {
		return nil, &CompileError{Message: strings.TrimSpace(string(rest))}
	}
	return rest, nil
}

// acquire takes a slot: a running child if there is an idle one.
func (c *Compiler) acquire(ctx context.Context) (*child, error) {
	select {
	case <-c.closed:
		return nil, fmt.Errorf("llvmc: compiler is closed: %w", os.ErrClosed)
	case <-ctx.Done():
		return nil, fmt.Errorf("llvmc: %w", context.Cause(ctx))
	case worker := <-c.slots:
		return c.preferRunning(worker), nil
	}
}

// preferRunning swaps an empty slot for one with a running child.
func (c *Compiler) preferRunning(worker *child) *child {
	for range c.workers {
		if worker != nil {
			break
		}
		select {
		case other := <-c.slots:
			c.slots <- worker
			worker = other
		default:
			return worker
		}
	}
	return worker
}

// Close waits for compiles in progress and ends the children.
func (c *Compiler) Close() error {
	c.close.Do(func() {
		close(c.closed)
		for range c.workers {
			if worker := <-c.slots; worker != nil {
				worker.stop()
			}
		}
	})
	return nil
}
