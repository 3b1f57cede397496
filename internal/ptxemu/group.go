package ptxemu

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Products of warpgroups (wgmma): of f16 and bf16 in shared memory, in lines of 128 bytes with permuted pieces, into f32. Each warp computes
// its own rows when it comes to the instruction. The accumulators have no values from then on until they are waited for.

// Sizes of such products.
const (
	groupWarps  = 4
	groupRows   = 16 // of a warp
	groupPoints = 16
	pieceBytes  = 16 // eight elements along the sum, side by side
	pieceLength = pieceBytes / 2
	lineBytes   = 128
	rowGroup    = 8                       // lines that pieces are permuted by
	groupStart  = 7<<7 | 2*pieceBytes - 1 // bits of an address at which no matrix begins
	// groupLayout is all of a descriptor but the address: the distance of pieces, without a meaning for such lines, that of
	// eight rows, and how pieces are permuted.
	groupLayout = 1<<16 | rowGroup*lineBytes/pieceBytes<<32 | 1<<62
)

var errRunning = errors.New("products of the warpgroup run, and nothing waited for them")

// groupResult is the value of a register when what runs is waited for.
type groupResult struct {
	value     vector
	product   *groupMatrix
	committed bool
}

func compileGroup(c *compiler, s *statement) {
	c.now.full = true
	switch s.mod(0) {
	case "mma_async":
		compileGroupMatrix(c, s)
	case "fence":
		c.arity(s, 0, 0)
		c.now.run = func(w *warp, _ uint32) error {
			w.ordered = true
			return nil
		}
	case "commit_group":
		c.arity(s, 0, 0)
		c.now.run = func(w *warp, _ uint32) error {
			for _, r := range w.running {
				r.committed = true
			}
			return nil
		}
	case "wait_group":
		if c.arity(s, 1, 1); !s.args[0].number || s.args[0].bits != 0 {
			c.fail("only a wait for all groups is supported")
		}
		c.now.run = func(w *warp, active uint32) error { return w.endProducts(active) }
	default:
		c.fail("unknown wgmma")
	}
}

// endProducts gives registers the results of the products that were committed.
func (w *warp) endProducts(active uint32) error {
	w.ordered = false
	for slot, r := range w.running {
		if !r.committed {
			continue
		}
		if w.defined[slot] != 0 {
			return fmt.Errorf("an accumulator of a product was written while it ran: %s", r.product.step.text)
		}
		w.data[slot] = r.value
		w.defined[slot] = active
		delete(w.running, slot)
	}
	return nil
}

// groupMatrix is a product.
type groupMatrix struct {
	step    *step
	columns int
	elem    kind
	sums    []int
	a, b    int // descriptors
	adds    predicateSource
}

// compileGroupMatrix is wgmma.mma_async.sync.aligned.SHAPE.f32.A.B D, a, b, adds, 1, 1, 0, 0.
func compileGroupMatrix(c *compiler, s *statement) {
	c.arity(s, 8, 8)
	if len(s.mods) != 7 || s.mod(4) != "f32" || s.mod(5) != s.mod(6) || s.mod(5) != "f16" && s.mod(5) != "bf16" {
		c.fail("only products of f16 and bf16 into f32 are supported")
		return
	}
	x := &groupMatrix{step: c.now, elem: c.kindOf(s.mod(5))}
	if n, err := fmt.Sscanf(s.mod(3), "m64n%dk16", &x.columns); n != 1 || err != nil || x.columns < 8 || x.columns > 256 || x.columns%8 != 0 ||
		s.mod(3) != fmt.Sprintf("m64n%dk16", x.columns) {
		c.fail("shape %q", s.mod(3))
		return
	}
	for i, want := range []uint64{1, 1, 0, 0} {
		if a := s.args[4+i]; !a.number || a.bits != want {
			c.fail("factors that are negated or transposed are not supported")
		}
	}
	for _, e := range c.elements(s.args[0], x.columns/2) {
		writes := len(c.now.writes)
		slot, width := c.destination(e, 32)
		if c.now.writes = c.now.writes[:writes]; slot == 0 || width != 32 || slices.Contains(x.sums, slot) {
			c.fail("accumulator %s", e)
		}
		x.sums = append(x.sums, slot)
	}
	c.now.joins = x.sums
	x.a, x.b = c.source(s.args[1], 64), c.source(s.args[2], 64)
	x.adds = c.predicateSource(s.args[3])
	c.now.run = x.run
}

func (x *groupMatrix) run(w *warp, active uint32) error {
	adds := x.adds.read(w) & active
	switch {
	case active != ^uint32(0) || w.grid.threads%(groupWarps*lanes) != 0:
		return fmt.Errorf("a product of a partial warpgroup")
	case adds != 0 && adds != active:
		return fmt.Errorf("the predicate differs within the warp")
	case slices.ContainsFunc(w.block.warps, func(v *warp) bool { return v.unshown }):
		return fmt.Errorf("stores before the last barrier were not followed by fence.proxy.async")
	}
	sums, err := x.accumulators(w, adds != 0)
	if err != nil {
		return err
	}
	if err := x.agree(w); err != nil {
		return err
	}
	first := w.index % groupWarps * groupRows
	a, err := x.matrix(w, x.a, first, groupRows)
	if err != nil {
		return err
	}
	b, err := x.matrix(w, x.b, 0, x.columns)
	if err != nil {
		return err
	}
	x.multiply(w, a, b, sums)
	return nil
}

// agree compares the descriptors with those of the other warps of the warpgroup, whichever came first.
func (x *groupMatrix) agree(w *warp) error {
	mine := groupOperands{x, w.data[x.a][0], w.data[x.b][0]}
	group := &w.block.products[w.index/groupWarps]
	if w.products == len(*group) {
		*group = append(*group, mine)
	}
	theirs := (*group)[w.products]
	w.products++
	if mine != theirs {
		return fmt.Errorf("descriptors %#x and %#x, another warp of the warpgroup comes to `%s` with %#x and %#x", mine.a, mine.b, theirs.product.step.text, theirs.a, theirs.b)
	}
	return nil
}

// groupOperands are what all warps of a warpgroup must come to a product with.
type groupOperands struct {
	product *groupMatrix
	a, b    uint64
}

// accumulators are their values before the product: those that another product on the same registers gives, or what
// is in the registers.
func (x *groupMatrix) accumulators(w *warp, adds bool) ([]vector, error) {
	values := make([]vector, len(x.sums))
	running := 0
	for i, slot := range x.sums {
		r := w.running[slot]
		switch {
		case r != nil && (!adds || !slices.Equal(r.product.sums, x.sums)):
			return nil, fmt.Errorf("an accumulator is one of another product, which runs")
		case r != nil:
			running++
			values[i] = r.value
		case adds && w.defined[slot] != ^uint32(0):
			return nil, w.undefined(slot)
		case adds:
			values[i] = w.data[slot]
		}
	}
	if running == 0 && !w.ordered {
		return nil, fmt.Errorf("no wgmma.fence before the product")
	}
	return values, nil
}

// matrix reads rows (columns of B) by a descriptor. The lanes of the warp count as readers in turn, so that a store
// by any one of them without a barrier in between is a race.
func (x *groupMatrix) matrix(w *warp, slot, first, rows int) ([]float64, error) {
	descriptor := w.data[slot][0]
	for lane, d := range w.data[slot] {
		if d != descriptor {
			return nil, w.inLane(lane, fmt.Errorf("descriptor %#x, another lane's is %#x", d, descriptor))
		}
	}
	start := descriptor & mask(14) * pieceBytes
	if layout := descriptor &^ mask(14); layout != groupLayout {
		return nil, fmt.Errorf("descriptor %#x: bits %#x for the layout, want %#x", descriptor, layout, uint64(groupLayout))
	}
	if start&groupStart != 0 {
		return nil, fmt.Errorf("descriptor %#x: a matrix at %#x, not at the start of eight rows, and of %d points of the sum", descriptor, start, groupPoints)
	}
	out := make([]float64, rows*groupPoints)
	m := w.block.shared
	for k := 0; k < groupPoints; k += pieceLength {
		for r := range rows {
			at := start + uint64(first+r)*lineBytes + uint64(k/pieceLength)*pieceBytes
			at ^= at / lineBytes % rowGroup * pieceBytes
			if err := m.load(w, r%lanes, at, pieceBytes); err != nil {
				return nil, w.inLane(r%lanes, err)
			}
			for e := range pieceLength {
				out[r*groupPoints+k+e] = fromBits(x.elem, word(m.data[at+uint64(2*e):][:2]))
			}
		}
	}
	return out, nil
}

// multiply computes in f64 and rounds once. Eight columns after the other are laid out as those of mma.sync.
func (x *groupMatrix) multiply(w *warp, a, b []float64, sums []vector) {
	if w.running == nil {
		w.running = make(map[int]*groupResult)
	}
	if w.origins == nil {
		w.origins = make(map[int]origin)
	}
	for i, slot := range x.sums {
		r := &groupResult{product: x}
		for lane := range lanes {
			row, column := lane/4+i/2%2*8, i/4*8+lane%4*2+i%2
			v := float64(math.Float32frombits(uint32(sums[i][lane])))
			right := b[column*groupPoints:][:groupPoints]
			for k, y := range a[row*groupPoints:][:groupPoints] {
				v += y * right[k]
			}
			r.value[lane] = uint64(math.Float32bits(float32(v)))
		}
		w.running[slot] = r
		w.defined[slot] = 0
		w.origins[slot] = origin{x.step, errRunning}
	}
}
