package hcq_test

import (
	"encoding/binary"
	"testing"
	"time"

	"tgc/internal/cudatools"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime"
	"tgc/runtime/hcq"
)

// instant is a board whose GPU is at the end of all work as soon as the doorbell rings: it
// reads the last entry, which writes the timeline, and nothing else.
type instant struct {
	channels [2]hcq.Channel // by engine
	next     uint64
	memory   map[uint64][]byte // pages
}

const (
	pageShift = 12
	getAt     = 0x88 // of the ring's pointers
	putAt     = 0x8c
)

func newInstant() *instant {
	const entries = 1024
	b := &instant{next: 1 << 32, memory: make(map[uint64][]byte)}
	for i := range b.channels {
		b.channels[i] = hcq.Channel{Ring: make([]byte, 8*entries), Control: make([]byte, 512), Entries: entries}
	}
	return b
}

func (b *instant) Info() hcq.Info {
	return hcq.Info{Chip: "instant", SM: 87, GPCs: 2, TPCsPerGPC: 4, SMsPerTPC: 2, WarpsPerSM: 96, ComputeClass: 0xc7c0, CopyClass: 0xc7b5, SharedWindow: 0xfe << 32, LocalWindow: 0xfd << 32}
}

func (b *instant) Channel(engine hcq.Engine) hcq.Channel { return b.channels[engine] }

func (b *instant) Alloc(bytes int64, _ hcq.Use) (*hcq.Buffer, error) {
	m := &hcq.Buffer{Address: b.next, Host: make([]byte, bytes)}
	for at := int64(0); at < bytes; at += 1 << pageShift {
		b.memory[b.next>>pageShift] = m.Host[at:]
		b.next += 1 << pageShift
	}
	return m, nil
}

func (b *instant) Free(m *hcq.Buffer) error {
	for at := range (len(m.Host) + 1<<pageShift - 1) >> pageShift {
		delete(b.memory, m.Address>>pageShift+uint64(at))
	}
	return nil
}

func (b *instant) Publish()              {}
func (b *instant) Waited([]byte, uint64) {}
func (b *instant) Fault() error          { return nil }
func (b *instant) Close() error          { return nil }

// at is memory from an address on.
func (b *instant) at(address uint64) []byte {
	return b.memory[address>>pageShift][address&(1<<pageShift-1):]
}

func (b *instant) Ring(engine hcq.Engine) {
	c := b.channels[engine]
	put := binary.LittleEndian.Uint32(c.Control[putAt:])
	binary.LittleEndian.PutUint32(c.Control[getAt:], put)
	last := (int(put) + c.Entries - 1) % c.Entries
	entry := binary.LittleEndian.Uint64(c.Ring[8*last:])
	release := b.at(entry & (1<<40 - 4)) // a header, the address, the payload
	binary.LittleEndian.PutUint64(b.at(binary.LittleEndian.Uint64(release[4:])), binary.LittleEndian.Uint64(release[12:]))
}

// tokenLaunches are the launches of a step, of which some have variables: as the decode
// step of a model of 16 layers has, whose attention knows the length of the text.
const (
	tokenLaunches = 98
	tokenVaries   = 16
)

// tokenStep is the device and the launches of such a step.
func tokenStep(b testing.TB) (*hcq.Device, []runtime.Launch) {
	b.Helper()
	if cudatools.FromEnvironment().PtxasPath == "" {
		b.Skip("no ptxas")
	}
	d, err := hcq.New(newInstant(), hcq.Options{NoCache: true})
	check(b, err)
	b.Cleanup(func() { check(b, d.Close()) })
	execs, err := d.Load(b.Context(), []*program.Program{opt.Expand(addProgram(b, "add", 1), d.Target()), opt.Expand(copyProgram(b, 1), d.Target())})
	check(b, err)
	x, err := d.Alloc(b.Context(), 4)
	check(b, err)
	b.Cleanup(x.Free)
	var launches []runtime.Launch
	for i := range tokenLaunches {
		e := execs[1]
		if i%(tokenLaunches/tokenVaries) == 0 && i/(tokenLaunches/tokenVaries) < tokenVaries {
			e = execs[0]
		}
		launches = append(launches, runtime.Launch{Calls: []runtime.Call{pair(e, x, x)}})
	}
	return d, launches
}

// BenchmarkReplay is the processor's part of a captured step with variables that change
// every time, and of the same step built anew for each run. docs/bench/hcq-replay.txt has
// its figures.
func BenchmarkReplay(b *testing.B) {
	b.Run("captured", func(b *testing.B) {
		d, launches := tokenStep(b)
		recording, err := d.Record(b.Context(), launches)
		check(b, err)
		defer recording.Free()
		r := recording.(*hcq.Recording)
		check(b, r.Run(b.Context(), map[string]int64{"n": -1}))
		before := append([]byte(nil), r.Own()...)
		vars := make(map[string]int64)
		for b.Loop() {
			vars["n"]++
			check(b, r.Start(b.Context(), vars))
		}
		check(b, r.Wait())
		perKernel(b)
		b.ReportMetric(float64(len(r.Words())), "words/step")
		b.ReportMetric(float64(r.Written()), "written-B/step")
		if differing(before, r.Own()) > 2*8*tokenVaries {
			b.Error("more than the parameters was written")
		}
	})
	b.Run("rebuilt", func(b *testing.B) {
		d, launches := tokenStep(b)
		vars := make(map[string]int64)
		for b.Loop() {
			vars["n"]++
			r, err := d.Record(b.Context(), launches)
			check(b, err)
			check(b, r.Run(b.Context(), vars))
			r.Free()
		}
		perKernel(b)
	})
}

func perKernel(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tokenLaunches, "ns/kernel")
}

// The processor's part of a captured step is at most 1 us a kernel, whose parameters change
// with every run: one entry for the step and one for the signal, one doorbell, and what
// BenchmarkReplay says of words and bytes. The best of many runs counts: it stands still when
// others have the processor, too.
func TestReplayCost(t *testing.T) {
	d, launches := tokenStep(t)
	recording, err := d.Record(t.Context(), launches)
	check(t, err)
	defer recording.Free()
	r := recording.(*hcq.Recording)
	best := time.Hour
	for n := range int64(2000) {
		vars := map[string]int64{"n": n}
		start := time.Now()
		check(t, r.Start(t.Context(), vars))
		best = min(best, time.Since(start))
	}
	check(t, r.Wait())
	t.Logf("%v for %d kernels, %d words, %d bytes written", best, tokenLaunches, len(r.Words()), r.Written())
	if most := tokenLaunches * time.Microsecond; best > most || len(r.Words()) != 8 || r.Written() != 428 {
		t.Errorf("%v for %d kernels, %d words, %d bytes written, want at most %v, 8 and 428", best, tokenLaunches, len(r.Words()), r.Written(), most)
	}
}
