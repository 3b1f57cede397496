package kernel_test

import (
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/target"
)

// Lines of interleaved rows that become floats are asked for twice where the target's first cache waits for few: early by
// the second cache and late by the first; elsewhere, and in the order of the file, once.
func TestPrefetchTwice(t *testing.T) {
	for _, c := range []struct {
		name, plan string
		records    bool
		cpu        string
		lines      [3]int // asked for by all caches, the first alone, the second alone
	}{
		{"rows interleaved", "VECTOR s0 16; PACK r0 1; PREFETCH p2 8192; FMA", true, "sapphirerapids", [3]int{9, 0, 9}},
		{"another core", "VECTOR s0 16; PACK r0 1; PREFETCH p2 8192; FMA", true, "znver5", [3]int{9, 0, 0}},
		{"nearer than the first cache asks", "VECTOR s0 16; PACK r0 1; PREFETCH p2 1024; FMA", true, "sapphirerapids", [3]int{9, 0, 0}},
		{"order of the file", "VECTOR r0 32; UNROLL r0 2; PREFETCH p2 8192; FMA", false, "sapphirerapids", [3]int{2, 0, 0}},
		{"past the second cache", "VECTOR s0 16; PACK r0 1; PREFETCH p2 8192; ONCE p2; FMA", true, "sapphirerapids", [3]int{0, 9, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			desc := target.ForCPU(c.cpu, nil, 1)
			if desc.Records = 0; c.records {
				desc.Records = 9
			}
			b := newBuilder()
			p := lowerText(t, b, packedMatvec(b, "Q8_0", 32, 512, false), c.plan, desc)
			var lines [3]int
			p.Body.Each(func(in *program.Instr) {
				if in.Op == program.Prefetch {
					lines[in.Int]++
				}
			})
			if lines != c.lines {
				t.Errorf("an iteration asks all caches, the first alone and the second alone for %v lines, want %v", lines, c.lines)
			}
			text := program.Print(p)
			again, err := program.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if program.Print(again) != text {
				t.Error("the text parses as another program")
			}
		})
	}
}

// Words of weights that lie beside each other in a record are one stream: its lines are asked for once.
func TestWordsAskedForOnce(t *testing.T) {
	for name, want := range map[string]int{"Q5_K": 10, "Q6_K": 11} { // 15 and 17 where each field of them is asked for
		if asked := instructions(lowerRecords(t, name, "VECTOR s0 16; PACK r0 1; PREFETCH p2 8192; FMA"), program.Prefetch); asked != want {
			t.Errorf("%s: the loops ask for %d lines, want %d", name, asked, want)
		}
	}
}

// Two matrices that lie in one buffer, one after the other, are two streams, in records and in the order of the file.
func TestHalvesAskedForApart(t *testing.T) {
	for text, bits := range map[string]int{"VECTOR s0 16; PACK r0 1; PREFETCH p2 8192; FMA": packed.MostRecordBits, "VECTOR r0 32; UNROLL r0 2; PREFETCH p2 8192; FMA": 0} {
		asked := func(halves bool) int {
			const rows, k = 32, 512
			b := newBuilder()
			f, _ := packed.Lookup("Q8_0")
			x, out, w := b.param(0, ir.F32, k), b.param(3, ir.F32, rows), b.packed(2, "Q8_0", 2*rows, k)
			n, r := b.rng(rows), b.rng(k)
			v := b.sum(b.Mul(b.Load(x, r), f.Decode(b.Arena, w, n, r)), r)
			if halves {
				v = b.Mul(v, b.sum(b.Mul(b.Load(x, r), f.Decode(b.Arena, w, b.Add(n, b.Index(rows)), r)), r))
			}
			sink := b.sink(b.Store(out, v, list(n), list(n)))
			return instructions(lowerText(t, b, sink, text, target.ForCPU("znver5", nil, 1).WithRecords(bits)), program.Prefetch)
		}
		if one, two := asked(false), asked(true); one == 0 || two != 2*one {
			t.Errorf("%s: of one matrix %d lines are asked for, of two %d", text, one, two)
		}
	}
}

// ONCE says how a PREFETCH before it asks: without one it says nothing.
func TestOnceNeedsPrefetch(t *testing.T) {
	for text, legal := range map[string]bool{
		"VECTOR r0 32; PREFETCH p2 8192; ONCE p2; FMA": true,
		"VECTOR r0 32; ONCE p2; PREFETCH p2 8192; FMA": false,
		"VECTOR r0 32; PREFETCH p2 8192; ONCE p0; FMA": false,
	} {
		chosen, err := plan.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		b := newBuilder()
		if err := kernel.Feasible(b.Arena, packedMatvec(b, "Q8_0", 32, 512, false), chosen, target.ForCPU("znver5", nil, 1)); (err == nil) != legal {
			t.Errorf("%q: %v", text, err)
		}
	}
}
