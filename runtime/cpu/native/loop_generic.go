//go:build !linux || !(amd64 || arm64)

package native

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebitengine/purego"
)

// loop plays steps with one goroutine per worker and launch: correct
// anywhere, a few microseconds a launch, and without a guard: a kernel that
// faults ends the program.
type loop struct {
	workers   int64
	profile   bool
	cancelled atomic.Bool
	took      []time.Duration
}

func startLoop(workers int, _ time.Duration) (*loop, error) {
	return &loop{workers: int64(workers)}, nil
}

func (l *loop) prepare(s *Step, profile bool) {
	s.deal(l.workers)
	l.profile = profile
	l.cancelled.Store(false)
	l.took = l.took[:0]
}

func (l *loop) play(s *Step) {
	for start := 0; start < len(s.records); {
		end := start + 1
		for !l.profile && s.records[end-1].flags&flagBarrier == 0 {
			end++
		}
		begin := time.Now()
		var others sync.WaitGroup
		for w := int64(1); w < l.workers; w++ {
			others.Go(func() { l.runSlabs(s.records[start:end], w) })
		}
		l.runSlabs(s.records[start:end], 0)
		others.Wait()
		l.took = append(l.took, time.Since(begin))
		start = end
	}
}

func (l *loop) runSlabs(records []callRecord, w int64) {
	for i := range records {
		r := &records[i]
		if lo, hi := slab(r, w, l.workers); lo < hi && !l.cancelled.Load() {
			purego.SyscallN(r.fn, r.args, uintptr(lo), uintptr(hi), r.queue)
		}
	}
}

func (l *loop) times(*Step) []time.Duration { return append([]time.Duration(nil), l.took...) }
func (l *loop) cancel()                     { l.cancelled.Store(true) }
func (l *loop) wasCancelled() bool          { return l.cancelled.Load() }
func (l *loop) fault(*Step) error           { return nil }
func (l *loop) stop() error                 { return nil }
