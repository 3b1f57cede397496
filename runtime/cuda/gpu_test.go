package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tgc/ir/program"
	"tgc/runtime"
)

// Tests that say something on a GPU only; they skip elsewhere. Their logs are
// the figures that constants and choices of this package cite.

// Every kernel of a chain sees what the one before wrote, with ordinary edges
// and with early ones.
func TestChain(t *testing.T) {
	both(t, Options{}, func(t *testing.T, d *rig) {
		length, rows := time.Duration(81), int64(128)
		if d.emulated {
			length, rows = 21, 6
		}
		for _, name := range []string{"scale", "scale_early"} {
			exec := load(t, d, scaleProgram(name, rows))[0]
			buffers := make([]runtime.Memory, length+1)
			for i := range buffers {
				buffers[i] = alloc(t, d, rows*64)
			}
			var launches []runtime.Launch
			for i := range length {
				launches = append(launches, launch(callOf(exec, buffers[i], buffers[i+1])))
			}
			r := record(t, d, launches...)
			for step := range 20 {
				values := counting(int(rows) * 16)
				for i := range values {
					values[i] += float32(1000 * step)
				}
				check(t, buffers[0].Write(t.Context(), 0, floats(values...)))
				check(t, r.Run(t.Context(), map[string]int64{"n": -1}))
				for i, got := range readFloats(t, buffers[length]) {
					if got != -values[i] {
						t.Fatalf("%s, step %d: [%d] = %g, want %g", name, step, i, got, -values[i])
					}
				}
			}
			steps := time.Duration(100)
			if d.emulated {
				steps = 1
			}
			begin := time.Now()
			for range steps {
				check(t, r.Start(t.Context(), map[string]int64{"n": -1}))
			}
			check(t, r.Wait())
			queued := time.Since(begin) / steps
			begin = time.Now()
			for range steps {
				check(t, r.Run(t.Context(), map[string]int64{"n": -1}))
			}
			waited := time.Since(begin) / steps
			times, err := r.Profile(t.Context(), map[string]int64{"n": -1})
			check(t, err)
			t.Logf("%s: %d kernels in %v a step queued (%v each), %v with a wait for each step; profiled %v, %v, ..", name, length, queued, queued/length, waited, times[1], times[2])
		}
	})
}

// Both assemblers make kernels that work; several at a time.
func TestAssemblers(t *testing.T) {
	for _, name := range []string{AssembleDriver, AssemblePTXAS} {
		t.Run(name, func(t *testing.T) {
			d := gpu(t, Options{Assembler: AssembleDriver})
			if name == AssemblePTXAS {
				tool, err := findPTXAS("", d.architecture())
				if err != nil {
					t.Skip(err)
				}
				d.asm = tool
			}
			t.Log(d.asm.fingerprint())
			const many = 32
			var programs []*program.Program
			for i := range many {
				programs = append(programs, scaleProgram(fmt.Sprintf("scale_%s_%d", name, i), 4))
			}
			begin := time.Now()
			load(t, d, programs[0])
			one := time.Since(begin)
			begin = time.Now()
			exec := load(t, d, programs[1:]...)
			t.Logf("one kernel %v, %d more %v", one, many-1, time.Since(begin))
			x, y := alloc(t, d, 256), alloc(t, d, 256)
			check(t, x.Write(t.Context(), 0, floats(counting(64)...)))
			check(t, record(t, d, launch(callOf(exec[7], x, y))).Run(t.Context(), map[string]int64{"n": 3}))
			if got := readFloats(t, y)[63]; got != 189 {
				t.Errorf("%g, want 189", got)
			}
		})
	}
}

// A warm start loads machine code without the assembler.
func TestWarmStart(t *testing.T) {
	dir := t.TempDir()
	cold := gpu(t, Options{CacheDir: dir})
	var programs []*program.Program
	for i := range 16 {
		programs = append(programs, scaleProgram(fmt.Sprintf("scale_warm_%d", i), 4))
	}
	begin := time.Now()
	load(t, cold, programs...)
	first := time.Since(begin)
	begin = time.Now()
	warm := gpu(t, Options{CacheDir: dir})
	opened := time.Since(begin)
	warm.asm = fingerprintOnly{cold.asm}
	begin = time.Now()
	load(t, warm, programs...)
	t.Logf("16 kernels: cold %v, warm %v; opening the device %v", first, time.Since(begin), opened)
}

type fingerprintOnly struct{ assembler }

// Large imports come back whole; the rate is logged.
func TestImportRate(t *testing.T) {
	d := gpu(t, Options{})
	b := make([]byte, 1<<30+12345)
	source := rand.NewChaCha8([32]byte{7})
	if _, err := source.Read(b); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		begin := time.Now()
		m, err := d.Import(t.Context(), b)
		check(t, err)
		up := time.Since(begin)
		got := make([]byte, len(b))
		begin = time.Now()
		check(t, m.Read(t.Context(), 0, got))
		t.Logf("round %d: import %.1f GB/s, read %.1f GB/s", round, float64(len(b))/float64(up), float64(len(b))/float64(time.Since(begin)))
		if !bytes.Equal(b, got) {
			t.Error("bytes came back otherwise")
		}
		m.Free()
	}
	small := alloc(t, d, 4)
	begin := time.Now()
	for range 1000 {
		check(t, small.Read(t.Context(), 0, b[:4]))
	}
	t.Logf("a read of 4 bytes: %v", time.Since(begin)/1000)
}

func (fingerprintOnly) assemble(context.Context, string, string) ([]byte, string, error) {
	return nil, "", errors.New("assembled in a warm start")
}
