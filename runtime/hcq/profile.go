package hcq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"tgc/internal/lists"
	"tgc/runtime/hcq/word"
)

// Profile runs the step once, its calls one after the other with a time stamp between,
// and reports the time of each.
func (r *Recording) Profile(ctx context.Context, vars map[string]int64) ([]time.Duration, error) {
	marks, err := r.timed(ctx, vars, lists.Upto(len(r.calls)), 1)
	if err != nil || len(marks) == 0 {
		return nil, err
	}
	times := make([]time.Duration, len(marks)-1)
	for i := range times {
		times[i] = time.Duration(marks[i+1] - marks[i])
	}
	return times, nil
}

// timed runs calls one after the other, all of them a number of times, and returns the
// GPU's time in nanoseconds before the first and after each.
func (r *Recording) timed(ctx context.Context, vars map[string]int64, calls []int, times int) ([]uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := r.usable(); err != nil {
		return nil, err
	}
	if err := r.setVars(vars); err != nil || len(calls) == 0 {
		return nil, err
	}
	d := r.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	marks, err := r.runTimed(ctx, calls, times)
	return marks, d.noteFault(err, r.calls)
}

const markBytes = 16 // a value and a time stamp

// timing is memory for a timed run: the marks, descriptors that start nothing after them,
// and words.
type timing struct {
	own         *Buffer
	marks       int // of them
	qmds, words int // offsets
	calls       []int
	times       int
}

func (r *Recording) runTimed(ctx context.Context, calls []int, times int) (marks []uint64, err error) {
	d := r.device
	s, err := r.update(ctx)
	if err != nil {
		return nil, err
	}
	t := &timing{marks: len(calls)*times + 1, calls: calls, times: times}
	t.qmds = roundUp(t.marks*markBytes, bankAlign)
	t.words = t.qmds + qmdBytes*len(r.calls)
	words, err := t.list(0)
	if err != nil {
		return nil, err
	}
	if t.own, err = d.board.Alloc(int64(t.words+4*len(words)), UseData); err != nil {
		return nil, err
	}
	entry, err := r.writeTimed(t, s)
	if err != nil {
		return nil, errors.Join(err, d.board.Free(t.own))
	}
	if err := r.submit(s, entry); err != nil {
		return nil, err
	}
	if err := d.queue.wait(ctx, r.last); err != nil {
		return nil, err // the GPU may still read the words
	}
	for i := range t.marks {
		marks = append(marks, binary.LittleEndian.Uint64(t.own.Host[i*markBytes+8:]))
	}
	return marks, d.board.Free(t.own)
}

// writeTimed writes descriptors and words, and returns the entry of the ring.
func (r *Recording) writeTimed(t *timing, s int) (uint64, error) {
	for i, c := range r.calls {
		if err := r.writeQMD(c, s, 0, t.own.Host[t.qmds+qmdBytes*i:]); err != nil {
			return 0, err
		}
	}
	words, err := t.list(t.own.Address)
	if err != nil {
		return 0, err
	}
	putWords(t.own.Host[t.words:], words)
	return word.RingEntry(t.own.Address+uint64(t.words), len(words))
}

// list are words that launch the calls with marks around each; the memory begins at an
// address.
func (t *timing) list(base uint64) ([]uint32, error) {
	b := &word.Builder{}
	fresh(b)
	mark := base
	b.Release(mark, 1, true)
	for range t.times {
		for _, i := range t.calls {
			mark += markBytes
			b.Launch(base+uint64(t.qmds+qmdBytes*i), word.ActionPrefetchLaunch)
			b.Release(mark, 1, true)
		}
	}
	return b.Words, b.Err
}

// Chain runs some calls of the step one after the other, all of them n times, and returns
// the time of one.
func (r *Recording) Chain(ctx context.Context, vars map[string]int64, calls []int, times int) (time.Duration, error) {
	for _, i := range calls {
		if i < 0 || i >= len(r.calls) {
			return 0, fmt.Errorf("hcq: chain: call %d, want 0 to %d", i, len(r.calls)-1)
		}
	}
	if len(calls) == 0 || times < 1 {
		return 0, fmt.Errorf("hcq: chain: %d calls, %d times: want at least one", len(calls), times)
	}
	if _, err := r.timed(ctx, vars, calls, 1); err != nil { // warms up
		return 0, err
	}
	marks, err := r.timed(ctx, vars, calls, times)
	if err != nil {
		return 0, err
	}
	return time.Duration(marks[len(marks)-1]-marks[0]) / time.Duration(times*len(calls)), nil
}
