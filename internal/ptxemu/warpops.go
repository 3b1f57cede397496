package ptxemu

import (
	"fmt"
	"math/bits"
	"strings"
)

// Instructions of a whole warp.

var warpInstructions = map[string]func(*compiler, *statement){
	"shfl":       compileShuffle,
	"vote":       compileVote,
	"activemask": compileActive,
	"redux":      compileReduce,
	"mma":        compileMatrix,
	"wgmma":      compileGroup,
}

// checkMembers looks at the mask operand of a .sync instruction: all lanes that it
// names must be there.
func checkMembers(w *warp, slot int, active uint32) error {
	for m := active; m != 0; m &= m - 1 {
		mask := uint32(w.data[slot][bits.TrailingZeros32(m)])
		if mask&w.exists != active {
			return fmt.Errorf("threads %08x are there, the mask names %08x", active, mask&w.exists)
		}
	}
	return nil
}

func compileShuffle(c *compiler, s *statement) {
	c.arity(s, 5, 5)
	if !s.has("sync") || s.last(0) != "b32" {
		c.fail("only shfl.sync of b32 is supported")
	}
	a := c.source(s.args[1], 32)
	b := c.source(s.args[2], 32)
	limit := c.source(s.args[3], 32)
	members := c.source(s.args[4], 32)
	d, _ := c.destination(argument{name: s.args[0].name}, 32)
	inside := -1
	if s.args[0].pair != "" {
		inside = c.predicateDestination(s.args[0].pair)
	}
	mode := s.mod(1)
	c.now.run = func(w *warp, active uint32) error {
		if err := checkMembers(w, members, active); err != nil {
			return err
		}
		from := w.data[a]
		for m := active; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			source, ok := shuffleSource(mode, lane, int(w.data[b][lane]&31), w.data[limit][lane])
			if active>>source&1 == 0 {
				return w.inLane(lane, fmt.Errorf("reads lane %d, which is not there", source))
			}
			w.data[d][lane] = from[source]
			if inside >= 0 {
				w.preds[inside] = w.preds[inside]&^(1<<lane) | bit(ok)<<lane
			}
		}
		return nil
	}
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// shuffleSource is the lane to read, and whether it lies inside of the segment
// that the last operand describes.
func shuffleSource(mode string, lane, b int, c uint64) (int, bool) {
	clamp, segment := int(c&31), int(c>>8&31)
	most := lane&segment | clamp&^segment
	least := lane & segment
	var j int
	var ok bool
	switch mode {
	case "up":
		j = lane - b
		ok = j >= most
	case "down":
		j = lane + b
		ok = j <= most
	case "bfly":
		j = lane ^ b
		ok = j <= most
	default: // idx
		j = least | b&^segment
		ok = j <= most
	}
	if !ok {
		j = lane
	}
	return j, ok
}

func compileVote(c *compiler, s *statement) {
	c.arity(s, 3, 3)
	if !s.has("sync") {
		c.fail("only vote.sync is supported")
	}
	p := c.predicateSource(s.args[1])
	members := c.source(s.args[2], 32)
	if s.has("ballot") {
		d, _ := c.destination(s.args[0], 32)
		c.now.run = func(w *warp, active uint32) error {
			if err := checkMembers(w, members, active); err != nil {
				return err
			}
			votes := uint64(p.read(w) & active)
			for m := active; m != 0; m &= m - 1 {
				w.data[d][bits.TrailingZeros32(m)] = votes
			}
			return nil
		}
		return
	}
	d := c.predicateDestination(s.args[0].name)
	holds := map[string]func(yes, active uint32) bool{
		"all": func(yes, active uint32) bool { return yes == active },
		"any": func(yes, _ uint32) bool { return yes != 0 },
		"uni": func(yes, active uint32) bool { return yes == active || yes == 0 },
	}[s.mod(min(1, len(s.mods)-1))]
	if holds == nil {
		c.fail("unknown vote")
	}
	c.now.run = func(w *warp, active uint32) error {
		if err := checkMembers(w, members, active); err != nil {
			return err
		}
		w.preds[d] &^= active
		if holds(p.read(w)&active, active) {
			w.preds[d] |= active
		}
		return nil
	}
}

func compileActive(c *compiler, s *statement) {
	c.arity(s, 1, 1)
	d, _ := c.destination(s.args[0], 32)
	c.now.run = func(w *warp, active uint32) error {
		for m := active; m != 0; m &= m - 1 {
			w.data[d][bits.TrailingZeros32(m)] = uint64(active)
		}
		return nil
	}
}

// compileReduce is redux.sync of integers.
func compileReduce(c *compiler, s *statement) {
	c.arity(s, 3, 3)
	k := c.kind(s, 0)
	f, _ := c.atomicFunction(s, k)
	if k.float() {
		c.fail("no redux of this type")
	}
	a := c.source(s.args[1], 32)
	members := c.source(s.args[2], 32)
	d, _ := c.destination(s.args[0], 32)
	c.now.run = func(w *warp, active uint32) error {
		if err := checkMembers(w, members, active); err != nil {
			return err
		}
		first := bits.TrailingZeros32(active)
		v := w.data[a][first]
		for m := active &^ (1 << first); m != 0; m &= m - 1 {
			v = f(v, w.data[a][bits.TrailingZeros32(m)], 0) & mask(32)
		}
		for m := active; m != 0; m &= m - 1 {
			w.data[d][bits.TrailingZeros32(m)] = v
		}
		return nil
	}
}

// matrix is a shape of mma.sync with dense operands of 32-bit words, or of f64.
type matrix struct {
	m, n, k int
	a, b    kind
	sum     kind // f64, f32 or s32
}

// per is how many elements are a word.
func (x *matrix) per() int { return max(32/x.a.bits, 1) }

// compileMatrix is mma.sync.aligned.SHAPE.row.col.D.A.B.C.
func compileMatrix(c *compiler, s *statement) {
	c.arity(s, 4, 4)
	if len(s.mods) != 9 || s.mod(3) != "row" || s.mod(4) != "col" || s.mod(5) != s.mod(8) {
		c.fail("only dense row.col products are supported")
	}
	var x matrix
	if _, err := fmt.Sscanf(s.mod(2), "m%dn%dk%d", &x.m, &x.n, &x.k); err != nil || !strings.HasPrefix(s.mod(2), "m") {
		c.fail("shape %q", s.mod(2))
	}
	x.a, x.b = c.kindOf(s.mod(6)), c.kindOf(s.mod(7))
	x.sum = c.kindOf(s.mod(5))
	short := x.a.bits <= 16 && (s.mod(5) == "f32" || s.mod(5) == "s32") && x.k*x.a.bits%128 == 0 && x.k*x.a.bits <= 256
	long := s.mod(2) == "m16n8k16" && s.mod(5) == "f64" && x.a == x.sum
	if !short && !long || x.a.float() != x.sum.float() || x.a.bits != x.b.bits || x.m != 8 && x.m != 16 || x.n != 8 {
		c.fail("this product is not supported")
	}
	if c.err == nil {
		c.matrix(s, x)
	}
}

func (c *compiler) matrix(s *statement, x matrix) {
	per := x.per()
	counts := [4]int{x.m * x.n / lanes, x.m * x.k / lanes / per, x.n * x.k / lanes / per, x.m * x.n / lanes}
	bits := [4]int{x.sum.bits, x.a.bits * per, x.a.bits * per, x.sum.bits}
	var slots [4][]int
	for i := 3; i >= 0; i-- { // the result last, as it may be an operand too
		for _, p := range c.elements(s.args[i], counts[i]) {
			var slot int
			if i == 0 {
				slot, _ = c.destination(p, bits[i])
			} else {
				slot = c.source(p, bits[i])
			}
			slots[i] = append(slots[i], slot)
		}
	}
	c.now.full = true
	c.now.run = func(w *warp, active uint32) error {
		if active != ^uint32(0) {
			return fmt.Errorf("a matrix product of a partial warp")
		}
		x.multiply(w, slots)
		return nil
	}
}

// multiply computes in f64 (or int64) and rounds once: the order in which a
// GPU sums is not defined. The layout of fragments is that of PTX: with g =
// lane/4 and t = lane%4, words of A run over rows g, g+8 and then over halves
// of K, at k = t*per; those of B over halves of K in column g; C has rows g, g+8
// of columns 2t, 2t+1.
func (x *matrix) multiply(w *warp, slots [4][]int) {
	per := x.per()
	rows := x.m / 8
	span := 4 * per // k covered by one word of all four t
	var a [16][64]float64
	var b [8][64]float64
	for lane := range lanes {
		g, t := lane/4, lane%4
		for i, slot := range slots[1] {
			for e := range per {
				a[g+8*(i%rows)][i/rows*span+t*per+e] = x.a.element(w.data[slot][lane], e)
			}
		}
		for i, slot := range slots[2] {
			for e := range per {
				b[g][i*span+t*per+e] = x.b.element(w.data[slot][lane], e)
			}
		}
	}
	sum := x.sum
	var out [4]vector
	for lane := range lanes {
		g, t := lane/4, lane%4
		left, right := b[2*t][:x.k], b[2*t+1][:x.k]
		for i := 0; i < len(slots[3]); i += 2 { // two columns at once: the sums do not wait for each other
			row := a[g+4*i][:x.k]
			v0, v1 := sum.element(w.data[slots[3][i]][lane], 0), sum.element(w.data[slots[3][i+1]][lane], 0)
			for k, y := range row {
				v0 += y * left[k]
				v1 += y * right[k]
			}
			for j, v := range [2]float64{v0, v1} {
				if sum.float() {
					out[i+j][lane] = toBits(sum, v)
				} else {
					out[i+j][lane] = uint64(int64(v)) & mask(32)
				}
			}
		}
	}
	for i, slot := range slots[0] {
		w.data[slot] = out[i]
	}
}

// element is a part of a word as a number.
func (k kind) element(word uint64, i int) float64 {
	v := word >> (i * k.bits) & mask(k.bits)
	switch {
	case k.float():
		return fromBits(k, v)
	case k.signed():
		return float64(int64(k.extend(v)))
	}
	return float64(v)
}
