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
// lie in the recording's memory.
type call struct {
	nvidia.Call
	code *code
	bank int // offset of bank 0
	qmd  int // offset of the descriptor
}

// Recording is a step as words, descriptors and constant banks in memory of its own.
type Recording struct {
	device *Device
	mu     sync.Mutex
	calls  []*call
	memory []*memory
	own    *Buffer
	words  int    // offset of the step's words
	entry  uint64 // of the step
	times  int    // that a run passes the step
	last   uint64 // value of the timeline at the end of the last run
	freed  bool
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
		r.memory = append(r.memory, m)
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
	size, stack := 0, 0
	for _, c := range r.calls {
		c.bank = size
		c.qmd = c.bank + roundUp(len(c.code.kernel.Bank0), bankAlign)
		size = c.qmd + qmdBytes
		stack = max(stack, c.code.kernel.StackBytes)
	}
	r.words = size
	if err := d.growLocal(stack); err != nil {
		return err
	}
	words, err := r.stepWords(0) // their number does not depend on addresses
	if err != nil {
		return err
	}
	if r.own, err = d.board.Alloc(int64(size+4*len(words)), UseData); err != nil {
		return err
	}
	if err := r.write(); err != nil {
		return errors.Join(err, d.board.Free(r.own))
	}
	return nil
}

func (r *Recording) write() error {
	for _, c := range r.calls {
		c.writeBank(r.own, r.device.board.Info())
		if err := r.writeQMD(c); err != nil {
			return fmt.Errorf("kernel %s: %w", c.Name(), err)
		}
	}
	words, err := r.stepWords(r.own.Address)
	if err != nil {
		return err
	}
	putWords(r.own.Host[r.words:], words)
	r.entry, err = word.RingEntry(r.own.Address+uint64(r.words), len(words))
	return err
}

// stepWords are the words of the step, whose memory begins at an address.
func (r *Recording) stepWords(base uint64) ([]uint32, error) {
	b := &word.Builder{}
	// The host may have written code, descriptors, constants and data since the last
	// step, at addresses that were used before.
	b.Send(word.OnCompute, word.InvalidateSkedCaches, 0)
	b.Send(word.OnCompute, word.InvalidateShaderCaches, b.Value(word.OnCompute, word.InvalidateShaderCaches,
		word.Part{Field: word.Instruction, Value: 1}, word.Part{Field: word.Data, Value: 1}, word.Part{Field: word.Constant, Value: 1}))
	for i, c := range r.calls {
		if i > 0 && c.Launch != r.calls[i-1].Launch {
			b.Send(word.OnCompute, word.WaitForIdle, 0)
		}
		b.Launch(base+uint64(c.qmd), word.ActionPrefetchLaunch)
	}
	b.Send(word.OnCompute, word.WaitForIdle, 0) // the step may be passed again at once
	return b.Words, b.Err
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
func (c *call) writeBank(own *Buffer, info Info) {
	bank := own.Host[c.bank : c.bank+len(c.code.kernel.Bank0)]
	copy(bank, c.code.kernel.Bank0)
	shape, _ := c.Rendered.Shape() // it was asked before
	for axis := range 3 {
		binary.LittleEndian.PutUint32(bank[bankThreads+4*axis:], shape.Block[axis])
		binary.LittleEndian.PutUint32(bank[bankThreads+12+4*axis:], shape.Grid[axis])
	}
	binary.LittleEndian.PutUint64(bank[bankSharedWindow:], info.SharedWindow)
	binary.LittleEndian.PutUint64(bank[bankLocalWindow:], info.LocalWindow)
	binary.LittleEndian.PutUint64(bank[bankStackTop:], stackTop)
	c.writeParams(own)
}

// writeParams writes the parameters into bank 0.
func (c *call) writeParams(own *Buffer) {
	k := c.code.kernel
	for i, v := range c.Params {
		binary.LittleEndian.PutUint64(own.Host[c.bank+k.ParamBase+k.Params[i].Offset:], v)
	}
	c.Stale = false
}

// writeQMD writes a call's launch descriptor.
func (r *Recording) writeQMD(c *call) error {
	k, base := c.code.kernel, c.code.image.Address
	shape, err := c.Rendered.Shape()
	if err != nil {
		return err
	}
	shared := word.SharedBytes(k.SharedBytes + int(shape.Shared))
	g := word.Grid{
		Program: base + uint64(k.Code.Offset), ProgramBytes: k.Code.Bytes, Blocks: shape.Grid, Threads: shape.Block,
		Registers: k.Registers, Barriers: k.Barriers, SharedBytes: shared, MinConfig: word.SharedConfig(shared),
		TargetConfig: targetConfig(c.Rendered.Threads(), k.Registers, shared), MaxConfig: word.MaxSharedConfig,
		LocalBytes: localBytes(k.StackBytes), SassVersion: r.device.board.Info().SM/10<<4 | r.device.board.Info().SM%10,
		Banks: []word.Bank{{Number: 0, Address: r.own.Address + uint64(c.bank), Bytes: len(k.Bank0)}},
	}
	for _, b := range k.Banks {
		g.Banks = append(g.Banks, word.Bank{Number: b.Number, Address: base + uint64(b.Offset), Bytes: b.Bytes})
	}
	words, err := g.QMD()
	if err != nil {
		return err
	}
	putWords(r.own.Host[c.qmd:], words)
	return nil
}

// Most of what a multiprocessor of sm_87 holds at once.
const (
	residentThreads = 1536
	residentBlocks  = 16
)

// targetConfig is the shared memory with which as many blocks fit a multiprocessor as
// its threads and registers allow.
func targetConfig(threads, registers, shared int) int {
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
	for _, c := range r.calls {
		if err := c.SetVars(vars); err != nil {
			return fmt.Errorf("hcq: %w", err)
		}
	}
	if len(r.calls) == 0 {
		return nil
	}
	d := r.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	if err := r.update(ctx); err != nil {
		return d.noteFault(err, r.calls)
	}
	value, err := d.queue.submit(slices.Repeat([]uint64{r.entry}, r.times)...)
	if err != nil {
		return d.noteFault(err, r.calls)
	}
	r.last = value
	return nil
}

// update writes the parameters that have changed, once the run before has read them.
func (r *Recording) update(ctx context.Context) error {
	waited := false
	for _, c := range r.calls {
		if !c.Stale {
			continue
		}
		if !waited {
			if err := r.device.queue.wait(ctx, r.last); err != nil {
				return err
			}
			waited = true
		}
		c.writeParams(r.own)
	}
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

// usable reports use after free, which on a GPU would be silent.
func (r *Recording) usable() error {
	if r.freed {
		return errors.New("hcq: the recording has been freed")
	}
	if err := nvidia.Usable(r.memory); err != nil {
		return fmt.Errorf("hcq: %w", err)
	}
	return nil
}

// Free gives the step's memory back, once no run needs it.
func (r *Recording) Free() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freed {
		return
	}
	r.freed = true
	d := r.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.own == nil || d.closed || d.broken == nil && d.queue.wait(context.Background(), r.last) != nil {
		return // the kernel takes it back with the rest, or the GPU may still read it
	}
	d.freed = errors.Join(d.freed, d.board.Free(r.own))
	r.calls, r.memory, r.own = nil, nil, nil
}
