package heuristic

import "testing"

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
