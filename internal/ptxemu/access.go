package ptxemu

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"tgc/internal/lists"
)

// Loads, stores and atomics.

var memoryInstructions = map[string]func(*compiler, *statement){
	"ld":   compileLoad,
	"ldu":  compileLoad,
	"st":   compileStore,
	"atom": compileAtomic,
	"red":  compileAtomic,
	"cp":   compileCopy,
}

// Windows of the generic address space.
const (
	sharedWindow = 1 << 56
	localWindow  = 2 << 56
	windowMask   = 0xff << 56
)

// place is an address operand: a space and, lane by lane, base + offset.
type place struct {
	space  string // global, shared, local, param, or generic
	slot   int    // of the base; -1 for a variable or a bare number
	symbol *variable
	offset uint64
	bits   int // of the base register
}

func (c *compiler) place(s *statement, a argument) *place {
	space := "generic"
	for _, m := range s.mods {
		switch m {
		case "global", "shared", "local", "param", "const":
			space = m
		case "shared::cta", "shared::cluster":
			space = "shared"
		}
	}
	return c.placeIn(space, a)
}

func (c *compiler) placeIn(space string, a argument) *place {
	p := &place{space: space, slot: -1, offset: uint64(a.offset), bits: 64}
	if !a.memory {
		c.fail("operand %s is no address", a)
	}
	if p.space == "const" {
		p.space = "global" // one address space here
	}
	if a.name == "" {
		return p
	}
	if v := c.variable(a.name); v != nil {
		p.symbol = v
		if p.space == "generic" && (v.space == "shared" || v.space == "local") {
			c.fail("%s is in %s memory", a.name, v.space)
		}
		return p
	}
	if p.space == "param" {
		c.fail("unknown parameter %s", a.name)
	}
	r := c.kernel.regs[a.name]
	if r == nil || r.bits < 32 || p.space == "global" && r.bits < 64 {
		c.fail("operand %s is no address", a)
		return p
	}
	p.slot, p.bits = c.source(argument{name: a.name}, r.bits), r.bits
	return p
}

// at is the address of a lane.
func (p *place) at(w *warp, lane int) uint64 {
	base := uint64(0)
	switch {
	case p.slot >= 0:
		base = w.data[p.slot][lane]
	case p.symbol != nil:
		base = w.grid.addressOf(p.symbol)
	}
	return (base + p.offset) & mask(p.bits)
}

// split resolves a generic address.
func (p *place) split(address uint64) (space string, offset uint64) {
	if p.space != "generic" {
		return p.space, address
	}
	switch address & windowMask {
	case sharedWindow:
		return "shared", address &^ windowMask
	case localWindow:
		return "local", address &^ windowMask
	}
	return "global", address
}

// cacheSlot is where a warp remembers which allocation an instruction touched
// last.
func (c *compiler) cacheSlot() int {
	c.code.caches++
	return c.code.caches - 1
}

// globalSpan finds global memory for an access, remembering the allocation.
func globalSpan(w *warp, cache **allocation, address uint64, n int) (*allocation, uint64, error) {
	a := *cache
	if a == nil || address < a.address || address+uint64(n) > a.end() || len(a.data) == 0 {
		a = w.grid.launch.Memory.find(address)
		if a == nil || address+uint64(n) > a.end() {
			return nil, 0, outside(w.grid.launch.Memory, address, n)
		}
		*cache = a
	}
	if a.windows {
		if err := w.grid.launch.Memory.inWindow(address, n); err != nil {
			return nil, 0, err
		}
	}
	return a, address - a.address, nil
}

func checkAligned(address uint64, n int) error {
	if address&uint64(n-1) != 0 {
		return &AddressError{address, Misaligned, fmt.Sprintf("address %#x is not aligned to %d", address, n)}
	}
	return nil
}

// read is n bytes at an address, all defined.
func (w *warp) read(cache **allocation, lane int, space string, at uint64, n int) ([]byte, error) {
	switch space {
	case "shared":
		m, at, err := w.sharedOf(at)
		if err != nil {
			return nil, err
		}
		if err := m.load(w, lane, at, n); err != nil {
			return nil, err
		}
		return m.data[at : at+uint64(n)], nil
	case "local":
		m := w.localOf(lane)
		if err := m.check(at, n); err != nil {
			return nil, err
		}
		for i := range n {
			if !m.written[at+uint64(i)] {
				return nil, undefinedError{space: "local", at: at + uint64(i)}
			}
		}
		return m.data[at : at+uint64(n)], nil
	}
	a, offset, err := globalSpan(w, cache, at, n)
	if err != nil {
		return nil, err
	}
	if !a.isDefined(offset, uint64(n)) {
		return nil, undefinedError{"global", at, n, a}
	}
	if w.ahead(lane) {
		if err := a.stampEarly(offset, uint64(n), w.grid.number, w.grid.floor); err != nil {
			return nil, err
		}
	}
	return a.data[offset : offset+uint64(n)], nil
}

func (w *warp) write(cache **allocation, lane int, space string, at uint64, from []byte) error {
	n := len(from)
	switch space {
	case "shared":
		m, at, err := w.sharedOf(at)
		if err != nil {
			return err
		}
		return m.store(w, lane, at, from)
	case "local":
		m := w.localOf(lane)
		if err := m.check(at, n); err != nil {
			return err
		}
		copy(m.data[at:], from)
		for i := range n {
			m.written[at+uint64(i)] = true
		}
		return nil
	}
	a, offset, err := globalSpan(w, cache, at, n)
	if err != nil {
		return err
	}
	if err := w.mayWrite(a, lane, offset, n); err != nil {
		return err
	}
	copy(a.data[offset:], from)
	a.mark(offset, uint64(n), true)
	return nil
}

// mayWrite reports a store to global memory that is not allowed.
func (w *warp) mayWrite(a *allocation, lane int, offset uint64, n int) error {
	switch {
	case a.readOnly:
		return &AddressError{a.address + offset, ReadOnly, fmt.Sprintf("%d bytes at %#x: a store to read-only memory", n, a.address+offset)}
	case w.ahead(lane):
		return fmt.Errorf("%d bytes at %#x: a store ahead of griddepcontrol.wait", n, a.address+offset)
	}
	return a.stampWrite(offset, uint64(n), w.grid.number)
}

func word(b []byte) uint64 {
	switch len(b) {
	case 8:
		return binary.LittleEndian.Uint64(b)
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	}
	return uint64(b[0])
}

// vectorOf is the number of elements of an access.
func vectorOf(s *statement) int {
	switch {
	case s.has("v2"):
		return 2
	case s.has("v4"):
		return 4
	case s.has("v8"):
		return 8
	}
	return 1
}

func (c *compiler) elements(a argument, n int) []argument {
	if n == 1 && a.list == nil {
		return []argument{a}
	}
	if len(a.list) != n {
		c.fail("operand %s, want %d elements", a, n)
		return nil
	}
	return a.list
}

func compileLoad(c *compiler, s *statement) {
	c.arity(s, 2, 2)
	k := c.kindInMemory(s)
	n := vectorOf(s)
	parts := c.elements(s.args[0], n)
	p := c.place(s, s.args[1])
	slots, masks := make([]int, n), make([]uint64, n)
	for i, e := range parts {
		slot, width := c.destination(e, min(k.bits, 16))
		slots[i], masks[i] = slot, k.resultMask(width)
	}
	if p.space == "param" {
		c.loadParam(k, p, slots, masks)
		return
	}
	size, cache := k.bits/8, c.cacheSlot()
	if p.space == "global" && p.slot >= 0 {
		c.now.run = func(w *warp, active uint32) error { return w.loadGlobal(p, k, cache, slots, masks, active) }
		return
	}
	c.now.run = func(w *warp, active uint32) error {
		for m := active; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			space, at := p.split(p.at(w, lane))
			if err := checkAligned(at, size*n); err != nil {
				return w.inLane(lane, err)
			}
			b, err := w.read(&w.caches[cache], lane, space, at, size*n)
			if err != nil {
				if err := w.loadPart(p, k, cache, slots, masks, lane, err); err != nil {
					return err
				}
				continue
			}
			for i, slot := range slots {
				w.data[slot][lane] = k.extend(word(b[i*size:(i+1)*size])) & masks[i]
			}
		}
		return nil
	}
}

// loadGlobal is a load by register addresses of global memory: most of what
// kernels read.
func (w *warp) loadGlobal(p *place, k kind, cache int, slots []int, masks []uint64, active uint32) error {
	size := k.bits / 8
	n := size * len(slots)
	base, whole := &w.data[p.slot], mask(n)
	for m := active; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		at := base[lane] + p.offset
		if at&uint64(n-1) != 0 {
			return w.inLane(lane, checkAligned(at, n))
		}
		a, offset, err := globalSpan(w, &w.caches[cache], at, n)
		if err != nil {
			return w.inLane(lane, err)
		}
		first := offset + a.skew // aligned: all bytes have their bits in one word
		if need := whole << (first % 64); a.shadow[first/64]&need != need || w.ahead(lane) {
			if _, err := w.read(&w.caches[cache], lane, "global", at, n); err != nil {
				if err := w.loadPart(p, k, cache, slots, masks, lane, err); err != nil {
					return err
				}
				continue
			}
		}
		b := a.data[offset : offset+uint64(n)]
		for i, slot := range slots {
			w.data[slot][lane] = k.extend(word(b[i*size:(i+1)*size])) & masks[i]
		}
	}
	return nil
}

// undefinedError is a read of n bytes that nothing has written. Wide loads over gaps
// make many that nobody reads.
type undefinedError struct {
	space string
	at    uint64
	n     int
	in    *allocation // of global memory
}

func (e undefinedError) Error() string {
	if e.in == nil {
		return fmt.Sprintf("byte %d of %s memory is not defined", e.at, e.space)
	}
	return fmt.Sprintf("%d bytes at %#x (byte %d of an allocation of %d) are not defined", e.n, e.at, e.at-e.in.address, len(e.in.data))
}

// loadPart is the load of a lane some of whose bytes are not defined: those
// elements are not either, which is an error where they are used. A wide load may
// reach over gaps.
func (w *warp) loadPart(p *place, k kind, cache int, slots []int, masks []uint64, lane int, why error) error {
	if _, ok := why.(undefinedError); !ok {
		return w.inLane(lane, why)
	}
	size := k.bits / 8
	space, at := p.split(p.at(w, lane))
	for i, slot := range slots {
		b, err := w.read(&w.caches[cache], lane, space, at+uint64(i*size), size)
		if err != nil {
			w.holes = append(w.holes, hole{slot, lane, err})
			continue
		}
		w.data[slot][lane] = k.extend(word(b)) & masks[i]
	}
	return nil
}

// hole is a register that a load left undefined in a lane, and why.
type hole struct {
	slot, lane int
	why        error
}

// laneError is an error of one lane of a warp.
type laneError struct {
	lane int
	error
}

func (w *warp) inLane(lane int, err error) error { return laneError{lane, err} }

func (c *compiler) loadParam(k kind, p *place, slots []int, masks []uint64) {
	if p.symbol == nil || p.symbol.space != "param" {
		c.fail("no parameter is named")
		return
	}
	index := -1
	for i, v := range c.kernel.params {
		if v == p.symbol {
			index = i
		}
	}
	size := k.bits / 8
	if end := int64(p.offset) + int64(size*len(slots)); int64(p.offset) < 0 || end > int64(p.symbol.size) {
		c.fail("%d bytes at %d of a parameter of %d", size*len(slots), int64(p.offset), p.symbol.size)
	}
	c.now.run = func(w *warp, active uint32) error {
		b := w.grid.launch.Params[index][p.offset:]
		for i, slot := range slots {
			v := k.extend(word(b[i*size:(i+1)*size])) & masks[i]
			for m := active; m != 0; m &= m - 1 {
				w.data[slot][bits.TrailingZeros32(m)] = v
			}
		}
		return nil
	}
}

func compileStore(c *compiler, s *statement) {
	c.arity(s, 2, 2)
	k := c.kindInMemory(s)
	n := vectorOf(s)
	parts := c.elements(s.args[1], n)
	p := c.place(s, s.args[0])
	slots := make([]int, n)
	for i, e := range parts {
		slots[i] = c.sourceOf(k, e)
	}
	size, cache := k.bits/8, c.cacheSlot()
	c.now.run = func(w *warp, active uint32) error {
		var buffer [64]byte
		for m := active; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			space, at := p.split(p.at(w, lane))
			if err := checkAligned(at, size*n); err != nil {
				return w.inLane(lane, err)
			}
			for i, slot := range slots {
				putWord(buffer[i*size:(i+1)*size], w.data[slot][lane])
			}
			if err := w.write(&w.caches[cache], lane, space, at, buffer[:size*n]); err != nil {
				return w.inLane(lane, err)
			}
		}
		return nil
	}
}

func putWord(b []byte, v uint64) {
	switch len(b) {
	case 8:
		binary.LittleEndian.PutUint64(b, v)
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	default:
		b[0] = byte(v)
	}
}

// compileAtomic is atom, and red, which gives no result.
func compileAtomic(c *compiler, s *statement) {
	k := c.kindInMemory(s)
	combine, operands := c.atomicFunction(s, k)
	d, first := -1, 0
	if s.op == "atom" {
		first = 1
	}
	c.arity(s, first+1+operands, first+1+operands)
	if first == 1 {
		d, _ = c.destination(s.args[0], k.bits)
	}
	args := s.args[first:]
	p := c.place(s, args[0])
	slots := lists.Make(operands, func(i int) int { return c.sourceOf(k, args[1+i]) })
	size, cache := k.bits/8, c.cacheSlot()
	c.now.run = func(w *warp, active uint32) error {
		for m := active; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			b, err := w.atomicAt(&w.caches[cache], p, lane, size)
			if err != nil {
				return w.inLane(lane, err)
			}
			old := word(b)
			x, y := w.data[slots[0]][lane], uint64(0)
			if operands == 2 {
				y = w.data[slots[1]][lane]
			}
			putWord(b, combine(old, x, y))
			if d >= 0 {
				w.data[d][lane] = old
			}
		}
		return nil
	}
}

// atomicAt is the memory of an atomic access, to be changed in place.
func (w *warp) atomicAt(cache **allocation, p *place, lane, size int) ([]byte, error) {
	space, at := p.split(p.at(w, lane))
	if err := checkAligned(at, size); err != nil {
		return nil, err
	}
	switch space {
	case "shared":
		m := w.block.shared
		if err := m.atomic(w, lane, at, size); err != nil {
			return nil, err
		}
		return m.data[at : at+uint64(size)], nil
	case "local":
		return nil, fmt.Errorf("an atomic access of local memory")
	}
	b, err := w.read(cache, lane, space, at, size)
	if err == nil {
		err = w.mayWrite(*cache, lane, at-(*cache).address, size)
	}
	return b, err
}

// atomicFunction gives the new value from the old one and the operands.
func (c *compiler) atomicFunction(s *statement, k kind) (f func(old, x, y uint64) uint64, operands int) {
	for _, m := range s.mods {
		switch m {
		case "add":
			if k.pair {
				c.fail("atomic pairs are not supported")
			}
			if k.float() {
				return func(old, x, _ uint64) uint64 { return toBits(k, fromBits(k, old)+fromBits(k, x)) }, 1
			}
			return func(old, x, _ uint64) uint64 { return old + x }, 1
		case "and":
			return func(old, x, _ uint64) uint64 { return old & x }, 1
		case "or":
			return func(old, x, _ uint64) uint64 { return old | x }, 1
		case "xor":
			return func(old, x, _ uint64) uint64 { return old ^ x }, 1
		case "exch":
			return func(_, x, _ uint64) uint64 { return x }, 1
		case "min", "max":
			isMin := m == "min"
			return func(old, x, _ uint64) uint64 {
				if k.less(x, old) == isMin {
					return x
				}
				return old
			}, 1
		case "inc":
			return func(old, x, _ uint64) uint64 {
				if !k.less(old, x) {
					return 0
				}
				return old + 1
			}, 1
		case "cas":
			return func(old, x, y uint64) uint64 {
				if old == x&mask(k.bits) {
					return y
				}
				return old
			}, 2
		}
	}
	c.fail("unknown atomic operation")
	return nil, 1
}
