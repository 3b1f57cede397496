package ptx

import (
	"fmt"
	"strings"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Memory instructions. A contiguous access is cut into the widest pieces that
// its proven alignment allows: 16, 8, 4 bytes in one instruction, then halves
// and bytes put together.

func (r *renderer) memory(in *program.Instr) error {
	switch in.Op {
	case program.Alloca:
		return r.alloca(in)
	case program.Load:
		return r.load(in)
	case program.Guarded:
		return r.guarded(in)
	case program.Store:
		return r.store(in)
	case program.Gather:
		return r.gather(in)
	case program.Scatter:
		return r.scatter(in)
	case program.Prefetch:
		if p := in.Args[0]; p.Type.Space == program.GlobalSpace {
			r.ins("prefetch.global.L2 %s", r.values[p.ID].address)
		}
	}
	return nil
}

var spaceNames = map[program.Space]string{
	program.GlobalSpace: "global", program.LocalSpace: "local",
	program.SharedSpace: "shared", program.ConstSpace: "global",
}

// loadName is ld with space and cache policy.
//
// Read-only data goes through .nc, which the assembler may move over anything.
// In a program that waits for the previous grid that holds before the wait (the
// rule for loads there) but after it only where the program says so: the
// previous grid may have written the rest.
func (r *renderer) loadName(p *program.Value, cache program.Cache) string {
	space := p.Type.Space
	name := "ld." + spaceNames[space]
	if space == program.ConstSpace {
		return name + ".nc"
	}
	if space != program.GlobalSpace {
		return name
	}
	buffer := r.access[p]
	readOnly := buffer != nil && buffer.Read && !buffer.Write
	switch cache {
	case program.CacheL2:
		return name + ".cg"
	case program.CacheConst:
		if readOnly {
			return name + ".nc"
		}
	case program.CacheStream:
		if readOnly {
			return name + ".nc.L1::no_allocate"
		}
		return name + ".L1::no_allocate"
	default:
		if readOnly && !r.waited {
			return name + ".nc"
		}
	}
	return name
}

func (r *renderer) storeName(p *program.Value, cache program.Cache) string {
	name := "st." + spaceNames[p.Type.Space]
	if p.Type.Space == program.GlobalSpace {
		switch cache {
		case program.CacheStream:
			return name + ".cs"
		case program.CacheL2:
			return name + ".cg"
		}
	}
	return name
}

// vectorName is the type of an access of 32-bit registers.
var vectorNames = map[int]string{4: "b32", 8: "v2.b32", 16: "v4.b32"}

func list(regs []operand) string {
	if len(regs) == 1 {
		return regs[0].reg
	}
	names := make([]string, len(regs))
	for i, o := range regs {
		names[i] = o.reg
	}
	return "{" + strings.Join(names, ", ") + "}"
}

func (r *renderer) load(in *program.Instr) error {
	p := in.Args[0]
	a := r.values[p.ID].address
	if a.array != nil {
		r.loadArray(in, a)
		return nil
	}
	r.loadInto(in.Result, r.loadName(p, in.Cache), a, in.Align)
	return nil
}

// loadInto loads a value of v's type and makes it v.
func (r *renderer) loadInto(v *program.Value, name string, a *address, align int) {
	t := v.Type
	size := t.Elem.Size()
	switch {
	case t.Lanes == 1 && size <= 2 && align >= size:
		r.set(v, []operand{r.loadNarrow(name, t.Elem, a)})
	case size == 8 && align >= 8:
		r.set(v, r.loadWide(name, a, t.Lanes, align))
	case size == 8:
		words := r.loadWords(name, a, 8*t.Lanes, align)
		lanes := make([]operand, t.Lanes)
		for i := range lanes {
			lanes[i] = r.reg(wide)
			r.ins("mov.b64 %s, {%s, %s}", lanes[i].reg, words[2*i].reg, words[2*i+1].reg)
		}
		r.set(v, lanes)
	case size == 4:
		r.set(v, r.loadWords(name, a, 4*t.Lanes, align))
	case t.Elem == ir.Bool:
		words := r.loadWords(name, a, t.Lanes, align)
		lanes := make([]operand, t.Lanes)
		for i := range lanes {
			lanes[i] = r.compare("ne", number{dtype: ir.U32, class: word}, r.unpack(words, ir.U8, i), operand{})
		}
		r.set(v, lanes)
	default:
		words := r.loadWords(name, a, size*t.Lanes, align)
		if isPacked(t) {
			r.setWords(v, words)
		} else {
			r.set(v, []operand{r.unpack(words, t.Elem, 0)})
		}
	}
}

// loadNarrow loads one element of 1 or 2 bytes, extended.
func (r *renderer) loadNarrow(name string, d ir.DType, a *address) operand {
	o := r.reg(word)
	kind := "u"
	if isSignExtended(d) {
		kind = "s"
	}
	r.ins("%s.%s%d %s, %s", name, kind, 8*d.Size(), o.reg, a)
	if d == ir.Bool {
		return r.compare("ne", number{dtype: ir.U32, class: word}, o, operand{})
	}
	return o
}

// loadWide loads elements of 8 bytes, aligned to 8 at least.
func (r *renderer) loadWide(name string, a *address, lanes, align int) []operand {
	var out []operand
	for _, c := range gpu.Pieces(8*lanes, align) {
		regs := []operand{r.reg(wide)}
		kind := "b64"
		if c.Width == 16 {
			regs = append(regs, r.reg(wide))
			kind = "v2.b64"
		}
		r.ins("%s.%s %s, %s", name, kind, list(regs), a.plus(int64(c.Off)))
		out = append(out, regs...)
	}
	return out
}

// loadWords loads n bytes as 32-bit words; bytes past n are 0.
func (r *renderer) loadWords(name string, a *address, n, align int) []operand {
	words := make([]operand, (n+3)/4)
	for _, c := range gpu.Pieces(n, align) {
		at := a.plus(int64(c.Off))
		if c.Width < 4 {
			o := r.reg(word)
			r.ins("%s.u%d %s, %s", name, 8*c.Width, o.reg, at)
			words[c.Off/4] = r.insertBytes(words[c.Off/4], o, c.Off%4, c.Width)
			continue
		}
		regs := make([]operand, c.Width/4)
		for i := range regs {
			regs[i] = r.reg(word)
			words[c.Off/4+i] = regs[i]
		}
		r.ins("%s.%s %s, %s", name, vectorNames[c.Width], list(regs), at)
	}
	return words
}

// insertBytes puts the low bytes of o into a word at a byte offset; what the
// word holds so far lies below.
func (r *renderer) insertBytes(into, o operand, at, width int) operand {
	if at == 0 {
		return o
	}
	selector := 0x3210
	for b := range width {
		shift := 4 * (at + b)
		selector = selector&^(0xf<<shift) | (4+b)<<shift
	}
	return r.prmt(into, o, selector)
}

// guarded loads under a predicate, into registers that hold the other value
// already; pieces that must be put together, under a branch.
func (r *renderer) guarded(in *program.Instr) error {
	guard, p, other := in.Args[0], in.Args[1], in.Args[2]
	a := r.values[p.ID].address
	if a.array != nil {
		return fmt.Errorf("a guarded load of registers")
	}
	cond := r.lane(guard, 0)
	name := r.loadName(p, in.Cache)
	if cond.literal() {
		if cond.bits&1 != 0 {
			r.loadInto(in.Result, name, a, in.Align)
			return nil
		}
		out := r.like(other, in.Result)
		if isPacked(in.Result.Type) {
			r.setWords(in.Result, out)
		} else {
			r.set(in.Result, out)
		}
		return nil
	}
	source := r.like(other, in.Result)
	to := r.fresh(in.Result)
	c := r.classOf(in.Result)
	for i := range to {
		r.move(to[i], source[i], c)
	}
	if r.simple(in.Result.Type, in.Align) {
		r.loadGuarded("@"+cond.reg+" "+name, in.Result, to, a, in.Align)
		return nil
	}
	skip := r.label()
	r.ins("@!%s bra %s", cond.reg, skip)
	r.scopes.Open()
	loaded := &program.Value{ID: in.Result.ID, Type: in.Result.Type}
	r.loadInto(loaded, name, a, in.Align)
	h := r.values[loaded.ID]
	from := h.words
	if from == nil {
		from = h.lanes
	}
	for i := range to {
		r.move(to[i], from[i], c)
	}
	r.scopes.Close()
	r.place(skip)
	if isPacked(in.Result.Type) {
		r.setWords(in.Result, to)
	} else {
		r.set(in.Result, to)
	}
	return nil
}

// simple reports an access whose pieces are whole registers.
func (r *renderer) simple(t program.Type, align int) bool {
	if t.Elem == ir.Bool {
		return false
	}
	size := t.Elem.Size()
	if t.Lanes == 1 && size <= 2 {
		return align >= size
	}
	if size == 8 {
		return align >= 8
	}
	return align >= 4 && size*t.Lanes%4 == 0
}

func (r *renderer) loadGuarded(name string, v *program.Value, to []operand, a *address, align int) {
	t := v.Type
	size := t.Elem.Size()
	if t.Lanes == 1 && size <= 2 {
		kind := "u"
		if isSignExtended(t.Elem) {
			kind = "s"
		}
		r.ins("%s.%s%d %s, %s", name, kind, 8*size, to[0].reg, a)
		return
	}
	for _, c := range gpu.Pieces(size*t.Lanes, align) {
		at := a.plus(int64(c.Off))
		if size == 8 {
			regs, kind := to[c.Off/8:][:c.Width/8], "b64"
			if len(regs) == 2 {
				kind = "v2.b64"
			}
			r.ins("%s.%s %s, %s", name, kind, list(regs), at)
			continue
		}
		r.ins("%s.%s %s, %s", name, vectorNames[c.Width], list(to[c.Off/4:][:c.Width/4]), at)
	}
}

func (r *renderer) store(in *program.Instr) error {
	p, v := in.Args[0], in.Args[1]
	a := r.values[p.ID].address
	if a.array != nil {
		r.storeArray(v, a)
		return nil
	}
	r.storeAt(r.storeName(p, in.Cache), v, a, in.Align)
	return nil
}

func (r *renderer) storeAt(name string, v *program.Value, a *address, align int) {
	t := v.Type
	size := t.Elem.Size()
	if t.Lanes == 1 && size <= 2 && align >= size {
		r.ins("%s.u%d %s, %s", name, 8*size, a, r.stored(v, 0).reg)
		return
	}
	if size == 8 && align >= 8 {
		for _, c := range gpu.Pieces(8*t.Lanes, align) {
			regs, kind := []operand{r.inReg(r.wideLane(v, c.Off/8), wide)}, "b64"
			if c.Width == 16 {
				regs = append(regs, r.inReg(r.wideLane(v, c.Off/8+1), wide))
				kind = "v2.b64"
			}
			r.ins("%s.%s %s, %s", name, kind, a.plus(int64(c.Off)), list(regs))
		}
		return
	}
	words := r.storedWords(v)
	for _, c := range gpu.Pieces(size*t.Lanes, align) {
		at := a.plus(int64(c.Off))
		if c.Width < 4 {
			o := words[c.Off/4]
			if c.Off%4 != 0 {
				shifted := r.reg(word)
				r.ins("shr.u32 %s, %s, %d", shifted.reg, o.reg, 8*(c.Off%4))
				o = shifted
			}
			r.ins("%s.u%d %s, %s", name, 8*c.Width, at, o.reg)
			continue
		}
		r.ins("%s.%s %s, %s", name, vectorNames[c.Width], at, list(words[c.Off/4:][:c.Width/4]))
	}
}

// stored is a lane as memory holds it, in a register.
func (r *renderer) stored(v *program.Value, i int) operand {
	o := r.lane(v, i)
	if v.Type.Elem == ir.Bool {
		o = r.boolTo(o, number{dtype: ir.U32, class: word})
	}
	if r.classOf(v) == wide {
		return r.inReg(o, wide)
	}
	return r.inReg(o, word)
}

// storedWords is a value as 32-bit words in memory order.
func (r *renderer) storedWords(v *program.Value) []operand {
	t := v.Type
	var words []operand
	switch {
	case isPacked(t):
		words = append(words, r.words(v)...)
	case t.Elem.Size() == 8:
		for i := range t.Lanes {
			lo, hi := r.reg(word), r.reg(word)
			r.ins("mov.b64 {%s, %s}, %s", lo.reg, hi.reg, r.inReg(r.wideLane(v, i), wide).reg)
			words = append(words, lo, hi)
		}
		return words
	case t.Elem.Size() == 4 || t.Lanes == 1:
		for i := range t.Lanes {
			words = append(words, r.stored(v, i))
		}
		return words
	default: // a vector of bools
		lanes := make([]operand, t.Lanes)
		for i := range lanes {
			lanes[i] = r.stored(v, i)
		}
		for i := range (t.Lanes + 3) / 4 {
			words = append(words, r.pack(lanes, ir.U8, i))
		}
	}
	for i := range words {
		words[i] = r.inReg(words[i], word)
	}
	return words
}

// elementName is the type of an access of one element, and its class.
func elementName(d ir.DType) (string, class) {
	switch d.Size() {
	case 8:
		return "b64", wide
	case 4:
		return "b32", word
	}
	if isSignExtended(d) {
		return fmt.Sprintf("s%d", 8*d.Size()), word
	}
	return fmt.Sprintf("u%d", 8*d.Size()), word
}

// element is the address of the i-th offset of a gather or scatter.
func (r *renderer) element(p, offsets *program.Value, i int) *address {
	a := r.values[p.ID].address
	size := int64(p.Type.Elem.Size())
	o := r.lane(offsets, i)
	if o.literal() {
		return a.plus(int64(o.bits) * size)
	}
	base := r.scopes.Once(fmt.Sprintf("address %s %s %d", a.base, o.reg, size), func() operand {
		if is32(p.Type.Space) {
			if r.classOf(offsets) == wide {
				o = r.low(o)
			}
			d := r.reg(word)
			r.ins("mad.lo.s32 %s, %s, %d, %s", d.reg, o.reg, size, r.symbol(a.base).reg)
			return d
		}
		name := "mad.wide.s32"
		if r.classOf(offsets) == wide {
			name = "mad.lo.s64"
		}
		d := r.reg(wide)
		r.ins("%s %s, %s, %d, %s", name, d.reg, o.reg, size, a.base)
		return d
	})
	return &address{base: base.reg, off: a.off}
}

func (r *renderer) gather(in *program.Instr) error {
	p, offsets, t := in.Args[0], in.Args[1], in.Result.Type
	if r.lookup(in) {
		return nil
	}
	name := r.loadName(p, in.Cache)
	lanes := make([]operand, t.Lanes)
	for i := range lanes {
		a := r.element(p, offsets, i)
		if in.Align >= t.Elem.Size() {
			kind, c := elementName(t.Elem)
			lanes[i] = r.reg(c)
			r.ins("%s.%s %s, %s", name, kind, lanes[i].reg, a)
		} else {
			words := r.loadWords(name, a, t.Elem.Size(), in.Align)
			lanes[i] = r.joined(words, t.Elem)
		}
		if t.Elem == ir.Bool {
			lanes[i] = r.compare("ne", number{dtype: ir.U32, class: word}, lanes[i], operand{})
		}
	}
	r.set(in.Result, lanes)
	return nil
}

// joined is one element made of loaded words.
func (r *renderer) joined(words []operand, d ir.DType) operand {
	switch d.Size() {
	case 8:
		o := r.reg(wide)
		r.ins("mov.b64 %s, {%s, %s}", o.reg, words[0].reg, words[1].reg)
		return o
	case 4:
		return words[0]
	}
	return r.unpack(words, d, 0)
}

func (r *renderer) scatter(in *program.Instr) error {
	p, offsets, v := in.Args[0], in.Args[1], in.Args[2]
	name := r.storeName(p, in.Cache)
	for i := range v.Type.Lanes {
		lane := &program.Value{ID: len(r.values), Type: program.Scalar(v.Type.Elem)}
		o := r.lane(v, i)
		if v.Type.Elem == ir.I64 {
			o = r.wideLane(v, i) // nothing is known of the lane's own bounds
		}
		r.values = append(r.values, &held{lanes: []operand{o}})
		r.storeAt(name, lane, r.element(p, offsets, i), in.Align)
	}
	return nil
}

// lookup is a gather from a table of up to 16 bytes by offsets that came from
// packed bytes: four lanes by byte permutes (the levels of 4-bit codebooks).
// The two lower bits of the selector's nibbles pick within a word, the next the
// word, the upper one which half of the table.
func (r *renderer) lookup(in *program.Instr) bool {
	p, offsets, t := in.Args[0], in.Args[1], in.Result.Type
	table, from := r.tables[p], r.origin[offsets]
	if table == nil || from == nil || t.Elem.Size() != 1 || t.Elem == ir.Bool || !isPacked(t) {
		return false
	}
	a := r.values[p.ID].address
	if len(table.Table) > 16 || a.off != 0 || a.base != r.values[table.Value.ID].address.base || r.values[from.ID].words == nil {
		return false
	}
	if b, ok := r.bounds[offsets]; !ok || b.Lo < 0 || b.Hi >= int64(len(table.Table)) {
		return false
	}
	var levels [4]operand
	for i := range len(table.Table) {
		levels[i/4].bits |= uint64(table.Table[i]) << (8 * (i % 4))
	}
	for i := range levels {
		levels[i] = r.scopes.Once(fmt.Sprintf("levels %d %d", table.Value.ID, i), func() operand { return r.inReg(levels[i], word) })
	}
	n := number{dtype: ir.U32, class: word}
	words := r.words(from)
	out := make([]operand, len(words))
	for i, w := range words {
		pairs := r.emit("or.b32", n, w, r.shiftBy("shr.u", n, r.inReg(w, word), 4))
		selector := r.prmt(pairs, operand{}, 0x4420)
		within := r.emit("and.b32", n, selector, operand{bits: 0x7777})
		low := r.permute(levels[0], levels[1], within)
		if len(table.Table) <= 8 {
			out[i] = low
			continue
		}
		high := r.permute(levels[2], levels[3], within)
		choice := r.emit("and.b32", n, r.shiftBy("shr.u", n, selector, 1), operand{bits: 0x4444})
		out[i] = r.permute(low, high, r.emit("or.b32", n, choice, operand{bits: 0x3210}))
	}
	r.setWords(in.Result, out)
	return true
}

func (r *renderer) permute(a, b, selector operand) operand {
	o := r.reg(word)
	r.ins("prmt.b32 %s, %s, %s, %s", o.reg, a.reg, b.reg, selector.reg)
	return o
}

// Arrays in registers.

func (r *renderer) loadArray(in *program.Instr, a *address) {
	c := r.classOf(in.Result)
	lanes := make([]operand, in.Result.Type.Lanes)
	for i := range lanes {
		lanes[i] = r.reg(c) // a copy: a later store may change the array
		r.move(lanes[i], a.array.regs[a.index+int64(i)], c)
	}
	r.set(in.Result, lanes)
}

func (r *renderer) storeArray(v *program.Value, a *address) {
	for i := range v.Type.Lanes {
		o, c := r.lane(v, i), r.classOf(v)
		if v.Type.Elem == ir.I64 {
			o, c = r.wideLane(v, i), wide
		}
		r.move(a.array.regs[a.index+int64(i)], o, c)
	}
}
