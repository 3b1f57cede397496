package ptxemu

import (
	"errors"
	"math/bits"
	"slices"
)

// Asynchronous copies (cp.async). What they write is undefined until the thread has waited for them, as late as it
// can be on a GPU; it counts as written where the copy begins and where it ends.

var errCopying = errors.New("a copy by cp.async is under way, and nothing waited for it")

// copying is a copy that is under way.
type copying struct {
	lane int
	at   uint64 // in shared memory
	from []byte // as it was at the beginning
}

// compileCopy is cp.async.CACHE.shared.global [to], [from], BYTES, or cp.async.wait_all.
func compileCopy(c *compiler, s *statement) {
	switch {
	case s.mod(0) != "async":
		c.fail("unknown cp")
	case s.mod(1) == "wait_all":
		c.arity(s, 0, 0)
		c.now.run = func(w *warp, active uint32) error { return w.endCopies(active) }
	case s.mod(1) == "ca" || s.mod(1) == "cg":
		compileCopyAsync(c, s)
	default:
		c.fail("groups of copies are not supported")
	}
}

func compileCopyAsync(c *compiler, s *statement) {
	c.arity(s, 3, 3)
	if !s.has("global") || !s.has("shared") && !s.has("shared::cta") {
		c.fail("want a copy from global to shared memory")
	}
	size := s.args[2].bits
	if !s.args[2].number || size != 16 && (s.mod(1) == "cg" || size != 4 && size != 8) {
		c.fail("a copy of %s bytes by cp.async.%s", s.args[2], s.mod(1))
	}
	to, from, cache := c.placeIn("shared", s.args[0]), c.placeIn("global", s.args[1]), c.cacheSlot()
	c.now.run = func(w *warp, active uint32) error {
		for m := active; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			if err := w.beginCopy(&w.caches[cache], lane, to.at(w, lane), from.at(w, lane), int(size)); err != nil {
				return w.inLane(lane, err)
			}
		}
		return nil
	}
}

func (w *warp) beginCopy(cache **allocation, lane int, to, from uint64, n int) error {
	for _, at := range []uint64{to, from} {
		if err := checkAligned(at, n); err != nil {
			return err
		}
	}
	source, err := w.read(cache, lane, "global", from, n)
	if err != nil {
		return err
	}
	m := w.block.shared
	if err := m.store(w, lane, to, slices.Repeat([]byte{garbage}, n)); err != nil {
		return err
	}
	for i := range n {
		m.cells[to+uint64(i)].written = 0 // undefined
	}
	w.copies = append(w.copies, copying{lane, to, slices.Clone(source)})
	return nil
}

// endCopies lets the copies of lanes end.
func (w *warp) endCopies(active uint32) error {
	left := w.copies[:0]
	for _, c := range w.copies {
		if active>>c.lane&1 == 0 {
			left = append(left, c)
		} else if err := w.block.shared.store(w, c.lane, c.at, c.from); err != nil {
			return w.inLane(c.lane, err)
		}
	}
	w.copies = left
	return nil
}

// copyingLane is one of some lanes that has a copy under way, -1 if none has.
func (w *warp) copyingLane(of uint32) int {
	for _, c := range w.copies {
		if of>>c.lane&1 != 0 {
			return c.lane
		}
	}
	return -1
}
