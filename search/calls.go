package search

import (
	"context"
	"slices"
	"time"

	"tgc/engine"
	"tgc/packed"
	"tgc/runtime"
)

// Bytes of weights behind one another, more than any cache has; calls at most.
const (
	coldBytes = 160 << 20
	mostCalls = 48
)

// guardBytes is what stands on either side of a buffer, to see what is written beside it.
const guardBytes = 4096

// guardByte fills it.
const guardByte = 0xa5

// Calls are the arguments of calls of one kernel, compiled by itself: each reads weights of
// its own, so that no cache holds them, and all share activations, which stay warm.
type Calls struct {
	dev    runtime.Device
	kernel *engine.Compiled
	slots  []slot
	sets   []arguments
	memory []runtime.Memory
}

// arguments are the buffers of a call, by slot.
type arguments []*inside

// slot is what is known of an argument.
type slot struct {
	index  int // in Schedule.Buffers
	host   int64
	layout engine.Layout
	weight bool
}

// NewCalls allocates the arguments of at least so many sets that differ in all buffers, and of
// as many more of weights only as keep them cold. contents are the host's bytes of a slot in a
// set; nil leaves zeros.
func NewCalls(ctx context.Context, dev runtime.Device, kernel *engine.Compiled, whole int, contents func(set, slot int, bytes int64) []byte) (*Calls, error) {
	c := &Calls{dev: dev, kernel: kernel}
	weights, err := c.describe()
	if err != nil {
		return nil, err
	}
	n := max(int(min(coldBytes/max(weights, 1), mostCalls)), 1, whole)
	for set := range n {
		if err := c.addSet(ctx, set, set < whole, contents); err != nil {
			c.Free()
			return nil, err
		}
	}
	return c, nil
}

// describe reads the slots off the kernel.
func (c *Calls) describe() (weights int64, err error) {
	for _, index := range c.kernel.Launches[0][0].Args {
		s, err := slotOf(c.kernel, index)
		if err != nil {
			return 0, err
		}
		if s.weight {
			weights += s.layout.Bytes(s.host)
		}
		c.slots = append(c.slots, s)
	}
	return weights, nil
}

// slotOf describes a buffer of a schedule.
func slotOf(c *engine.Compiled, index int) (s slot, err error) {
	b := &c.Schedule.Buffers[index]
	s = slot{index: index, host: b.Bytes, layout: c.Layout(b.UserID)}
	if f, ok := packed.Lookup(b.Format); ok && !f.IsPlain() {
		elements := int64(1)
		for _, n := range b.Shape {
			v, _ := n.Int()
			elements *= v
		}
		if s.host, err = f.RowBytes(elements); err != nil {
			return s, err
		}
	}
	s.weight = b.Format != "" || s.layout.Bytes(s.host) >= leastWeight
	return s, nil
}

// coldBytes are the weights of all sets.
func (c *Calls) coldBytes() (n int64) {
	for _, s := range c.slots {
		if s.weight {
			n += s.layout.Bytes(s.host) * int64(len(c.sets))
		}
	}
	return n
}

// leastWeight is from how many bytes on a plain buffer is no activation.
const leastWeight = 256 << 10

func (c *Calls) addSet(ctx context.Context, set int, whole bool, contents func(set, slot int, bytes int64) []byte) error {
	args := make(arguments, len(c.slots))
	for i, s := range c.slots {
		if set > 0 && !whole && !s.weight {
			args[i] = c.sets[0][i]
			continue
		}
		m, err := c.guarded(ctx, s.layout.Bytes(s.host))
		if err != nil {
			return err
		}
		if args[i] = m; contents == nil {
			continue
		}
		if data := contents(set, i, s.host); data != nil {
			if err := s.layout.Write(ctx, m, data); err != nil {
				return err
			}
		}
	}
	c.sets = append(c.sets, args)
	return nil
}

// guarded allocates a buffer between guards.
func (c *Calls) guarded(ctx context.Context, bytes int64) (*inside, error) {
	m, err := c.dev.Alloc(ctx, bytes+2*guardBytes)
	if err != nil {
		return nil, err
	}
	c.memory = append(c.memory, m)
	inner := &inside{m}
	return inner, inner.guard(ctx)
}

// guard writes the guards.
func (m *inside) guard(ctx context.Context) error {
	data := slices.Repeat([]byte{guardByte}, guardBytes)
	if err := m.Write(ctx, -guardBytes, data); err != nil {
		return err
	}
	return m.Write(ctx, m.Size(), data)
}

// intact reports that nothing was written beside the memory, and makes it so.
func (m *inside) intact(ctx context.Context) (bool, error) {
	data := make([]byte, guardBytes)
	for _, at := range []int64{-guardBytes, m.Size()} {
		if err := m.Read(ctx, at, data); err != nil {
			return false, err
		}
		if slices.ContainsFunc(data, func(b byte) bool { return b != guardByte }) {
			return false, m.guard(ctx)
		}
	}
	return true, nil
}

// inside is a memory between its guards.
type inside struct{ runtime.Memory }

func (m *inside) view() runtime.View { return runtime.View{Memory: m.Memory, Offset: guardBytes} }

func (m *inside) Size() int64 { return m.Memory.Size() - 2*guardBytes }
func (m *inside) Read(ctx context.Context, at int64, into []byte) error {
	return m.Memory.Read(ctx, at+guardBytes, into)
}
func (m *inside) Write(ctx context.Context, at int64, from []byte) error {
	return m.Memory.Write(ctx, at+guardBytes, from)
}

// intact reports the slots of a set beside which something was written.
func (c *Calls) intact(ctx context.Context, set int) (bad []int, err error) {
	for i, m := range c.sets[set] {
		ok, err := m.intact(ctx)
		if err != nil {
			return nil, err
		}
		if !ok {
			bad = append(bad, i)
		}
	}
	return bad, nil
}

// call is a call with the arguments of a set.
func (c *Calls) call(exec runtime.Executable, set int) runtime.Call {
	slots := make(map[int]runtime.View, len(c.slots))
	for i, m := range c.sets[set] {
		if !c.slots[i].weight {
			m = c.sets[0][i]
		}
		slots[i] = m.view()
	}
	return runtime.Call{Exec: exec, Slots: slots}
}

// Run runs one call on the buffers of a set alone.
func (c *Calls) run(ctx context.Context, exec runtime.Executable, set int, vars map[string]int64) error {
	call := runtime.Call{Exec: exec, Slots: make(map[int]runtime.View)}
	for i, m := range c.sets[set] {
		call.Slots[i] = m.view()
	}
	r, err := c.dev.Record(ctx, []runtime.Launch{{Calls: []runtime.Call{call}}})
	if err != nil {
		return err
	}
	defer r.Free()
	return r.Run(ctx, vars)
}

// How a call is timed: runs of a chain at least and at most, unless that takes so long.
const (
	chainCalls = 48 // of a chain that the device times itself
	leastRuns  = 5
	mostRuns   = 400
	enough     = 20 * time.Millisecond

	shortRun  = 500 * time.Microsecond // of calls that the host times
	chainTime = 100 * time.Millisecond // of a chain, at most: an emulated GPU takes that for a call
	chainLong = 2 * time.Millisecond   // of a chain beyond calls with weights of their own: longer ones say no more
	farOver   = 4                      // times the limit a call takes that is timed once, with its launch
	longCall  = time.Millisecond       // and which a launch is little of
)

// once runs a call and says what that took, with its launch.
func (c *Calls) once(ctx context.Context, exec runtime.Executable, vars map[string]int64) (time.Duration, error) {
	r, err := c.record(ctx, exec, 0, 1)
	if err != nil {
		return 0, err
	}
	defer r.Free()
	start := time.Now()
	err = r.Run(ctx, vars)
	return time.Since(start), err
}

// Time is what a call takes, in microseconds, in a chain of calls that read weights of their
// own: the median of what the device measures, else the least of what the host sees, since
// what else runs on the machine only adds. A call over the limit (0: none) is timed once.
func (c *Calls) Time(ctx context.Context, exec runtime.Executable, vars map[string]int64, limit float64) (float64, error) {
	once, err := c.once(ctx, exec, vars)
	if us := once.Seconds() * 1e6; err != nil || limit > 0 && us > farOver*limit && once > longCall {
		return us, err
	}
	n := int(min(int64(len(c.sets)), max(1, int64(chainTime/max(once, 1)))))
	r, err := c.record(ctx, exec, 0, n)
	if err != nil {
		return 0, err
	}
	defer r.Free()
	if chain, ok := r.(runtime.Chainer); ok {
		numbers := make([]int, n)
		for set := range numbers {
			numbers[set] = set
		}
		times := max(min(chainCalls, int(chainLong/max(once, 1)))/n, 1)
		all, err := repeat(leastRuns, leastRuns, limit, func() (time.Duration, error) { return chain.Chain(ctx, vars, numbers, times) })
		if err != nil {
			return 0, err
		}
		return all[len(all)/2], nil
	}
	return c.hostTime(ctx, exec, vars, n, int(max(1, shortRun/max(once, 1))), limit)
}

// hostTime runs calls of n sets in turn, some at once, and returns the least time of a call. Runs
// are short: between two of other processes there is room for them.
func (c *Calls) hostTime(ctx context.Context, exec runtime.Executable, vars map[string]int64, n, together int, limit float64) (float64, error) {
	var turns []runtime.Recording
	var counts []int
	for first := 0; first < n; first += together {
		count := min(together, n-first)
		r, err := c.record(ctx, exec, first, count)
		if err != nil {
			return 0, err
		}
		defer r.Free()
		turns, counts = append(turns, r), append(counts, count)
	}
	turn := 0
	all, err := repeat(leastRuns+len(turns), mostRuns, limit, func() (time.Duration, error) {
		i := turn % len(turns)
		turn++
		start := time.Now()
		err := turns[i].Run(ctx, vars)
		return time.Since(start) / time.Duration(counts[i]), err
	})
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

// record records calls of some sets, one after the other.
func (c *Calls) record(ctx context.Context, exec runtime.Executable, first, n int) (runtime.Recording, error) {
	var launches []runtime.Launch
	for set := first; set < first+n; set++ {
		launches = append(launches, runtime.Launch{Calls: []runtime.Call{c.call(exec, set)}})
	}
	return c.dev.Record(ctx, launches)
}

// repeat measures until there is enough, and returns microseconds, the least first.
func repeat(least, most int, limit float64, measure func() (time.Duration, error)) (all []float64, err error) {
	start := time.Now()
	for len(all) < least || len(all) < most && time.Since(start) < enough {
		took, err := measure()
		if err != nil {
			return nil, err
		}
		us := took.Seconds() * 1e6
		all = append(all, us)
		if limit > 0 && us > limit || took > time.Second {
			break
		}
	}
	slices.Sort(all)
	return all, nil
}

// Free frees the buffers.
func (c *Calls) Free() {
	for _, m := range c.memory {
		m.Free()
	}
	c.memory = nil
}
