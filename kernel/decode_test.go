package kernel_test

import (
	"regexp"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
)

// What products of one row of activations with packed weights need on a CPU, seen in the
// text of their programs. That they compute the right values other tests say.

func decodeText(t *testing.T, b *builder, sink *ir.UOp, planText string) string {
	t.Helper()
	chosen, err := plan.Parse(planText)
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.Lower(b.Arena, sink, chosen, avx512)
	if err != nil {
		t.Fatal(err)
	}
	return program.Print(p)
}

// Lanes of a few results are folded where they are: no shuffle has all of them.
func TestLanesFoldInPlace(t *testing.T) {
	b := newBuilder()
	text := decodeText(t, b, matvec(b, 8, 64), "VECTOR s0 4; VECTOR r0 64")
	if all := regexp.MustCompile(`f32x256 = shuffle`); len(all.FindAllString(text, -1)) > 1 { // one repeats x
		t.Errorf("lanes move before they are folded:\n%s", text)
	}
	if !strings.Contains(text, "f32x128 = add") {
		t.Errorf("halves of the lanes are not added:\n%s", text)
	}
}

// The minima of a block times the sums of its activations are one vector.
func TestMinimaAreLanes(t *testing.T) {
	b := newBuilder()
	text := decodeText(t, b, packedMatvec(b, "Q4_K", 4, 512, false), "PACK r0; FMA")
	if n := strings.Count(text, ":f32x8 = fma"); n != 1 {
		t.Errorf("%d products of eight minima, want 1:\n%s", n, text)
	}
}

// Blocks with too few bytes for a register are words side by side.
func TestWordsOfSeveralBlocks(t *testing.T) {
	b := newBuilder()
	text := decodeText(t, b, packedMatvec(b, "Q4_0", 4, 512, false), "PACK r0; FMA")
	if !strings.Contains(text, ":i32x16 = and") {
		t.Errorf("no masks of 16 words:\n%s", text)
	}
}

// A sum inside a tile streams its weight, whatever the number of its loop.
func TestTilesArePrefetched(t *testing.T) {
	b := newBuilder()
	if text := decodeText(t, b, tiles(b, 4, 8, 64), "PREFETCH p1 8192"); !strings.Contains(text, "prefetch ") {
		t.Errorf("no prefetch:\n%s", text)
	}
}
