package hcq_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tgc/internal/cudatools"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime"
	"tgc/runtime/hcq"
	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/tegra"
	"tgc/runtime/nvidia"
)

// Mistakes that others made on boards, and what this runtime does about each.

// addProgram is y[i] = x[i] + n, one element a block.
func addProgram(t testing.TB, name string, blocks int) *program.Program {
	t.Helper()
	p, err := program.Parse(fmt.Sprintf(`program %q
param %%0:*f32 buffer slot 0 name "x" align 4 bytes %d read
param %%1:*f32 buffer slot 1 name "y" align 4 bytes %d read write
param %%2:i64 var name "n"
grid %d
gridloop %%3:i64 {
  %%4:*f32 = ptradd %%0 %%3
  %%5:f32 = load %%4 align 4
  %%6:f32 = cast %%2
  %%7:f32 = add %%5 %%6
  %%8:*f32 = ptradd %%1 %%3
  store %%8 %%7 align 4
}
`, name, 4*blocks, 4*blocks, blocks))
	check(t, err)
	return p
}

// rigOf is a device on a port.
func rigOf(t testing.TB, p *port, ring int, options hcq.Options) *hcq.Device {
	t.Helper()
	if cudatools.FromEnvironment().PtxasPath == "" {
		t.Skip("no ptxas")
	}
	board, err := tegra.Open(p, tegra.Options{Entries: ring})
	check(t, err)
	options.NoCache, options.Loaded = true, p.Know
	d, err := hcq.New(board, options)
	check(t, err)
	t.Cleanup(func() {
		check(t, d.Close())
		if live := p.Live(); live != "" {
			t.Errorf("left over: %s", live)
		}
	})
	return d
}

func quiet(t testing.TB, p *port) {
	t.Helper()
	for _, f := range p.Findings() {
		t.Errorf("found: %s", f)
	}
}

func load(t testing.TB, d *hcq.Device, p *program.Program) runtime.Executable {
	t.Helper()
	list, err := d.Load(t.Context(), []*program.Program{opt.Expand(p, d.Target())})
	check(t, err)
	return list[0]
}

func alloc(t testing.TB, d *hcq.Device, n int64) runtime.Memory {
	t.Helper()
	m, err := d.Alloc(t.Context(), n)
	check(t, err)
	t.Cleanup(m.Free)
	return m
}

// step records calls x -> y, one launch each.
func step(t testing.TB, d *hcq.Device, e runtime.Executable, pairs ...[2]runtime.Memory) *hcq.Recording {
	t.Helper()
	var launches []runtime.Launch
	for _, p := range pairs {
		launches = append(launches, runtime.Launch{Calls: []runtime.Call{{Exec: e, Slots: map[int]runtime.View{0: {Memory: p[0]}, 1: {Memory: p[1]}}}}})
	}
	r, err := d.Record(t.Context(), launches)
	check(t, err)
	t.Cleanup(r.Free)
	return r.(*hcq.Recording)
}

func first(t testing.TB, m runtime.Memory) float32 {
	t.Helper()
	b := make([]byte, 4)
	check(t, m.Read(t.Context(), 0, b))
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

// One recorded kernel, run 200 times, adds 200 times; the value that is added changes,
// and no run sees that of another. (A runtime that wrote over descriptors lost two.)
func TestIncrements(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{Delay: 100 * time.Microsecond})}
	d := rigOf(t, p, 8, hcq.Options{})
	x := alloc(t, d, 4)
	r := step(t, d, load(t, d, addProgram(t, "add", 1)), [2]runtime.Memory{x, x})
	sum := float32(0)
	for i := range int64(200) {
		check(t, r.Start(t.Context(), map[string]int64{"n": i % 3}))
		sum += float32(i % 3)
	}
	check(t, r.Wait())
	if got := first(t, x); got != sum {
		t.Errorf("%g, want %g", got, sum)
	}
	repeated, err := r.Repeat(t.Context(), 25)
	check(t, err)
	defer repeated.Free()
	check(t, repeated.Run(t.Context(), map[string]int64{"n": 2}))
	if got := first(t, x); got != sum+50 {
		t.Errorf("25 times in one run: %g, want %g", got, sum+50)
	}
	quiet(t, p)
}

// A step that is repeated is as many entries over the same words, and one doorbell.
func TestRepeatRingsOnce(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	d := rigOf(t, p, 64, hcq.Options{})
	x := alloc(t, d, 4)
	once := step(t, d, load(t, d, addProgram(t, "add", 1)), [2]runtime.Memory{x, x})
	repeated, err := once.Repeat(t.Context(), 25)
	check(t, err)
	defer repeated.Free()
	before := p.Counts()
	check(t, repeated.Run(t.Context(), map[string]int64{"n": 2}))
	after := p.Counts()
	if rings, launches := after[emu.OnDoorbell]-before[emu.OnDoorbell], after[emu.OnLaunch]-before[emu.OnLaunch]; launches != 25 || rings != 1 {
		t.Errorf("%d doorbells for %d launches, want 1 for 25", rings, launches)
	}
	if a, b := len(once.Words()), len(repeated.(*hcq.Recording).Words()); a != b {
		t.Errorf("the repeated step has %d words, the step %d", b, a)
	}
	again, err := repeated.(*hcq.Recording).Repeat(t.Context(), 2)
	check(t, err)
	defer again.Free()
	before = p.Counts()
	check(t, again.Run(t.Context(), map[string]int64{"n": 2}))
	if launches := p.Counts()[emu.OnLaunch] - before[emu.OnLaunch]; launches != 50 {
		t.Errorf("%d launches of the repeated step twice, want 50", launches)
	}
	quiet(t, p)
}

// A chain of launches, each of which needs what the one before wrote; the calls of one
// launch may overlap.
func TestOrder(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{Seed: 5})}
	d := rigOf(t, p, 0, hcq.Options{})
	const blocks = 300
	e := load(t, d, addProgram(t, "add", blocks))
	x := alloc(t, d, 4*blocks)
	var pairs [][2]runtime.Memory
	for range 12 {
		y := alloc(t, d, 4*blocks)
		pairs = append(pairs, [2]runtime.Memory{x, y})
		x = y
	}
	r := step(t, d, e, pairs...)
	check(t, r.Run(t.Context(), map[string]int64{"n": 1}))
	b := make([]byte, 4*blocks)
	check(t, x.Read(t.Context(), 0, b))
	for i := range blocks {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])); got != 12 {
			t.Fatalf("[%d] = %g, want 12", i, got)
		}
	}
	times, err := r.Profile(t.Context(), map[string]int64{"n": 1})
	check(t, err)
	if len(times) != 12 || times[3] <= 0 {
		t.Errorf("times %v", times)
	}
	if took, err := r.Chain(t.Context(), map[string]int64{"n": 0}, []int{0, 1}, 3); err != nil || took <= 0 {
		t.Errorf("chain: %v, %v", took, err)
	}
	quiet(t, p)
}

// 10,000 submissions pass small rings, by a front end that is late: as many are under way
// as there is room for, in the ring and in the words that signal.
func TestSmallRings(t *testing.T) {
	for entries, delay := range map[int]time.Duration{4: 50 * time.Microsecond, 512: 10 * time.Millisecond} {
		p := &port{Machine: emu.New(emu.Options{Delay: delay})}
		d := rigOf(t, p, entries, hcq.Options{})
		x := alloc(t, d, 4)
		r := step(t, d, load(t, d, addProgram(t, "add", 1)), [2]runtime.Memory{x, x})
		for range 5000 {
			check(t, r.Start(t.Context(), map[string]int64{"n": 1}))
		}
		if got := first(t, x); got != 5000 { // reading waits
			t.Errorf("%d entries: %g, want 5000", entries, got)
		}
		check(t, r.Wait())
		quiet(t, p)
	}
}

// Memory of the host's for steps is used again, with other kernels and other descriptors
// in it: no cache keeps what was there.
func TestRecycled(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	d := rigOf(t, p, 0, hcq.Options{})
	x := alloc(t, d, 4*64)
	one, many := load(t, d, addProgram(t, "one", 1)), load(t, d, addProgram(t, "many", 64))
	want := float32(0)
	for i := range 300 {
		e := []runtime.Executable{one, many}[i%2]
		launch := runtime.Launch{Calls: []runtime.Call{{Exec: e, Slots: map[int]runtime.View{0: {Memory: x}, 1: {Memory: x}}}}}
		r, err := d.Record(t.Context(), []runtime.Launch{launch})
		check(t, err)
		check(t, r.Run(t.Context(), map[string]int64{"n": int64(i)}))
		r.Free()
		want += float32(i)
	}
	if got := first(t, x); got != want {
		t.Errorf("%g, want %g", got, want)
	}
	before := d.Usage()
	for i := range 100_000 {
		m, err := d.Alloc(t.Context(), int64(1+i*7919%10_000))
		check(t, err)
		m.Free()
	}
	if after := d.Usage(); after != before {
		t.Errorf("%+v after 100,000 allocations, before %+v", after, before)
	}
	quiet(t, p)
}

// fillSpace takes addresses until the next one would come from the block that has the
// windows in it.
func fillSpace(t *testing.T, p *port) {
	t.Helper()
	reserve := func(pages uint64) uint64 {
		b := make([]byte, 32)
		binary.LittleEndian.PutUint64(b, pages)
		binary.LittleEndian.PutUint32(b[8:], 4096)
		check(t, p.Machine.Ioctl(p.space, reserveVA, b, nil, -1))
		return binary.LittleEndian.Uint64(b[16:])
	}
	for pages := uint64(512 << 20 / 4096); pages > 0; pages /= 2 {
		at := reserve(pages)
		for ; at >= 0xff00000000; at = reserve(pages) {
		}
		b := make([]byte, 32)
		binary.LittleEndian.PutUint64(b, at)
		check(t, p.Machine.Ioctl(p.space, freeVA, b, nil, -1))
	}
}

// eighthBuffer is where the eighth buffer of 512 MiB lands without reserved ranges, and
// smaller ones in its place.
const eighthBuffer = 0xfe00200000

// Without the reserved ranges the allocator comes to the windows in the end, and a store
// there is none to global memory. With them it passes by.
func TestWindows(t *testing.T) {
	for name, reserved := range map[string]bool{"reserved": true, "not reserved": false} {
		t.Run(name, func(t *testing.T) {
			p := &port{Machine: emu.New(emu.Options{})}
			p.before = func(_ string, number uint32, argument []byte) error {
				if number == reserveVA && !reserved {
					return errSkip
				}
				return nil
			}
			d := rigOf(t, p, 0, hcq.Options{})
			e := load(t, d, addProgram(t, "add", 1))
			fillSpace(t, p)
			x := alloc(t, d, 4)
			r := step(t, d, e, [2]runtime.Memory{x, x})
			err := r.Run(t.Context(), map[string]int64{"n": 1})
			if address := x.(nvidia.Memory).Address(); reserved == (address == eighthBuffer) {
				t.Errorf("the memory is at %#x", address)
			}
			if reserved {
				check(t, err)
				return
			}
			var fault *hcq.BoardFault
			var kernel runtime.KernelFault
			if !errors.As(err, &fault) || fault.WarpESR != 0x10 || !errors.As(err, &kernel) || kernel.FaultedKernel() != "add" || !strings.Contains(err.Error(), "0xfe") {
				t.Fatalf("%v, want an access in a window, by the kernel, with its addresses", err)
			}
			for _, again := range []error{r.Run(t.Context(), map[string]int64{"n": 1}), x.Write(t.Context(), 0, make([]byte, 4))} {
				if !errors.Is(again, nvidia.ErrBroken) || !errors.As(again, &fault) {
					t.Errorf("after a fault: %v", again)
				}
			}
		})
	}
}

// Large memory is aligned to 2 MiB, all of it is asked for as zeros, and it is zero where
// the kernel knows no such flag.
func TestMemory(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	var aligned []uint32
	p.before = func(_ string, number uint32, argument []byte) error {
		if number == allocMemory {
			flags := binary.LittleEndian.Uint32(argument[8:])
			if flags&(1<<5) == 0 || flags>>16 == 0 {
				t.Errorf("memory with flags %#x", flags)
			}
			binary.LittleEndian.PutUint32(argument[8:], flags&^(1<<5))
			aligned = append(aligned, binary.LittleEndian.Uint32(argument[12:]))
		}
		return nil
	}
	d := rigOf(t, p, 0, hcq.Options{})
	m := alloc(t, d, 9<<20)
	if last := aligned[len(aligned)-1]; last != 2<<20 || aligned[0] != 4096 {
		t.Errorf("alignments %v", aligned)
	}
	b := make([]byte, 9<<20)
	check(t, m.Read(t.Context(), 0, b))
	for i, v := range b {
		if v != 0 {
			t.Fatalf("byte %d is %#x", i, v)
		}
	}
	alloc(t, d, 100) // keeps its block
	for range 2 {
		m, err := d.Alloc(t.Context(), 5000)
		check(t, err)
		b := make([]byte, 5000)
		check(t, m.Read(t.Context(), 0, b))
		if i := bytes.IndexByte(b, 7); i >= 0 {
			t.Fatalf("byte %d is what the memory held before", i)
		}
		check(t, m.Write(t.Context(), 0, bytes.Repeat([]byte{7}, 5000)))
		m.Free()
	}
	if _, err := d.Alloc(t.Context(), 64<<30); !errors.Is(err, nvidia.ErrOutOfMemory) {
		t.Errorf("64 GiB: %v", err)
	}
	for _, f := range p.Findings() {
		if f.Kind != "stale" && f.Code != "ENOMEM" { // USERD is cleared by the host here
			t.Errorf("found: %s", f)
		}
	}
}

// A doorbell that is lost ends in an error that says where the GPU stands; so do later
// calls, and the device closes.
func TestLostDoorbell(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	d := rigOf(t, p, 8, hcq.Options{Timeout: 20 * time.Millisecond})
	x := alloc(t, d, 4)
	r := step(t, d, load(t, d, addProgram(t, "add", 1)), [2]runtime.Memory{x, x})
	p.deaf = true
	if err := r.Run(t.Context(), map[string]int64{"n": 1}); !errors.Is(err, hcq.ErrTimeout) || !strings.Contains(err.Error(), "ring entry") {
		t.Errorf("%v, want %v", err, hcq.ErrTimeout)
	}
	if err := r.Run(t.Context(), map[string]int64{"n": 1}); !errors.Is(err, nvidia.ErrBroken) {
		t.Errorf("%v, want %v", err, nvidia.ErrBroken)
	}
}

// source is bytes that a test makes; failing from some place on.
type source struct {
	size, fails int64
	asked       int
}

func (s *source) Size() int64 { return s.size }

func (s *source) ReadAt(b []byte, at int64) (int, error) {
	s.asked++
	for i := range b {
		if at+int64(i) == s.fails {
			return i, errors.New("no more")
		}
		b[i] = byte((at + int64(i)) * 31 >> 3)
	}
	return len(b), nil
}

// What a source has it writes straight into the mapping, in pieces; what fails leaves nothing.
func TestImportSource(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	d := rigOf(t, p, 0, hcq.Options{})
	const size = 40 << 20
	whole := &source{size: size, fails: -1}
	m, err := d.ImportSource(t.Context(), whole)
	check(t, err)
	got := make([]byte, 1<<20)
	check(t, m.Read(t.Context(), size-1<<20, got))
	for i, v := range got {
		if want := byte((size - 1<<20 + i) * 31 >> 3); v != want {
			t.Fatalf("byte %d is %#x, want %#x", i, v, want)
		}
	}
	if whole.asked != 3 { // 16 MiB at once
		t.Errorf("the source was asked %d times", whole.asked)
	}
	if err := m.Write(t.Context(), 0, []byte{1}); err == nil {
		t.Error("imported memory is written")
	}
	m.Free()
	before := d.Usage()
	if _, err := d.ImportSource(t.Context(), &source{size: size, fails: 20 << 20}); err == nil || !strings.Contains(err.Error(), "no more") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.ImportSource(ctx, whole); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if after := d.Usage(); after != before {
		t.Errorf("%+v is left, was %+v", after, before)
	}
	quiet(t, p)
}
