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
	for _, c := range r.calls {
		if err := c.SetVars(vars); err != nil {
			return nil, fmt.Errorf("hcq: %w", err)
		}
	}
	if len(calls) == 0 {
		return nil, nil
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

func (r *Recording) runTimed(ctx context.Context, calls []int, times int) (marks []uint64, err error) {
	d := r.device
	if err := r.update(ctx); err != nil {
		return nil, err
	}
	count := len(calls)*times + 1
	words, err := r.timedWords(0, calls, times)
	if err != nil {
		return nil, err
	}
	m, err := d.board.Alloc(int64(count*markBytes+4*len(words)), UseData)
	if err != nil {
		return nil, err
	}
	if words, err = r.timedWords(m.Address, calls, times); err != nil {
		return nil, errors.Join(err, d.board.Free(m))
	}
	putWords(m.Host[count*markBytes:], words)
	entry, err := word.RingEntry(m.Address+uint64(count*markBytes), len(words))
	if err != nil {
		return nil, errors.Join(err, d.board.Free(m))
	}
	if r.last, err = d.queue.submit(entry); err != nil {
		return nil, err
	}
	if err := d.queue.wait(ctx, r.last); err != nil {
		return nil, err // the GPU may still read the words
	}
	for i := range count {
		marks = append(marks, binary.LittleEndian.Uint64(m.Host[i*markBytes+8:]))
	}
	return marks, d.board.Free(m)
}

// timedWords are words that launch calls with marks around each; the marks lie at an
// address.
func (r *Recording) timedWords(marks uint64, calls []int, times int) ([]uint32, error) {
	b := &word.Builder{}
	b.Send(word.OnCompute, word.InvalidateSkedCaches, 0)
	b.Send(word.OnCompute, word.InvalidateShaderCaches, b.Value(word.OnCompute, word.InvalidateShaderCaches,
		word.Part{Field: word.Instruction, Value: 1}, word.Part{Field: word.Data, Value: 1}, word.Part{Field: word.Constant, Value: 1}))
	b.Release(marks, 1, true)
	for range times {
		for _, i := range calls {
			marks += markBytes
			b.Launch(r.own.Address+uint64(r.calls[i].qmd), word.ActionPrefetchLaunch)
			b.Release(marks, 1, true)
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
