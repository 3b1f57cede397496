package hcq_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/hcq"
	"tgc/runtime/hcq/cubin"
	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/word"
)

// copyProgram is y[i] = x[i] + 1, one element a block, without a variable.
func copyProgram(t testing.TB, blocks int) *program.Program {
	t.Helper()
	p, err := program.Parse(fmt.Sprintf(`program "copy"
param %%0:*f32 buffer slot 0 name "x" align 4 bytes %d read
param %%1:*f32 buffer slot 1 name "y" align 4 bytes %d read write
grid %d
gridloop %%3:i64 {
  %%4:*f32 = ptradd %%0 %%3
  %%5:f32 = load %%4 align 4
  %%6:f32 = const 0x1p0
  %%7:f32 = add %%5 %%6
  %%8:*f32 = ptradd %%1 %%3
  store %%8 %%7 align 4
}
`, 4*blocks, 4*blocks, blocks))
	check(t, err)
	return p
}

// pair is a call from one memory to another.
func pair(e runtime.Executable, x, y runtime.Memory) runtime.Call {
	return runtime.Call{Exec: e, Slots: map[int]runtime.View{0: {Memory: x}, 1: {Memory: y}}}
}

func record(t testing.TB, d *hcq.Device, launches ...[]runtime.Call) *hcq.Recording {
	t.Helper()
	var list []runtime.Launch
	for _, calls := range launches {
		list = append(list, runtime.Launch{Calls: calls})
	}
	r, err := d.Record(t.Context(), list)
	check(t, err)
	t.Cleanup(r.Free)
	return r.(*hcq.Recording)
}

// A launch of one call is started by the descriptor of the one before, where that is one
// call too; else the front end waits. The calls of one launch have nothing between them.
func TestChains(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{Seed: 2})}
	d := rigOf(t, p, 0, hcq.Options{})
	e := load(t, d, copyProgram(t, 1))
	var m []runtime.Memory
	for range 8 {
		m = append(m, alloc(t, d, 4))
	}
	r := record(t, d,
		[]runtime.Call{pair(e, m[0], m[1])}, []runtime.Call{pair(e, m[1], m[2])}, // a chain of two
		[]runtime.Call{pair(e, m[2], m[3]), pair(e, m[2], m[4])},                                                      // together, after a wait
		[]runtime.Call{pair(e, m[4], m[5])}, []runtime.Call{pair(e, m[5], m[6])}, []runtime.Call{pair(e, m[6], m[7])}, // a chain of three
	)
	check(t, r.Run(t.Context(), nil))
	if got := first(t, m[7]); got != 6 {
		t.Errorf("%g, want 6", got)
	}
	lines, err := word.Decode(r.Words())
	check(t, err)
	var names []string
	for _, l := range lines {
		names = append(names, l.Name)
	}
	launch := []string{"SEND_PCAS_A", "SEND_SIGNALING_PCAS2_B"}
	want := slices.Concat([]string{"INVALIDATE_SHADER_CACHES", "INVALIDATE_SKED_CACHES"}, launch, []string{"WAIT_FOR_IDLE"}, launch, launch, []string{"WAIT_FOR_IDLE"}, launch)
	if !slices.Equal(names, want) {
		t.Errorf("%s\nwant %s", names, want)
	}
	if times, err := r.Profile(t.Context(), nil); err != nil || len(times) != 7 { // its descriptors start nothing
		t.Errorf("%v, %v", times, err)
	}
	if got := first(t, m[7]); got != 6 {
		t.Errorf("%g after a profile, want 6", got)
	}
	quiet(t, p)
}

// Calls of one launch overlap on the machine: one that reads what another of the same
// launch writes, which it may not, sees some of it.
func TestOverlap(t *testing.T) {
	const blocks = 400
	mixed := false
	for seed := range uint64(4) {
		p := &port{Machine: emu.New(emu.Options{Seed: seed})}
		d := rigOf(t, p, 0, hcq.Options{})
		e := load(t, d, copyProgram(t, blocks))
		x, y, z := alloc(t, d, 4*blocks), alloc(t, d, 4*blocks), alloc(t, d, 4*blocks)
		check(t, record(t, d, []runtime.Call{pair(e, x, y), pair(e, y, z)}).Run(t.Context(), nil))
		b := make([]byte, 4*blocks)
		check(t, z.Read(t.Context(), 0, b))
		seen := make(map[float32]int)
		for i := range blocks {
			seen[math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))]++
		}
		mixed = mixed || seen[1] > 0 && seen[2] > 0
	}
	if !mixed {
		t.Error("two calls of one launch ran one after the other, whatever the seed")
	}
}

// differing counts the bytes that two images of memory have not in common.
func differing(a, b []byte) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// A step with variables is there twice: a second run is queued while the first is under
// way, and a third waits. A run writes the parameters of calls with variables, and nothing
// if none has changed.
func TestTwoSets(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	d := rigOf(t, p, 64, hcq.Options{Timeout: 20 * time.Millisecond})
	x, y := alloc(t, d, 4), alloc(t, d, 4)
	with, without := load(t, d, addProgram(t, "add", 1)), load(t, d, copyProgram(t, 1))
	fixed := record(t, d, []runtime.Call{pair(without, x, y)})
	r := record(t, d, []runtime.Call{pair(with, x, y)}, []runtime.Call{pair(without, y, y)})
	if fixed.Sets() != 1 || r.Sets() != 2 {
		t.Errorf("%d and %d sets, want 1 and 2", fixed.Sets(), r.Sets())
	}
	check(t, r.Run(t.Context(), map[string]int64{"n": 1}))
	check(t, r.Run(t.Context(), map[string]int64{"n": 1})) // both have it
	before := slices.Clone(r.Own())
	check(t, r.Run(t.Context(), map[string]int64{"n": 1}))
	if n := differing(before, r.Own()); n != 0 {
		t.Errorf("%d bytes are written for the same variables", n)
	}
	check(t, r.Run(t.Context(), map[string]int64{"n": 2}))
	if n := differing(before, r.Own()); n != 1 {
		t.Errorf("%d bytes are written for 2 instead of 1", n)
	}
	p.deaf = true
	check(t, r.Start(t.Context(), map[string]int64{"n": 3}))
	check(t, r.Start(t.Context(), map[string]int64{"n": 4}))
	if err := r.Start(t.Context(), map[string]int64{"n": 5}); !errors.Is(err, hcq.ErrTimeout) {
		t.Errorf("a third run: %v, want %v", err, hcq.ErrTimeout)
	}
}

// The timeline goes on past the halves of 32 and of 64 bits.
func TestPayload(t *testing.T) {
	for _, from := range []uint64{1<<31 - 3, 1<<32 - 3, 1<<63 - 3} {
		p := &port{Machine: emu.New(emu.Options{})}
		d := rigOf(t, p, 8, hcq.Options{Timeout: time.Second})
		x := alloc(t, d, 4)
		r := step(t, d, load(t, d, addProgram(t, "add", 1)), [2]runtime.Memory{x, x})
		d.Pass(from)
		for range 8 {
			check(t, r.Run(t.Context(), map[string]int64{"n": 1}))
		}
		if got := first(t, x); got != 8 {
			t.Errorf("from %#x: %g, want 8", from, got)
		}
		quiet(t, p)
	}
}

// Other code at an address that held some: no cache keeps the old one.
func TestCodeReplaced(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	var placed []uint64
	d := rigOf(t, p, 0, hcq.Options{Placed: func(address uint64, _ *cubin.Kernel) { placed = append(placed, address) }})
	x := alloc(t, d, 4)
	for i, program := range []*program.Program{addProgram(t, "add", 1), copyProgram(t, 1)} {
		e := load(t, d, program)
		r, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{pair(e, x, x)}}})
		check(t, err)
		check(t, r.Run(t.Context(), map[string]int64{"n": 10}))
		r.Free()
		if i == 0 {
			check(t, d.Unload(e.(*hcq.Executable)))
		}
	}
	if got := first(t, x); got != 11 || len(placed) != 2 || placed[0] != placed[1] {
		t.Errorf("%g, want 11; code at %#x", got, placed)
	}
	quiet(t, p)
}

// A vector access at an address that is not a multiple of its size is the error 0x0f of a
// warp, by the kernel that made it.
func TestMisaligned(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	d := rigOf(t, p, 0, hcq.Options{})
	vector, err := program.Parse(`program "vector"
param %0:*f32 buffer slot 0 name "x" align 4 bytes 32 read
param %1:*f32 buffer slot 1 name "y" align 4 bytes 32 read write
grid 1
gridloop %2:i64 {
  %3:i64 = const 1
  %4:*f32 = ptradd %0 %3
  %5:f32x4 = load %4 align 16
  %6:*f32 = ptradd %1 %3
  store %6 %5 align 4
}
`)
	check(t, err)
	x := alloc(t, d, 32)
	r := record(t, d, []runtime.Call{pair(load(t, d, vector), x, x)})
	var fault *hcq.BoardFault
	if err := r.Run(t.Context(), nil); !errors.As(err, &fault) || fault.WarpESR != 0xf || !strings.Contains(err.Error(), "kernel vector faulted") {
		t.Errorf("%v, want warp ESR 0xf", err)
	}
}
