package heuristic

import (
	"testing"

	"tgc/target"
)

// Half of a multiprocessor's registers are 64 of each of 512 threads, and what is read at once
// is held; blocks of 256 threads are two at least, whatever they hold.
func TestWholeMultiprocessors(t *testing.T) {
	k := &work{rows: 2048, points: 8192, bytes: 2048 * 8192 / 2, dot: true, uses: 1}
	for _, c := range []struct {
		threads, atOnce, rows int64
		fills                 bool
	}{{512, 64, 4, true}, {512, 32, 1, false}, {256, 64, 4, false}, {256, 256, 8, false}} {
		m := &mapped{mapping: mapping{rows: c.rows}, atOnce: c.atOnce, iterations: 1}
		if m.fills(k, float64(c.threads)) != c.fills {
			t.Errorf("%d threads with %d weights of %d rows: want %v", c.threads, c.atOnce, c.rows, c.fills)
		}
	}
}

// Lanes that share the bytes of eight weights, and take one bit or nibble of each, need no three
// times the operations of a thread that takes all of them: words are shifted, not bytes.
func TestLanesShareBytes(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, dot := range []bool{false, true} {
		k := &work{rows: 2048, points: 1536, bytes: 2048 * 1536 / 2, operations: 4 * 1536, dot: dot, uses: 1, sharers: 8}
		each := func(shared int64) float64 {
			m := &mapped{mapping: mapping{rows: 1}, atOnce: 64, scaled: 1, shared: shared}
			operations, _ := m.operations(k, &desc.Threads)
			return operations
		}
		if all, one := each(8), each(1); one > 3*all || one <= all {
			t.Errorf("sums of bytes %v: %v operations, %v where one thread takes all bits", dot, one, all)
		}
	}
}
