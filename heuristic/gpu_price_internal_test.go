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

// A permute looks up the eight values of a word, whether the thread that has the word wants all of them or half.
func TestLookupsOfSharedWords(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, dot := range []bool{false, true} {
		k := &work{rows: 2048, points: 1536, bytes: 2048 * 1536 / 2, lookups: lookups{permuted: 1536}, dot: dot, uses: 1, sharers: 2}
		each := func(shared int64) float64 {
			m := &mapped{mapping: mapping{rows: 1}, atOnce: 64, scaled: 1, shared: shared}
			operations, _ := m.operations(k, &desc.Threads)
			return operations
		}
		if whole, half := each(2), each(1); half != 2*whole {
			t.Errorf("sums of bytes %v: %v operations a weight, %v where two threads share a word", dot, whole, half)
		}
	}
}

// The rows of a tile in two turns: each use makes both of them before the next use begins, and reads
// and decodes the weights again.
func TestTurnsOfTilesReadAgain(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	cost := func(uses float64, groups int64) price {
		k := &work{rows: 28672, points: 4096, bytes: 28672 * 4096 / 2, operations: 4 * 4096, decoding: 2 * 4096, uses: uses, sums: 4, tile: 32, dot: true, sharers: 1}
		a := &analysis{desc: desc}
		m := &mapped{planner: a.plan(), mapping: mapping{rows: 1, turns: 1}, sharing: 8, groups: groups, blocks: 896, atOnce: 64, loaded: 64, iterations: 8, shared: 1, scaled: 1, apart: 1, run: 16}
		return m.estimate(k, &desc.Threads)
	}
	if one, two := cost(1, 32), cost(1, 16); two.memory > 1.01*one.memory {
		t.Errorf("one use: %.0f ns to read the weights in two turns, %.0f in one", two.memory, one.memory)
	}
	if one, two := cost(4, 32), cost(4, 16); two.memory < 2*one.memory || two.total < 1.5*one.total {
		t.Errorf("four uses: %+v in two turns, %+v in one", two, one)
	}
}
