package lower

import (
	"testing"
	"tgc/kernel/plan"
)

// lanesAt is a read of b bytes a lane, stride elements apart.
func lanesAt(stride, bytes int64) stageRead {
	r := stageRead{bytes: bytes}
	for lane := range int64(plan.WarpSize) {
		r.index = append(r.index, lane*stride)
	}
	return r
}

// Rounds of the cases that every CUDA guide shows: neighbouring words take one
// round, words 32 banks apart 32, a word that all lanes share one, 16 bytes a
// lane four.
func TestRounds(t *testing.T) {
	for _, c := range []struct {
		stride, bytes int64
		pad           padding
		want          int64
	}{
		{1, 4, padding{}, 1},
		{0, 4, padding{}, 1},
		{2, 4, padding{}, 2},
		{32, 4, padding{}, 32},
		{33, 4, padding{}, 1},
		{4, 16, padding{}, 4},
		{16, 16, padding{}, 16},
		{16, 16, padding{every: 16, gap: 4}, 4},
		{32, 4, padding{every: 32, gap: 4}, 4},
	} {
		if got := rounds([]stageRead{lanesAt(c.stride, c.bytes)}, c.pad, 4); got != c.want {
			t.Errorf("stride %d, %d bytes, %+v: %d rounds, want %d", c.stride, c.bytes, c.pad, got, c.want)
		}
	}
}

// Every element has a place of its own within the padded array.
func TestPaddingIsInjective(t *testing.T) {
	p := padding{every: 16, gap: 4}
	last := int64(-1)
	for i := range int64(100) {
		at := i + i/p.every*p.gap
		if at <= last || at >= p.size(100) {
			t.Fatalf("element %d stands at %d behind %d, size %d", i, at, last, p.size(100))
		}
		last = at
	}
}
