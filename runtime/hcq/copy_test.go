package hcq_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tgc/runtime"
	"tgc/runtime/hcq"
	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/word"
)

// mixture is a device with memories, and what each of them has to hold.
type mixture struct {
	t      *testing.T
	random *rand.Rand
	device *hcq.Device
	memory []runtime.Memory
	model  [][]float32
	steps  map[[2]int]*hcq.Recording // from one memory to another
	add    runtime.Executable
}

const mixtureBlocks = 2048 // more than one piece of staging

// act does something at random: a step, a copy, an upload.
func (m *mixture) act() {
	t := m.t
	from, to := m.random.IntN(len(m.memory)), m.random.IntN(len(m.memory))
	n := int64(m.random.IntN(4))
	at, size := m.random.IntN(mixtureBlocks-1), 0
	size = 1 + m.random.IntN(mixtureBlocks-at)
	switch m.random.IntN(4) {
	case 0, 1:
		r := m.steps[[2]int{from, to}]
		if r == nil {
			r = step(t, m.device, m.add, [2]runtime.Memory{m.memory[from], m.memory[to]})
			m.steps[[2]int{from, to}] = r
		}
		check(t, r.Start(t.Context(), map[string]int64{"n": n}))
		for i := range mixtureBlocks {
			m.model[to][i] = m.model[from][i] + float32(n)
		}
	case 2:
		source := m.random.IntN(mixtureBlocks - size + 1)
		check(t, runtime.Copy(t.Context(), m.memory[to], int64(4*at), m.memory[from], int64(4*source), int64(4*size)))
		copy(m.model[to][at:at+size], slices.Clone(m.model[from][source:source+size]))
	default:
		b := make([]byte, 4*size)
		for i := range size {
			m.model[to][at+i] = float32(n * 1000)
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(n*1000)))
		}
		check(t, m.memory[to].Write(t.Context(), int64(4*at), b))
		clear(b) // it is the caller's again
	}
}

// Steps, copies and uploads that are queued in any order leave what they would one after the
// other, by front ends that come late and in any order.
func TestCopies(t *testing.T) {
	for seed := range uint64(6) {
		p := &port{Machine: emu.New(emu.Options{Seed: seed, Delay: 500 * time.Microsecond})}
		d := rigOf(t, p, 64, hcq.Options{BlockBytes: 1 << 20})
		if seed%2 == 1 {
			d.QueueCopies()
		}
		m := &mixture{t: t, random: rand.New(rand.NewPCG(seed, 1)), device: d, steps: make(map[[2]int]*hcq.Recording)}
		m.add = load(t, d, addProgram(t, "add", mixtureBlocks))
		for range 4 {
			m.memory = append(m.memory, alloc(t, d, 4*mixtureBlocks))
			m.model = append(m.model, make([]float32, mixtureBlocks))
		}
		for range 60 {
			m.act()
		}
		for i, memory := range m.memory {
			b := make([]byte, 4*mixtureBlocks)
			check(t, memory.Read(t.Context(), 0, b))
			for j, want := range m.model[i] {
				if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*j:])); got != want {
					t.Fatalf("seed %d: memory %d [%d] = %g, want %g", seed, i, j, got, want)
				}
			}
		}
		if p.Counts()[emu.OnCopy] == 0 {
			t.Errorf("seed %d: the queue has copied nothing", seed)
		}
		quiet(t, p)
	}
}

// float are four bytes.
func float(v float32) []byte {
	return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
}

// While a step is under way, what it does not use is written at once and without the queue,
// and what it uses after it, and nobody waits; the next step that uses it waits for that.
func TestUploadBesideStep(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	d := rigOf(t, p, 64, hcq.Options{Timeout: 20 * time.Millisecond})
	x, y, z := alloc(t, d, 4), alloc(t, d, 4), alloc(t, d, 4)
	r := step(t, d, load(t, d, addProgram(t, "add", 1)), [2]runtime.Memory{x, y})
	p.deafTo = computeToken // the step does not go on
	check(t, r.Start(t.Context(), map[string]int64{"n": 2}))
	before := p.Counts()[emu.OnDoorbell]
	check(t, z.Write(t.Context(), 0, float(7)))
	if rings := p.Counts()[emu.OnDoorbell] - before; rings != 0 {
		t.Errorf("%d doorbells for memory that no step uses", rings)
	}
	check(t, runtime.Copy(t.Context(), z, 0, x, 0, 4)) // after the step's reading, too
	check(t, x.Write(t.Context(), 0, float(5)))
	check(t, runtime.Copy(t.Context(), z, 0, y, 0, 4))
	if p.Counts()[emu.OnDoorbell] == before || p.Counts()[emu.OnCopy] != 0 {
		t.Errorf("%v: want copies that wait", p.Counts())
	}
	if err := z.Read(t.Context(), 0, make([]byte, 4)); !errors.Is(err, hcq.ErrTimeout) {
		t.Errorf("a read while the step stands still: %v", err)
	}
}

// A step waits for the copies of its memory, and only for these.
func TestStepAfterCopy(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	d := rigOf(t, p, 64, hcq.Options{Timeout: 20 * time.Millisecond})
	d.QueueCopies()
	x, y, z := alloc(t, d, 4), alloc(t, d, 4), alloc(t, d, 4)
	e := load(t, d, addProgram(t, "add", 1))
	beside, after := step(t, d, e, [2]runtime.Memory{z, z}), step(t, d, e, [2]runtime.Memory{y, x})
	p.deafTo = copyToken
	check(t, y.Write(t.Context(), 0, float(5)))
	check(t, beside.Run(t.Context(), map[string]int64{"n": 3}))
	if err := after.Run(t.Context(), map[string]int64{"n": 3}); !errors.Is(err, hcq.ErrTimeout) || !strings.Contains(err.Error(), "compute timeline") {
		t.Errorf("a step that needs the copy: %v", err)
	}
}

// What a copy that is under way reads is written after it; who reads what it writes waits.
func TestWriteAfterCopy(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	d := rigOf(t, p, 64, hcq.Options{Timeout: 20 * time.Millisecond})
	const large = 1 << 20
	x, y, z := alloc(t, d, large), alloc(t, d, large), alloc(t, d, large)
	check(t, x.Write(t.Context(), 0, float(1)))
	p.deafTo = copyToken
	check(t, runtime.Copy(t.Context(), y, 0, x, 0, large))
	check(t, x.Write(t.Context(), 0, float(2)))
	p.deafTo = 0
	check(t, runtime.Copy(t.Context(), z, 0, x, 0, large)) // its doorbell is for all three
	for want, m := range map[float32]runtime.Memory{1: y, 2: z} {
		if got := first(t, m); got != want {
			t.Errorf("%g, want %g", got, want)
		}
	}
	p.deafTo = copyToken
	check(t, runtime.Copy(t.Context(), y, 0, x, 0, large))
	if err := y.Read(t.Context(), 0, make([]byte, 4)); !errors.Is(err, hcq.ErrTimeout) || !strings.Contains(err.Error(), "copy timeline") {
		t.Errorf("a read ahead of the copy: %v", err)
	}
}

// Much is copied by the queue also where nothing is under way, and little by the CPU.
func TestCopySizes(t *testing.T) {
	p := &port{Machine: emu.New(emu.Options{})}
	d := rigOf(t, p, 0, hcq.Options{})
	x, y := alloc(t, d, 1<<20), alloc(t, d, 1<<20)
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(i * 7919 >> 5)
	}
	check(t, x.Write(t.Context(), 0, want))
	check(t, runtime.Copy(t.Context(), y, 1, x, 3, 256<<10))
	if n := p.Counts()[emu.OnCopy]; n != 0 {
		t.Errorf("%d copies by the queue of 256 KiB", n)
	}
	check(t, runtime.Copy(t.Context(), y, 256<<10+1, x, 256<<10+3, 700<<10))
	if n := p.Counts()[emu.OnCopy]; n != 1 {
		t.Errorf("%d copies by the queue of 700 KiB", n)
	}
	got := make([]byte, 956<<10)
	check(t, y.Read(t.Context(), 1, got))
	if !bytes.Equal(got, want[3:956<<10+3]) {
		t.Error("other bytes")
	}
	check(t, runtime.Copy(t.Context(), x, 10, x, 0, 100)) // onto itself
	check(t, x.Read(t.Context(), 10, got[:100]))
	if !bytes.Equal(got[:100], want[:100]) {
		t.Error("a copy that overlaps has other bytes")
	}
	quiet(t, p)
}

// Copies that cannot be are refused.
func TestCopyRefused(t *testing.T) {
	d, other := open(t, "ptxas"), open(t, "ptxas")
	x, foreign := alloc(t, d.Device, 16), alloc(t, other.Device, 16)
	fixed, err := d.Import(t.Context(), make([]byte, 16))
	check(t, err)
	defer fixed.Free()
	freed := alloc(t, d.Device, 16)
	freed.Free()
	for name, try := range map[string]func() error{
		"of another device": func() error { return runtime.Copy(t.Context(), x, 0, foreign, 0, 16) },
		"read-only":         func() error { return runtime.Copy(t.Context(), fixed, 0, x, 0, 16) },
		"17 bytes":          func() error { return runtime.Copy(t.Context(), x, 0, fixed, 0, 17) },
		"9 bytes at 8":      func() error { return runtime.Copy(t.Context(), x, 8, fixed, 0, 9) },
		"-1 bytes":          func() error { return runtime.Copy(t.Context(), x, 0, fixed, 0, -1) },
		"freed":             func() error { return runtime.Copy(t.Context(), x, 0, freed, 0, 16) },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// harmlessCopyBits says why a change of a bit of a copy's words does no harm that the machine
// could see; empty where it does.
func harmlessCopyBits(name string, bit int) string {
	switch {
	case strings.HasPrefix(name, "OFFSET_") && bit == 0, name == "LINE_LENGTH_IN" && bit == 0:
		return "other bytes: only the words say which"
	case name == "LAUNCH_DMA" && bit == 27:
		return "SEMAPHORE_PAYLOAD_SIZE: of no semaphore"
	}
	return ""
}

// Each field of a copy's words, changed by its lowest bit and by its highest, is refused or
// noticed; so is each bit of their headers, but for those that say the same otherwise.
func TestMutatedCopy(t *testing.T) {
	s := recordTrace(t, func(d *hcq.Device) []uint64 {
		d.QueueCopies()
		x, y := alloc(t, d, 512), alloc(t, d, 512)
		check(t, runtime.Copy(t.Context(), y, 0, x, 0, 16))
		check(t, y.Read(t.Context(), 0, make([]byte, 4)))
		return nil
	})
	const ring, userd, putAt = "m3", "m4", 0x8c // those of the copy queue
	put := uint64(binary.LittleEndian.Uint32(s.bytes(userd, putAt, 4)))
	entry := binary.LittleEndian.Uint64(s.bytes(ring, 8*(put-2), 8)) // the copy, then what signals its end
	name, offset := s.mapping(t, entry&(1<<40-4))
	count := entry >> 42 & (1<<21 - 1)
	text := s.bytes(name, offset, 4*count)
	words := make([]uint32, count)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(text[4*i:])
	}
	lines, err := word.Decode(words)
	check(t, err)
	flip := func(at, bit int) string {
		return s.with(name, offset+uint64(4*at+bit/8), []byte{text[4*at+bit/8] ^ 1<<(bit%8)})
	}
	at, line := 0, 0
	for at < len(words) {
		header := words[at]
		for bit := range 32 {
			if found := flip(at, bit); found == "" && harmlessHeader(header, bit) == "" {
				t.Errorf("bit %d of header %08x: nobody notices", bit, header)
			}
		}
		at++
		for range header >> 16 & 0x1fff {
			m, ok := word.Copy().Method(word.Name(lines[line].Name))
			if !ok {
				t.Fatalf("%s is no method of the copy class", lines[line].Name)
			}
			for _, f := range m.Value.Fields {
				for _, bit := range slices.Compact([]int{f.Low, f.High}) {
					if found := flip(at, bit); found == "" && harmlessCopyBits(lines[line].Name, bit) == "" {
						t.Errorf("bit %d of %s.%s: nobody notices", bit, m.Name, f.Name)
					}
				}
			}
			at, line = at+1, line+1
		}
	}
	if want := "[OFFSET_IN_UPPER OFFSET_IN_LOWER OFFSET_OUT_UPPER OFFSET_OUT_LOWER LINE_LENGTH_IN LAUNCH_DMA]"; fmt.Sprint(names(lines)) != want {
		t.Errorf("%v, want %s", names(lines), want)
	}
}

func names(lines []word.Line) (list []string) {
	for _, l := range lines {
		list = append(list, l.Name)
	}
	return list
}
