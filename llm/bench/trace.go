package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"tgc/engine"
)

// CallResult is one call of a step, in the order in which they run.
type CallResult struct {
	Kernel string
	Launch int     // its number in the step
	Time   float64 // us, as the step runs it
	Alone  float64 // us between marks, with the edges of a launch; 0 where Time is that
}

// callsOf lists the calls of a step with their times. Calls of one kernel in a chain were
// timed together: each has the same share.
func callsOf(c *engine.Compiled, timings map[*engine.Kernel]*timing, alone []float64) (list []CallResult) {
	for number, launch := range c.Launches {
		for _, call := range launch {
			r := CallResult{Kernel: call.Kernel.Name, Launch: number, Time: 1e6 * alone[len(list)]}
			if t := timings[call.Kernel]; t.chain > 0 {
				r.Time, r.Alone = 1e6*t.chain/float64(len(t.calls)), r.Time
			}
			list = append(list, r)
		}
	}
	return list
}

// traceEvent is an event of the trace event format, which Perfetto and Chrome read: M names
// a process or a track, X is a span of time. Times are microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Time     *float64       `json:"ts,omitempty"`
	Duration *float64       `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Track    int            `json:"tid"`
	Args     map[string]any `json:"args,omitempty"`
}

// trace is a file of the trace event format.
type trace struct {
	Events []traceEvent   `json:"traceEvents"`
	Unit   string         `json:"displayTimeUnit"`
	Other  map[string]any `json:"otherData"`
}

// WriteTrace writes the steps of a result as a timeline: for each a track with the step as it
// was measured, one with its kernels one after the other, and, where calls were timed in
// chains, one with each call between marks. What the kernels of the step overlap or wait is
// the difference to the first track.
func (r *Result) WriteTrace(w io.Writer) error {
	t := &trace{Unit: "ns", Events: []traceEvent{}, Other: map[string]any{"model": r.Model, "device": r.Device, "mode": r.Mode, "threads": r.Threads}}
	t.step(1, "decode on "+r.Device, r.stepTime(), r.Calls, r.Kernels)
	t.step(2, "prompt on "+r.Device, 0, r.PromptCalls, r.PromptKernels)
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(t)
}

// stepTime is the median decode step in microseconds, 0 where none was measured.
func (r *Result) stepTime() float64 {
	if r.Decode.Rates.Median == 0 {
		return 0
	}
	return 1e6 * float64(max(r.Batch, 1)) / r.Decode.Rates.Median
}

// The tracks of a step.
const (
	wholeTrack = 1 + iota
	kernelTrack
	aloneTrack
)

// step adds a process with the tracks of one step.
func (t *trace) step(process int, name string, whole float64, calls []CallResult, kernels []KernelResult) {
	if len(calls) == 0 {
		return
	}
	args := make(map[string]map[string]any)
	for i := range kernels {
		args[kernels[i].Name] = kernels[i].args()
	}
	t.name("process_name", process, 0, name)
	if whole > 0 {
		t.name("thread_name", process, wholeTrack, "step, measured as a whole")
		t.span(process, wholeTrack, "step", "step", 0, whole, nil)
	}
	t.name("thread_name", process, kernelTrack, "kernels")
	t.track(process, kernelTrack, calls, args, func(c *CallResult) float64 { return c.Time })
	if calls[0].Alone > 0 {
		t.name("thread_name", process, aloneTrack, "kernels between marks, with the edges of their launches")
		t.track(process, aloneTrack, calls, args, func(c *CallResult) float64 { return c.Alone })
	}
}

// track adds calls one after the other.
func (t *trace) track(process, track int, calls []CallResult, args map[string]map[string]any, time func(*CallResult) float64) {
	at := 0.0
	for i := range calls {
		c := &calls[i]
		all := map[string]any{"launch": c.Launch, "call": i}
		for name, v := range args[c.Kernel] {
			all[name] = v
		}
		t.span(process, track, c.Kernel, "kernel", at, time(c), all)
		at += time(c)
	}
}

// args are what a viewer shows of a kernel.
func (k *KernelResult) args() map[string]any {
	return map[string]any{"role": k.Role, "plan": k.Plan, "origin": k.Origin, "why": k.Why, "gb_s": k.Rate, "gflops": k.GFLOPS,
		"memory_bytes": k.Memory, "share": fmt.Sprintf("%.1f %%", 100*k.Share)}
}

func (t *trace) name(what string, process, track int, name string) {
	t.Events = append(t.Events, traceEvent{Name: what, Phase: "M", Process: process, Track: track, Args: map[string]any{"name": name}})
}

// span adds a span of time, to the nanosecond: ends that round apart would not nest.
func (t *trace) span(process, track int, name, category string, at, duration float64, args map[string]any) {
	end := nanoseconds(at + duration)
	at = nanoseconds(at)
	duration = nanoseconds(end - at)
	t.Events = append(t.Events, traceEvent{Name: name, Category: category, Phase: "X", Time: &at, Duration: &duration, Process: process, Track: track, Args: args})
}

// nanoseconds rounds microseconds.
func nanoseconds(us float64) float64 { return math.Round(us*1e3) / 1e3 }
