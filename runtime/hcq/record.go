package hcq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tgc/runtime"
	"tgc/runtime/hcq/word"
	"tgc/runtime/nvidia"
)

// call is a recorded kernel: its constant bank with the parameters, and its descriptor,
// lie in the recording's memory, once for every set.
type call struct {
	nvidia.Call
	code  *code
	bank  [mostSets]int  // offset of bank 0
	qmd   [mostSets]int  // offset of the descriptor
	stale [mostSets]bool // the bank lacks a parameter's last value
	alone bool           // in its launch
}

// mostSets is how many copies of a step there are where variables change: the host writes
// the parameters of a run while the one before is under way.
const mostSets = 2

// set is a copy of the step: its words, which lead to descriptors and banks of its own.
type set struct {
	words int    // offset
	entry uint64 // of the ring
	last  uint64 // value of the timeline at the end of its last run
}

// Recording is a step as words, descriptors and constant banks in memory of its own.
type Recording struct {
	device *Device
	mu     sync.Mutex
	uses   nvidia.Uses[*memory]
	calls  []*call
	own    *Buffer
	sets   []set // taken in turn
	next   int   // set of the next run
	times  int   // that a run passes the step
	last   uint64
}

// Record builds the step. Launches follow one another; the calls of one may overlap.
func (d *Device) Record(_ context.Context, launches []runtime.Launch) (runtime.Recording, error) {
	r := &Recording{device: d, times: 1}
	for i, l := range launches {
		for _, c := range l.Calls {
			if err := r.bind(c, i); err != nil {
				return nil, fmt.Errorf("hcq: %w", err)
			}
		}
	}
	if len(r.calls) == 0 {
		return r, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if err := r.build(); err != nil {
		return nil, fmt.Errorf("hcq: record: %w", err)
	}
	r.enlist()
	return r, nil
}

// bind fills in the parameters of a call. A grid without blocks is left out.
func (r *Recording) bind(c runtime.Call, launch int) error {
	e, ok := c.Exec.(*Executable)
	if !ok || e.device != r.device {
		return fmt.Errorf("record: an executable of another device (%T)", c.Exec)
	}
	bound, err := nvidia.Bind(c, e, launch, func(m *memory) error {
		if m.device != r.device {
			return fmt.Errorf("memory of another device (%T)", m)
		}
		r.uses.Memory = append(r.uses.Memory, m)
		return nil
	})
	if err != nil {
		return err
	}
	shape, err := e.rendered.Shape()
	if err != nil {
		return fmt.Errorf("record kernel %s: %w", e.program.Name, err)
	}
	if shape.Grid[0] > 0 {
		r.calls = append(r.calls, &call{Call: bound, code: e.code})
	}
	return nil
}

const (
	qmdBytes  = 256
	bankAlign = 256 // 64 would do: banks of two calls share no cache line
)

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// build lays the step out, writes it, and makes local memory large enough.
func (r *Recording) build() error {
	d := r.device
	size, stack := r.layOut()
	if err := d.growLocal(stack); err != nil {
		return err
	}
	for s := range r.sets {
		words, err := r.stepWords(0, s) // their number does not depend on addresses
		if err != nil {
			return err
		}
		r.sets[s].words = size
		size += roundUp(4*len(words), bankAlign)
	}
	var err error
	if r.own, err = d.board.Alloc(int64(size), UseData); err != nil {
		return err
	}
	for s := range r.sets {
		if err := r.write(s); err != nil {
			return errors.Join(err, d.board.Free(r.own))
		}
	}
	return nil
}

// layOut gives every call its places, and returns their bytes and the largest stack. Banks
// whose parameters never change are those of all sets.
func (r *Recording) layOut() (size, stack int) {
	r.sets = make([]set, 1)
	for i, c := range r.calls {
		c.alone = len(nvidia.LaunchAt(len(r.calls), i, r.launchOf)) == 1 && (i == 0 || r.launchOf(i-1) != c.Launch)
		stack = max(stack, c.code.kernel.StackBytes)
		if c.HasVars() {
			r.sets = make([]set, mostSets)
		}
	}
	for s := range r.sets {
		for _, c := range r.calls {
			if c.bank[s] = c.bank[0]; s == 0 || c.HasVars() {
				c.bank[s] = size
				size += roundUp(len(c.code.kernel.Bank0), bankAlign)
			}
			c.qmd[s] = size
			size += qmdBytes
		}
	}
	return size, stack
}

// launchOf is the number of a call's launch.
func (r *Recording) launchOf(i int) int { return r.calls[i].Launch }

// chained reports a call that the descriptor of the one before starts: either is alone in
// its launch. Calls of one launch may overlap, and so are started one by one.
func (r *Recording) chained(i int) bool {
	return i > 0 && i < len(r.calls) && r.calls[i-1].alone && r.calls[i].alone
}

// write writes a set.
func (r *Recording) write(s int) error {
	base := r.own.Address
	for i, c := range r.calls {
		c.writeBank(r.own, s, r.device.board.Info())
		next := uint64(0)
		if r.chained(i + 1) {
			next = base + uint64(r.calls[i+1].qmd[s])
		}
		if err := r.writeQMD(c, s, next, r.own.Host[c.qmd[s]:]); err != nil {
			return fmt.Errorf("kernel %s: %w", c.Name(), err)
		}
	}
	words, err := r.stepWords(base, s)
	if err != nil {
		return err
	}
	putWords(r.own.Host[r.sets[s].words:], words)
	r.sets[s].entry, err = word.RingEntry(base+uint64(r.sets[s].words), len(words))
	return err
}

// stepWords are the words of a set of the step, whose memory begins at an address.
func (r *Recording) stepWords(base uint64, s int) ([]uint32, error) {
	b := &word.Builder{}
	fresh(b)
	for i, c := range r.calls {
		if r.chained(i) {
			continue
		}
		if i > 0 && c.Launch != r.calls[i-1].Launch {
			b.Send(word.OnCompute, word.WaitForIdle, 0)
		}
		b.Launch(base+uint64(c.qmd[s]), word.ActionPrefetchLaunch)
	}
	return b.Words, b.Err
}

// fresh begins a step: it waits for the end of what was launched before, and no cache keeps
// what the host has since written: code, descriptors, constants and data, at addresses that
// may have been used before.
func fresh(b *word.Builder) {
	b.Send(word.OnCompute, word.InvalidateShaderCaches, b.Value(word.OnCompute, word.InvalidateShaderCaches,
		word.Part{Field: word.Instruction, Value: 1}, word.Part{Field: word.Data, Value: 1}, word.Part{Field: word.Constant, Value: 1}))
	b.Send(word.OnCompute, word.InvalidateSkedCaches, 0)
}

// Words of bank 0 that the driver has to fill in for code of ptxas, by offset in bytes.
const (
	bankThreads      = 0x00 // of a block in x, y, z, then blocks
	bankSharedWindow = 0x18
	bankLocalWindow  = 0x20
	bankStackTop     = 0x28
	stackTop         = 0xfffdc0
)

// writeBank writes a call's constant bank 0.
func (c *call) writeBank(own *Buffer, s int, info Info) {
	bank := own.Host[c.bank[s] : c.bank[s]+len(c.code.kernel.Bank0)]
	copy(bank, c.code.kernel.Bank0)
	shape, _ := c.Rendered.Shape() // it was asked before
	for axis := range 3 {
		binary.LittleEndian.PutUint32(bank[bankThreads+4*axis:], shape.Block[axis])
		binary.LittleEndian.PutUint32(bank[bankThreads+12+4*axis:], shape.Grid[axis])
	}
	binary.LittleEndian.PutUint64(bank[bankSharedWindow:], info.SharedWindow)
	binary.LittleEndian.PutUint64(bank[bankLocalWindow:], info.LocalWindow)
	binary.LittleEndian.PutUint64(bank[bankStackTop:], stackTop)
	c.writeParams(own, s)
}

// writeParams writes the parameters into bank 0.
func (c *call) writeParams(own *Buffer, s int) {
	k := c.code.kernel
	for i, v := range c.Params {
		binary.LittleEndian.PutUint64(own.Host[c.bank[s]+k.ParamBase+k.Params[i].Offset:], v)
	}
	c.stale[s] = false
}

// writeQMD writes the launch descriptor of a call in a set; next is the address of the one
// that it starts when it has ended, 0 for none.
func (r *Recording) writeQMD(c *call, s int, next uint64, to []byte) error {
	k, base := c.code.kernel, c.code.image.Address
	shape, err := c.Rendered.Shape()
	if err != nil {
		return err
	}
	shared := word.SharedBytes(k.SharedBytes + int(shape.Shared))
	g := word.Grid{
		Program: base + uint64(k.Code.Offset), ProgramBytes: k.Code.Bytes, Blocks: shape.Grid, Threads: shape.Block,
		Registers: k.Registers, Barriers: k.Barriers, SharedBytes: shared, MinConfig: word.SharedConfig(shared),
		TargetConfig: targetConfig(c.Rendered, k.Registers, shared), MaxConfig: word.MaxSharedConfig,
		LocalBytes: localBytes(k.StackBytes), SassVersion: r.device.board.Info().SM/10<<4 | r.device.board.Info().SM%10,
		Banks: []word.Bank{{Number: 0, Address: r.own.Address + uint64(c.bank[s]), Bytes: len(k.Bank0)}},
		Next:  next,
	}
	for _, b := range k.Banks {
		g.Banks = append(g.Banks, word.Bank{Number: b.Number, Address: base + uint64(b.Offset), Bytes: b.Bytes})
	}
	words, err := g.QMD()
	if err != nil {
		return err
	}
	putWords(to, words)
	return nil
}

// Most of what a multiprocessor of sm_87 holds at once.
const (
	residentThreads = 1536
	residentBlocks  = 16
)

// targetConfig is the shared memory that a plan asks for, one block's at least; else that with which as many blocks fit a
// multiprocessor as its threads and registers allow.
func targetConfig(r *nvidia.Rendered, registers, shared int) int {
	if r.Carveout > 0 {
		return max(word.SharedConfig(r.Carveout<<10), word.SharedConfig(shared))
	}
	threads := r.Threads()
	blocks := max(min(residentThreads/threads, word.MostThreads(registers)/threads, residentBlocks), 1)
	return min(word.SharedConfig(blocks*shared), word.MaxSharedConfig)
}

// Run passes the step and waits for its end.
func (r *Recording) Run(ctx context.Context, vars map[string]int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.start(ctx, vars); err != nil {
		return err
	}
	return r.wait(ctx)
}

// Start queues a run after those before.
func (r *Recording) Start(ctx context.Context, vars map[string]int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.start(ctx, vars)
}

// Wait waits for all runs that were started.
func (r *Recording) Wait() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wait(context.Background())
}

func (r *Recording) start(ctx context.Context, vars map[string]int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.usable(); err != nil {
		return err
	}
	if err := r.setVars(vars); err != nil || len(r.calls) == 0 {
		return err
	}
	d := r.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	s, err := r.update(ctx)
	if err != nil {
		return d.noteFault(err, r.calls)
	}
	return d.noteFault(r.submit(s, slices.Repeat([]uint64{r.sets[s].entry}, r.times)...), r.calls)
}

// setVars fills variables in and notes which calls have to get them.
func (r *Recording) setVars(vars map[string]int64) error {
	for _, c := range r.calls {
		if err := c.SetVars(vars); err != nil {
			return fmt.Errorf("hcq: %w", err)
		}
		if c.Stale {
			c.Stale, c.stale = false, [mostSets]bool{true, true}
		}
	}
	return nil
}

// update makes the next set ready: it writes the parameters that have changed, once the
// run that used this set last has ended.
func (r *Recording) update(ctx context.Context) (s int, err error) {
	s = r.next
	waited := false
	for _, c := range r.calls {
		if !c.stale[s] {
			continue
		}
		if !waited {
			if err := r.device.queue.wait(ctx, r.sets[s].last); err != nil {
				return s, err
			}
			waited = true
		}
		c.writeParams(r.own, s)
	}
	return s, nil
}

// submit queues entries that use a set. The run after takes the other one.
func (r *Recording) submit(s int, entries ...uint64) error {
	ahead, err := r.afterCopies()
	if err != nil {
		return err
	}
	value, err := r.device.queue.submitAfter(ahead, entries...)
	if err != nil {
		return err
	}
	r.last, r.sets[s].last = value, value
	r.next = (s + 1) % len(r.sets)
	return nil
}

func (r *Recording) wait(ctx context.Context) error {
	d := r.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.last == 0 {
		return nil
	}
	if err := d.usable(); err != nil {
		return err
	}
	return d.noteFault(d.queue.wait(ctx, r.last), r.calls)
}

func (r *Recording) usable() error {
	if err := r.uses.Usable(); err != nil {
		return fmt.Errorf("hcq: %w", err)
	}
	return nil
}

// Free gives the step's memory back, once no run needs it.
func (r *Recording) Free() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uses.Ended {
		return
	}
	r.uses.Ended = true
	d := r.device
	d.mu.Lock()
	defer d.mu.Unlock()
	r.delist()
	if r.own == nil || d.closed || d.broken == nil && d.queue.wait(context.Background(), r.last) != nil {
		return // the kernel takes it back with the rest, or the GPU may still read it
	}
	d.freed = errors.Join(d.freed, d.board.Free(r.own))
	r.calls, r.uses.Memory, r.own = nil, nil, nil
}
