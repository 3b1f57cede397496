package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime"
	"tgc/schedule"
)

// Watch says which values stop a step: a finder of the place where training
// goes wrong.
type Watch int

// What is watched for. Infinities are often meant: a mask of scores is -inf.
const (
	WatchNothing Watch = iota
	WatchNaN
	WatchInfinity // and NaN
)

// NotFiniteError names the first kernel that wrote a value which is watched for.
type NotFiniteError struct {
	Kernel  string
	Text    string // what it computes; bN is the buffer of slot N
	Written Range  // what it wrote
	Inputs  []Range
}

// Range describes the values of a kernel's buffer.
type Range struct {
	Slot       int
	Buffer     string // the user's name, or "temporary"
	Shape      string
	Min, Max   float64 // of the finite values; NaN where there is none
	NaN, Inf   int     // how many
	Count      int
	FirstWrong int // index of the first value that is watched for, -1 for none
}

// Error lists the kernel, what it wrote and what it read.
func (e *NotFiniteError) Error() string {
	var out strings.Builder
	fmt.Fprintf(&out, "kernel %s wrote values that are not finite, first at element %d\n  wrote %s", e.Kernel, e.Written.FirstWrong, e.Written)
	for _, r := range e.Inputs {
		fmt.Fprintf(&out, "\n  read  %s", r)
	}
	fmt.Fprintf(&out, "\n  computes %s", e.Text)
	return out.String()
}

// String is a line: slot, name, shape, range, and how many are not finite.
func (r Range) String() string {
	text := fmt.Sprintf("b%d %s%s %g..%g", r.Slot, r.Buffer, r.Shape, r.Min, r.Max)
	if r.NaN+r.Inf > 0 {
		text += fmt.Sprintf(", %d NaN and %d infinite of %d", r.NaN, r.Inf, r.Count)
	}
	return text
}

// watcher is a Recording that runs every call by itself and looks at what it
// wrote.
type watcher struct {
	watch Watch
	calls []watchedCall
}

type watchedCall struct {
	kernel    *Kernel
	recording runtime.Recording
	buffers   []watchedBuffer // of float elements, by slot
}

type watchedBuffer struct {
	slot        int
	read, write bool
	view        runtime.View
	dtype       ir.DType
	name, shape string
	bytes       int64
}

// watch records each call of launches alone.
func watch(ctx context.Context, dev runtime.Device, c *Compiled, launches []runtime.Launch) (runtime.Recording, error) {
	w := &watcher{watch: c.finite}
	for i, l := range launches {
		for k, call := range l.Calls {
			recording, err := dev.Record(ctx, []runtime.Launch{{Calls: []runtime.Call{call}}})
			if err != nil {
				w.Free()
				return nil, err
			}
			own := watchedCall{kernel: c.Launches[i][k].Kernel, recording: recording}
			own.buffers = c.watched(c.Launches[i][k], call)
			w.calls = append(w.calls, own)
		}
	}
	return w, nil
}

// watched lists the float buffers of a call.
func (c *Compiled) watched(call Call, bound runtime.Call) []watchedBuffer {
	var list []watchedBuffer
	for _, p := range bound.Exec.Program().Params {
		if p.Kind != program.ParamBuffer {
			continue
		}
		b := &c.Schedule.Buffers[call.Args[p.Slot]]
		if b.Format != "" || !b.DType.IsFloat() || b.DType.Size() < 2 {
			continue
		}
		name := "temporary"
		if b.UserID >= 0 {
			name = fmt.Sprintf("%q", c.Names[b.UserID])
		}
		list = append(list, watchedBuffer{
			slot: p.Slot, read: p.Read, write: p.Write, view: bound.Slots[p.Slot], dtype: b.DType,
			name: name, shape: extents(b.Shape), bytes: b.Bytes,
		})
	}
	slices.SortFunc(list, func(a, b watchedBuffer) int { return a.slot - b.slot })
	return list
}

func extents(shape []*ir.UOp) string {
	parts := make([]string, len(shape))
	for i, dim := range shape {
		parts[i] = "?"
		if n, ok := dim.Int(); ok {
			parts[i] = fmt.Sprint(n)
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// Run makes the step call by call up to the first that wrote a watched value.
func (w *watcher) Run(ctx context.Context, vars map[string]int64) error {
	for i := range w.calls {
		if err := w.step(ctx, &w.calls[i], vars); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) step(ctx context.Context, c *watchedCall, vars map[string]int64) error {
	var inputs []Range // before the call: it may write where it reads
	for _, b := range c.buffers {
		if b.read {
			r, err := w.look(ctx, b)
			if err != nil {
				return err
			}
			inputs = append(inputs, r)
		}
	}
	if err := c.recording.Run(ctx, vars); err != nil {
		return err
	}
	for _, b := range c.buffers {
		if !b.write {
			continue
		}
		r, err := w.look(ctx, b)
		if err != nil {
			return err
		}
		if r.FirstWrong >= 0 {
			return &NotFiniteError{Kernel: c.kernel.Name, Text: strings.TrimSpace(schedule.KernelText(c.kernel.AST)), Written: r, Inputs: inputs}
		}
	}
	return nil
}

// look reads a buffer and describes its values.
func (w *watcher) look(ctx context.Context, b watchedBuffer) (Range, error) {
	raw := make([]byte, b.bytes)
	if err := b.view.Memory.Read(ctx, b.view.Offset, raw); err != nil {
		return Range{}, err
	}
	r := Range{Slot: b.slot, Buffer: b.name, Shape: b.shape, Min: math.NaN(), Max: math.NaN(), FirstWrong: -1}
	for text := string(raw); r.Count < len(raw)/b.dtype.Size(); r.Count++ {
		v := ir.DecodeTable(b.dtype, text, r.Count).F
		switch {
		case math.IsNaN(v):
			r.NaN++
		case math.IsInf(v, 0):
			r.Inf++
		default:
			if !(r.Min <= v) {
				r.Min = v
			}
			if !(r.Max >= v) {
				r.Max = v
			}
		}
		wrong := math.IsNaN(v) || math.IsInf(v, 0) && w.watch == WatchInfinity
		if wrong && r.FirstWrong < 0 {
			r.FirstWrong = r.Count
		}
	}
	return r, nil
}

// Profile runs the step and reports the times of its calls.
func (w *watcher) Profile(ctx context.Context, vars map[string]int64) ([]time.Duration, error) {
	var times []time.Duration
	for _, c := range w.calls {
		own, err := c.recording.Profile(ctx, vars)
		if err != nil {
			return nil, err
		}
		times = append(times, own...)
	}
	return times, nil
}

// Free releases the recordings.
func (w *watcher) Free() {
	for _, c := range w.calls {
		c.recording.Free()
	}
}
