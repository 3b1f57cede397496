package emulator_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tgc/runtime/cuda/driver"
	"tgc/runtime/cuda/emulator"
)

// bench is a context with a stream and two buffers of 32 words; the second holds
// nothing.
type bench struct {
	*emulator.Driver
	t      *testing.T
	stream driver.Stream
	x, y   driver.Ptr
}

const bufferBytes = 128

func newBench(t *testing.T, options emulator.Options) *bench {
	t.Helper()
	d, err := emulator.New(options)
	b := &bench{Driver: d, t: t}
	b.check(err)
	context, err := d.ContextCreate(0)
	b.check(err)
	t.Cleanup(func() { b.check(d.ContextDestroy(context)) })
	b.stream, err = d.StreamCreate()
	b.check(err)
	b.x, err = d.MemAlloc(bufferBytes)
	b.check(err)
	b.y, err = d.MemAlloc(bufferBytes)
	b.check(err)
	b.check(d.Fill(b.x, 1, bufferBytes, b.stream))
	return b
}

func (b *bench) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// kernel is a launch of a body in which %x and %y are the buffers and %t is the
// thread's offset in them.
func (b *bench) kernel(name, body string) *driver.Kernel {
	b.t.Helper()
	text := fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.visible .entry %s(.param .u64 px, .param .u64 py) {
	.reg .pred %%p<4>;
	.reg .b32 %%t, %%r<8>;
	.reg .b64 %%x, %%y, %%d<8>;
	ld.param.u64 %%x, [px];
	ld.param.u64 %%y, [py];
	mov.u32 %%t, %%tid.x;
	mul.wide.u32 %%d0, %%t, 4;
	add.u64 %%d1, %%x, %%d0;
	add.u64 %%d2, %%y, %%d0;
%s
	ret;
}
`, name, body)
	image, log, err := b.Link(name, text)
	if err != nil {
		b.t.Fatal(err, log)
	}
	m, _, err := b.ModuleLoad(image)
	b.check(err)
	f, err := b.ModuleFunction(m, name)
	b.check(err)
	return &driver.Kernel{Func: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: []uint64{uint64(b.x), uint64(b.y)}}
}

// run replays kernels in a chain whose edges are all of one kind.
func (b *bench) run(kind driver.Edge, kernels ...*driver.Kernel) error {
	b.t.Helper()
	g, err := b.GraphCreate()
	b.check(err)
	var nodes []driver.Node
	for _, k := range kernels {
		n, err := b.GraphAddKernel(g, nil, k)
		b.check(err)
		nodes = append(nodes, n)
	}
	b.check(b.GraphAddEdges(g, nodes[:len(nodes)-1], nodes[1:], kind))
	e, err := b.GraphInstantiate(g)
	b.check(err)
	b.check(b.GraphLaunch(e, b.stream))
	return b.StreamSynchronize(b.stream)
}

func (b *bench) words(p driver.Ptr) []uint32 {
	b.t.Helper()
	raw, err := b.HostAlloc(bufferBytes)
	b.check(err)
	b.check(b.CopyToHost(raw, p, b.stream))
	b.check(b.StreamSynchronize(b.stream))
	out := make([]uint32, bufferBytes/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return out
}

const (
	allow = "\tgriddepcontrol.launch_dependents;\n"
	await = "\tgriddepcontrol.wait;\n"
	// copyUp is y = x + 1, copyBack is x = y + 1.
	copyUp   = "\tld.global.b32 %r0, [%d1];\n\tadd.u32 %r0, %r0, 1;\n\tst.global.b32 [%d2], %r0;\n"
	copyBack = "\tld.global.b32 %r0, [%d2];\n\tadd.u32 %r0, %r0, 1;\n\tst.global.b32 [%d1], %r0;\n"
)

// A chain with early edges whose kernels wait gives what one with full edges
// gives, whatever the seed.
func TestChain(t *testing.T) {
	for _, kind := range []driver.Edge{driver.FullEdge, driver.ProgrammaticEdge} {
		for seed := range uint64(10) {
			b := newBench(t, emulator.Options{Seed: seed})
			up, back := b.kernel("up", allow+await+copyUp), b.kernel("back", allow+await+copyBack)
			b.check(b.run(kind, up, back, up, back, up))
			if got := b.words(b.y); slices.Min(got) != 0x01010106 || slices.Max(got) != 0x01010106 {
				t.Fatalf("kind %d, seed %d: %x", kind, seed, got)
			}
		}
	}
}

// What a kernel does ahead of its wait is an error where those before it could
// see or make the difference.
func TestAheadOfWait(t *testing.T) {
	for name, c := range map[string]struct{ first, second, want string }{
		"reads what is written": {allow + copyUp, copyBack + await, "ahead of griddepcontrol.wait"},
		"writes":                {allow, "\tst.global.b32 [%d2], %t;\n" + await, "a store ahead of griddepcontrol.wait"},
		"does not wait":         {allow + copyUp, "", "ends without griddepcontrol.wait"},
		"reads what nobody writes": {allow + "\tst.global.b32 [%d2], %t;\n",
			"\tld.global.b32 %r0, [%d1];\n" + await + "\tst.global.b32 [%d2], %r0;\n", ""},
	} {
		for seed := range uint64(5) {
			b := newBench(t, emulator.Options{Seed: seed})
			b.check(b.Fill(b.y, 0, bufferBytes, b.stream))
			err := b.run(driver.ProgrammaticEdge, b.kernel("first", c.first), b.kernel("second", allow+c.second))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, seed %d: %v, want %q", name, seed, err, c.want)
			}
		}
	}
}

// An early read is found out also when the write comes later.
func TestReadThenWritten(t *testing.T) {
	b := newBench(t, emulator.Options{})
	b.check(b.Fill(b.y, 0, bufferBytes, b.stream))
	// The first kernel lets the second start, and goes on to write.
	err := b.run(driver.ProgrammaticEdge, b.kernel("first", allow+await+copyUp), b.kernel("second", copyBack+await))
	if err == nil || !strings.Contains(err.Error(), "first") && !strings.Contains(err.Error(), "second") || !strings.Contains(err.Error(), "ahead of griddepcontrol.wait") {
		t.Error(err)
	}
}

// A fault says where it is, and ends the context.
func TestFault(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		code driver.Code
		want string
	}{
		"outside":    {"\tst.global.b32 [%d1 + 1024], %t;", driver.IllegalAddress, "past the start of an allocation of 128"},
		"behind":     {"\tld.global.b32 %r0, [%d1 + 4];", driver.IllegalAddress, "past the start of an allocation of 128"},
		"misaligned": {"\tld.global.b32 %r0, [%d1 + 2];", driver.MisalignedAddress, "is not aligned to 4"},
		"undefined":  {"\tld.global.b32 %r0, [%d2];\n\tst.global.b32 [%d1], %r0;", driver.LaunchFailed, "are not defined"},
	} {
		b := newBench(t, emulator.Options{})
		b.check(b.Launch(b.kernel("good", copyUp[:0]), b.stream))
		b.check(b.Launch(b.kernel("bad", c.body), b.stream))
		err := b.StreamSynchronize(b.stream)
		var e *driver.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Kernel != "bad" || !strings.Contains(err.Error(), c.want) || !driver.Sticky(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := b.MemAlloc(1); driver.CodeOf(err) != c.code {
			t.Errorf("%s: the context goes on: %v", name, err)
		}
	}
}

// Poisoned memory is undefined until it is written.
func TestPoison(t *testing.T) {
	b := newBench(t, emulator.Options{})
	b.check(b.Poison(b.x, bufferBytes, b.stream))
	b.check(b.Fill(b.x, 0, bufferBytes-4, b.stream))
	b.check(b.Launch(b.kernel("reads", copyUp), b.stream))
	if err := b.StreamSynchronize(b.stream); err == nil || !strings.Contains(err.Error(), "thread 31") || !strings.Contains(err.Error(), "are not defined") {
		t.Error(err)
	}
}

// Memory has a size; what does not fit is refused with sizes.
func TestOutOfMemory(t *testing.T) {
	b := newBench(t, emulator.Options{MemoryBytes: 1 << 20})
	_, err := b.MemAlloc(1 << 20)
	if driver.CodeOf(err) != driver.OutOfMemory || !strings.Contains(err.Error(), "1048576 bytes asked for, 1048320 free") {
		t.Error(err)
	}
	p, err := b.MemAlloc(1<<20 - 256)
	b.check(err)
	b.check(b.MemFree(p))
	if free, total, err := b.MemInfo(); err != nil || free != 1<<20-256 || total != 1<<20 {
		t.Error(free, total, err)
	}
}

// A queue does nothing until somebody waits for it.
func TestLazy(t *testing.T) {
	b := newBench(t, emulator.Options{})
	pinned, err := b.HostAlloc(4)
	b.check(err)
	b.check(b.CopyToDevice(b.x, pinned, b.stream))
	copy(pinned, "late")
	b.check(b.StreamSynchronize(b.stream))
	if got := b.words(b.x)[0]; got != binary.LittleEndian.Uint32([]byte("late")) {
		t.Errorf("%#x: the copy did not wait", got)
	}
}

// Stale and foreign handles are refused.
func TestHandles(t *testing.T) {
	b := newBench(t, emulator.Options{})
	k := b.kernel("k", copyUp)
	g, err := b.GraphCreate()
	b.check(err)
	n, err := b.GraphAddKernel(g, nil, k)
	b.check(err)
	m, err := b.GraphAddEmpty(g, []driver.Node{n})
	b.check(err)
	b.check(b.GraphAddEdges(g, []driver.Node{m}, []driver.Node{n}, driver.FullEdge))
	_, circle := b.GraphInstantiate(g)
	_, node := b.GraphAddEmpty(g, []driver.Node{n + 1})
	early := b.GraphAddEdges(g, []driver.Node{n}, []driver.Node{m}, driver.ProgrammaticEdge)
	_, function := b.ModuleFunction(driver.Module(n), "k")
	big := *k
	big.Block[0] = 2048
	for what, err := range map[string]error{
		"circle": circle, "node": node, "early": early, "function": function, "threads": b.Launch(&big, b.stream),
		"stream": b.StreamSynchronize(b.stream + 1), "event": b.EventRecord(1, b.stream), "free": b.MemFree(b.x + 1),
		"host": b.HostFree([]byte{1}), "instance": b.GraphLaunch(1, b.stream),
	} {
		if err == nil {
			t.Errorf("%s: not refused", what)
		}
	}
}
