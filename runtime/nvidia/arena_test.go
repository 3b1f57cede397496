package nvidia

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	_ "tgc/internal/steadyseed"
)

// fakeMemory hands out addresses far apart, up to a limit of bytes.
type fakeMemory struct {
	limit, used int64
	next        uint64
	sizes       map[uint64]int64
}

var errFull = errors.New("full")

func (m *fakeMemory) take(n int64) (uint64, error) {
	if m.used+n > m.limit {
		return 0, errFull
	}
	m.next += 1 << 40
	m.used += n
	m.sizes[m.next] = n
	return m.next, nil
}

func (m *fakeMemory) give(p uint64) error {
	n, ok := m.sizes[p]
	if !ok {
		return errors.New("not taken")
	}
	m.used -= n
	delete(m.sizes, p)
	return nil
}

// Live allocations are aligned, inside memory taken from the driver, and never
// overlap; when all are released, so is everything taken.
func TestArena(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := &fakeMemory{limit: 4 * BlockBytes, sizes: make(map[uint64]int64)}
		a := NewArena(source.take, source.give, BlockBytes, false)
		size := rapid.OneOf(rapid.Int64Range(0, 4096), rapid.Int64Range(0, BlockBytes*3/2))
		live := make(map[uint64]int64)
		var order []uint64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(order) > 0 && rapid.Bool().Draw(t, "release") {
				i := rapid.IntRange(0, len(order)-1).Draw(t, "which")
				p := order[i]
				if err := a.Release(p); err != nil {
					t.Fatal(err)
				}
				delete(live, p)
				order = append(order[:i], order[i+1:]...)
				continue
			}
			n := size.Draw(t, "size")
			p, err := a.Alloc(n)
			if errors.Is(err, errFull) {
				if source.used+a.Footprint(n) <= source.limit {
					t.Fatalf("%d bytes refused with %d of %d in use", n, source.used, source.limit)
				}
				continue
			}
			if err != nil || p%Alignment != 0 || a.Footprint(n) < n+padding {
				t.Fatalf("%d bytes at %#x: %v", n, p, err)
			}
			within := false
			for base, length := range source.sizes {
				within = within || p >= base && p+uint64(a.Footprint(n)) <= base+uint64(length)
			}
			if !within {
				t.Fatalf("%d bytes at %#x lie outside the driver's memory", n, p)
			}
			for q, m := range live {
				if p < q+uint64(a.Footprint(m)) && q < p+uint64(a.Footprint(n)) {
					t.Fatalf("%#x+%d overlaps %#x+%d", p, n, q, m)
				}
			}
			live[p] = n
			order = append(order, p)
		}
		var sum int64
		for _, n := range live {
			sum += a.Footprint(n)
		}
		if a.bytes != sum || len(a.live) != len(live) {
			t.Fatalf("%d bytes in %d counted, want %d in %d", a.bytes, len(a.live), sum, len(live))
		}
		for _, p := range order {
			if err := a.Release(p); err != nil {
				t.Fatal(err)
			}
		}
		if source.used != 0 || a.bytes != 0 || len(a.blocks) != 0 {
			t.Fatalf("%d bytes are kept after all is released", source.used)
		}
		if a.Release(256) == nil {
			t.Fatal("a stray address was released")
		}
	})
}
