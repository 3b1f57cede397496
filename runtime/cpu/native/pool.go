package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// Options configures a pool.
type Options struct {
	// Workers is the number of threads a step runs on, the caller's
	// included; 0 means GOMAXPROCS. More workers than free cores cost far
	// more than they bring: every barrier waits for all of them.
	Workers int
	// Spin is how long an idle worker polls for the next step before it
	// sleeps; 0 means DefaultSpin.
	Spin time.Duration
}

// DefaultSpin is longer than the work between two tokens (sampling, text
// output), because waking a sleeping worker was seen to take 0.4 to 1.3 ms in
// a virtual machine, and short enough to leave the cores when generation ends.
const DefaultSpin = 3 * time.Millisecond

// maxWorkers bounds the workers of one pool.
const maxWorkers = 512

// Pool is a set of workers. Its methods may be called from any goroutine;
// steps run one at a time.
type Pool struct {
	workers int
	mu      sync.Mutex
	loop    *loop // nil once closed
}

// NewPool starts the workers.
func NewPool(options Options) (*Pool, error) {
	workers, spin := options.Workers, options.Spin
	if workers == 0 {
		workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	if workers < 1 || workers > maxWorkers {
		return nil, fmt.Errorf("native: %d workers, want 1 to %d", workers, maxWorkers)
	}
	if spin <= 0 {
		spin = DefaultSpin
	}
	loop, err := startLoop(workers, spin)
	if err != nil {
		return nil, fmt.Errorf("native: start %d workers: %w", workers, err)
	}
	return &Pool{workers: workers, loop: loop}, nil
}

// Workers is the number of workers, the caller's thread included.
func (p *Pool) Workers() int { return p.workers }

// Run plays a step and returns when all its calls are done. The error is a
// *FaultError if a kernel faulted, or the context's cause if it ended first:
// running kernels finish, the rest are skipped.
func (p *Pool) Run(ctx context.Context, s *Step) error { return p.run(ctx, s, false) }

// Profile plays a step with a barrier after every call and returns the time
// of each, from the previous barrier to its own: about 0.2 us of a time is
// the barrier's.
func (p *Pool) Profile(ctx context.Context, s *Step) ([]time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.runLocked(ctx, s, true); err != nil {
		return nil, err
	}
	return p.loop.times(s), nil
}

func (p *Pool) run(ctx context.Context, s *Step, profile bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runLocked(ctx, s, profile)
}

func (p *Pool) runLocked(ctx context.Context, s *Step, profile bool) error {
	switch {
	case p.loop == nil:
		return fmt.Errorf("native: the device is closed: %w", os.ErrClosed)
	case len(s.records) == 0:
		return errors.New("native: step was freed")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	p.loop.prepare(s, profile)
	if ctx.Done() == nil {
		p.loop.play(s)
	} else {
		cancelled := make(chan struct{})
		stop := context.AfterFunc(ctx, func() { p.loop.cancel(); close(cancelled) })
		p.loop.play(s)
		if !stop() {
			<-cancelled // the loop's memory must outlive the function
		}
	}
	if fault := p.loop.fault(s); fault != nil {
		return fault
	}
	if p.loop.wasCancelled() {
		return context.Cause(ctx)
	}
	return nil
}

// Close ends the workers. It waits for a step that runs.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loop == nil {
		return nil
	}
	err := p.loop.stop()
	p.loop = nil
	return err
}
