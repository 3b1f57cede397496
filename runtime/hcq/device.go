package hcq

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"tgc/internal/cachefile"
	"tgc/runtime/hcq/cubin"
	"tgc/runtime/hcq/word"
	"tgc/runtime/nvidia"
	"tgc/target"
)

// Options configure New.
type Options struct {
	Name     string // of the device
	CacheDir string // of machine code; empty means cachefile.DefaultDir
	NoCache  bool
	// CUDAPath is a CUDA toolkit, or a folder that has its tools; empty means
	// $TGC_CUDA_PATH.
	CUDAPath string
	// Assembler is ptxas or nvjitlink; empty for the first that is there.
	Assembler string
	// Loaded, where not nil, is told of all machine code with the text it was made of: an
	// emulator runs that.
	Loaded func(cubin []byte, text string) error
	// Placed, where not nil, is told where the code of a kernel lies and what it needs.
	Placed func(address uint64, k *cubin.Kernel)
	// BlockBytes of memory are taken from the board at once; 0 for nvidia.BlockBytes.
	BlockBytes int64
	// Timeout is how long the GPU may stand still; 0 for 30 s.
	Timeout time.Duration
	// Warn is told what is legal and slow: a kernel that spills registers.
	Warn func(message string)
}

const defaultTimeout = 30 * time.Second

// Device is one GPU with its queue.
type Device struct {
	options Options
	board   Board
	desc    *target.Desc
	cache   *cachefile.Cache
	machine nvidia.Assembler // makes machine code
	loader  nvidia.Loader[*code]

	mu      sync.Mutex // of all below
	queue   *queue     // of compute
	copies  *queue
	staging *Buffer // of uploads: a piece for each slot of copies; nil before the first
	arena   *nvidia.Arena[uint64]
	blocks  map[uint64]*Buffer // of the arena, by address
	images  []*code            // where a fault's address is looked up
	local   *Buffer            // memory of threads
	perWarp int                // bytes of local memory a warp, for which local is large enough
	broken  error              // the first fault: the answer to every later call
	freed   error              // what went wrong when memory was given back: Close says it
	closed  bool
	// queued has all copies made by the queue: the CPU makes none.
	queued bool
}

// New makes a device of a board, which it closes in the end.
func New(board Board, options Options) (*Device, error) {
	if options.CUDAPath == "" {
		options.CUDAPath = os.Getenv("TGC_CUDA_PATH")
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	if options.BlockBytes == 0 {
		options.BlockBytes = nvidia.BlockBytes
	}
	d := &Device{options: options, board: board, blocks: make(map[uint64]*Buffer)}
	if err := d.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.Name(), err), d.Close())
	}
	return d, nil
}

func (d *Device) open() (err error) {
	info := d.board.Info()
	if d.desc, err = target.ForGPU(info.SM, false); err != nil {
		return fmt.Errorf("%s: %w", info.Chip, err)
	}
	d.desc.Cluster = 0 // no launch descriptor that is known here asks for clusters
	d.desc.Cost.Workers = info.GPCs * info.TPCsPerGPC * info.SMsPerTPC
	if !d.options.NoCache {
		d.cache = cachefile.Open(d.options.CacheDir, cachefile.MaxBytes(cachefile.FolderBytes))
	}
	d.loader.Cache, d.loader.Make = d.cache, d.place
	d.loader.Assemble = func(ctx context.Context, r *nvidia.Rendered) ([]byte, string, error) {
		return d.machine.Assemble(ctx, r.Text)
	}
	d.arena = nvidia.NewArena(d.take, d.give, d.options.BlockBytes, false)
	if d.queue, err = newQueue(d.board, Compute, d.options.Timeout); err != nil {
		return err
	}
	if d.copies, err = newQueue(d.board, Copies, d.options.Timeout); err != nil {
		return err
	}
	d.queue.other, d.copies.other = d.copies, d.queue
	if err := d.setUp(); err != nil {
		return err
	}
	d.machine, err = nvidia.FindAssembler(d.options.Assembler, d.options.CUDAPath, nvidia.Architecture(d.desc))
	return err
}

// setUp sends what channels need once: their class, and where the windows are.
func (d *Device) setUp() error {
	info := d.board.Info()
	b := &word.Builder{}
	b.Send(word.OnCompute, word.SetObject, b.Value(word.OnCompute, word.SetObject, word.Part{Field: word.ClassID, Value: uint64(info.ComputeClass)}))
	b.Send(word.OnCompute, word.SharedMemoryWindow, word.High(info.SharedWindow), word.Low(info.SharedWindow))
	b.Send(word.OnCompute, word.LocalMemoryWindow, word.High(info.LocalWindow), word.Low(info.LocalWindow))
	if err := d.sendOnce(b); err != nil {
		return err
	}
	c := &word.Builder{}
	c.Send(word.OnCopy, word.SetObject, c.Value(word.OnCopy, word.SetObject, word.Part{Field: word.NVClass, Value: uint64(info.CopyClass)}))
	if c.Err != nil {
		return c.Err
	}
	if _, err := d.copies.submitAfter(c.Words); err != nil {
		return err
	}
	return d.copies.wait(context.Background(), d.copies.last)
}

// sendOnce submits words that are not needed again and waits for their end.
func (d *Device) sendOnce(b *word.Builder) error {
	if b.Err != nil {
		return b.Err
	}
	m, err := d.board.Alloc(int64(4*len(b.Words)), UseData)
	if err != nil {
		return err
	}
	putWords(m.Host, b.Words)
	entry, err := word.RingEntry(m.Address, len(b.Words))
	if err == nil {
		_, err = d.queue.submit(entry)
	}
	if err == nil {
		err = d.queue.wait(context.Background(), d.queue.last)
	}
	if err != nil {
		return err // the GPU may still read the words
	}
	return d.board.Free(m)
}

// Name is Options.Name, or that of the chip.
func (d *Device) Name() string {
	if d.options.Name != "" {
		return d.options.Name
	}
	return d.board.Info().Chip
}

// Target describes the GPU's architecture.
func (d *Device) Target() *target.Desc { return d.desc }

// Info is what the board says.
func (d *Device) Info() Info { return d.board.Info() }

// usable reports a device that is closed or that a fault has ended. The lock is held.
func (d *Device) usable() error {
	switch {
	case d.closed:
		return fmt.Errorf("%s: the device is closed", d.Name())
	case d.broken != nil:
		return &nvidia.BrokenError{Device: d.Name(), Cause: d.broken}
	}
	return nil
}

// idle waits until all that was submitted has ended. The lock is held.
func (d *Device) idle(ctx context.Context) error {
	if err := d.usable(); err != nil {
		return err
	}
	return d.noteFault(d.ended(ctx), nil)
}

// ended waits for the last value of both timelines.
func (d *Device) ended(ctx context.Context) error {
	for _, q := range []*queue{d.queue, d.copies} {
		if q == nil { // the device has not been opened so far
			continue
		}
		if err := q.wait(ctx, q.last); err != nil {
			return err
		}
	}
	return nil
}

// noteFault keeps the first error that ends the device. Calls are those that ran.
func (d *Device) noteFault(err error, calls []*call) error {
	var fault *BoardFault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		err = d.explain(fault, calls)
	case !errors.Is(err, ErrTimeout):
		return err
	}
	if d.broken == nil {
		d.broken = err
	}
	return err
}

// explain names the kernel of a fault: the one whose code the multiprocessor ran.
func (d *Device) explain(fault *BoardFault, calls []*call) error {
	f := &nvidia.FaultError{Runtime: "hcq", Err: fault}
	if !d.copies.done(d.copies.last) {
		if fault.WarpESR == 0 && len(calls) == 0 {
			return fmt.Errorf("hcq: a copy of memory: %w", fault)
		}
		f.Hint = "or it was a copy of memory, of which one was under way"
	}
	var at *code
	for _, c := range d.images {
		if fault.PC >= c.image.Address && fault.PC < c.image.Address+uint64(len(c.image.Host)) {
			at = c
		}
	}
	for _, c := range calls {
		if at != nil && c.code == at {
			return c.Fault("hcq", fault)
		}
		f.Suspects = append(f.Suspects, c.Name())
	}
	if at != nil {
		f.Kernel = at.kernel.Name
	}
	return f
}

// Close gives everything back. Nothing of the device may be in use.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	var errs []error
	if d.broken == nil {
		errs = append(errs, d.ended(context.Background()))
	}
	d.closed = true
	for _, c := range d.images {
		errs = append(errs, d.board.Free(c.image))
	}
	for _, m := range []*Buffer{d.local, d.staging} {
		if m != nil {
			errs = append(errs, d.board.Free(m))
		}
	}
	if d.arena != nil {
		errs = append(errs, d.arena.Close())
	}
	for _, q := range []*queue{d.queue, d.copies} {
		if q != nil {
			errs = append(errs, q.close())
		}
	}
	errs = append(errs, d.freed, d.board.Close(), d.cache.Close())
	return errors.Join(errs...)
}
