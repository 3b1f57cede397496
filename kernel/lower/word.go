package lower

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/packed"
	"tgc/target"
)

// wordMemory writes fields whose bytes are read a word at a time.
type wordMemory struct{ *lowering }

// lowerWord gives f(q)*2^8p for the copy p of a PACK: byte p of a word,
// converted in place. ok is false where u is no such product.
func (l *wordMemory) lowerWord(u *ir.UOp, at coords) (val, bool) {
	cast, pow := u.Src[0], u.Src[1]
	if cast.Op != ir.OpCast || cast.Src[0].DType != ir.U8 && cast.Src[0].DType != ir.I8 {
		return val{}, false
	}
	p, ok := packRange(pow)
	if !ok {
		return val{}, false
	}
	i := l.free.Index.Of(p)
	if l.Roles[i] != plan.Unroll || l.extent[i] != plan.WordElements || at[i] < 0 {
		return val{}, false
	}
	c := at[i]
	q := cast.Src[0]
	bits := l.possible(q)
	w, ok := l.wordOf(q, i, at.with(i, 0), bits)
	if !ok {
		return val{}, false
	}
	if q.DType == ir.I8 {
		return l.signedByte(w, int64(c), u.DType), w.exact
	}
	v := l.scopes.derive(w.depth, derivedKey{w.v, fmt.Sprint("byte ", c, bits, u.DType)}, func() *program.Value {
		masked := l.b.Alu(ir.OpAnd, w.v, l.b.Int(w.v.Type, bits<<(8*c)))
		if c == plan.WordElements-1 && bits > 0x7f {
			masked = l.b.Bitcast(masked, ir.U32) // the byte's highest bit is the word's sign
		}
		return l.b.Cast(masked, u.DType)
	})
	return val{v: v, subAxes: w.subAxes, depth: w.depth}, true
}

// lowerLookUp gives what a short table has for byte p of a word, converted: an entry of the converted table, whose place is the
// word, shifted. A register of lanes is looked up by one instruction or two; ok is false where u is no such value.
func (l *wordMemory) lowerLookUp(u *ir.UOp, at coords) (val, bool) {
	load := u.Src[0]
	q := shape.PlaceInTable(load)
	if l.Desc.Kind == target.GPU || u.DType != ir.F32 || q == nil {
		return val{}, false
	}
	bits, entries := l.possible(q), load.Src[0].Arg.(ir.TableArg).Data
	i, ok := l.byteAxis(q, at)
	if !ok || bits >= int64(len(entries)) {
		return val{}, false
	}
	w, ok := l.wordOf(q, i, at.with(i, 0), bits)
	if !ok || w.v.Type.Lanes < 2 || w.v.Type.Lanes > packed.RecordRows {
		return val{}, false
	}
	place := w.val
	if c := int64(at[i]); c > 0 {
		place = l.wordShiftAlu(ir.OpShr, place, l.b.Int(program.Scalar(ir.I32), 8*c))
	}
	place = l.wordAlu(ir.OpAnd, place, bits)
	v := l.scopes.derive(place.depth, derivedKey{place.v, fmt.Sprintf("entry of %q", entries)}, func() *program.Value {
		return l.b.Gather(l.memory.floatTable(load.DType, entries), place.v, ir.F32.Size())
	})
	return val{v: v, subAxes: place.subAxes, depth: place.depth}, true
}

// byteAxis is the axis of copies along which the bytes of q lie in one word.
func (l *wordMemory) byteAxis(q *ir.UOp, at coords) (axis int, ok bool) {
	for _, i := range l.free.Of(q).List() {
		if l.Roles[i] != plan.Unroll || l.extent[i] != plan.WordElements || at[i] < 0 {
			continue
		}
		step := ir.Term{Coef: 1, Atom: l.free.Ranges[i]}
		if analyse.Any(q, func(x *ir.UOp) bool {
			return x.Op == ir.OpField && slices.Contains(l.memory.fieldAddress(x).form.Terms, step)
		}) {
			return i, true
		}
	}
	return 0, false
}

// signedByte converts byte c of a word, of two's complement, in place. The last one's sign is the word's. Others are moved
// up by 128, all of a word at once, and down again as integers: a sum of activations times 128 would round more
// than the products do.
func (l *wordMemory) signedByte(w word, c int64, dtype ir.DType) val {
	last, mask := c == plan.WordElements-1, int64(0xff)<<(8*c)
	x := w.val
	if !last {
		x = l.wordAlu(ir.OpXor, x, 0x80808080)
	}
	v := l.scopes.derive(x.depth, derivedKey{x.v, fmt.Sprint("signed byte ", c, dtype)}, func() *program.Value {
		masked := l.b.Alu(ir.OpAnd, x.v, l.b.Int(x.v.Type, mask))
		if !last {
			masked = l.b.Alu(ir.OpSub, masked, l.b.Int(x.v.Type, 0x80<<(8*c)))
		}
		return l.b.Cast(masked, dtype)
	})
	return val{v: v, subAxes: x.subAxes, depth: x.depth}
}

// possible are the bits of a byte that are not known to be 0. No other is looked at where bytes are taken out of
// their word, so that a word may have anything there.
func (l *wordMemory) possible(u *ir.UOp) int64 { return 0xff &^ int64(l.Bounds.Of(u).Zeros) }

// packRange recognises 2^8p.
func packRange(u *ir.UOp) (p *ir.UOp, ok bool) {
	if u.Op != ir.OpCast || u.Src[0].Op != ir.OpShl || !u.Src[0].Src[0].IsInt(1) || u.Src[0].DType != ir.U32 {
		return nil, false
	}
	ranges := analyse.RangesIn(u)
	if len(ranges) != 1 {
		return nil, false
	}
	return ranges[0], true
}

// word is a vector of I32 words. exact: all bits of each byte are right, else
// only those demanded.
type word struct {
	val
	exact bool
}

// wordOf lowers bytes as words. demand are the bits of each byte that matter.
func (l *wordMemory) wordOf(u *ir.UOp, p int, at coords, demand int64) (word, bool) {
	key := wordKey{l.scopes.key(u, at), demand}
	s := l.scopes.stack[l.scopes.top()]
	if w, ok := s.words[key]; ok {
		return w, true
	}
	w, ok := l.makeWord(u, p, at, demand)
	if ok {
		s.words[key] = w
	}
	return w, ok
}

// wordKey names the words of a node.
type wordKey struct {
	memoKey
	demand int64
}

func (l *wordMemory) makeWord(u *ir.UOp, p int, at coords, demand int64) (word, bool) {
	switch u.Op {
	case ir.OpField:
		return l.wordField(u, p, at)
	case ir.OpAnd:
		x, c := u.Src[0], u.Src[1]
		if m, ok := c.Int(); ok {
			w, ok := l.wordOf(x, p, at, demand&m)
			if !ok {
				return word{}, false
			}
			if demand&^m == 0 {
				return word{w.val, false}, true
			}
			return word{l.wordAlu(ir.OpAnd, w.val, m*0x01010101), true}, true
		}
	case ir.OpCast: // of a byte to one of the other sign
		if u.DType.IsInt() && u.DType.Size() == 1 && u.Src[0].DType.IsInt() && u.Src[0].DType.Size() == 1 {
			return l.wordOf(u.Src[0], p, at, demand)
		}
	case ir.OpOr, ir.OpXor:
		if c, ok := u.Src[1].Int(); ok {
			w, ok := l.wordOf(u.Src[0], p, at, demand)
			if !ok {
				return word{}, false
			}
			return word{l.wordAlu(u.Op, w.val, (c&0xff)*0x01010101), w.exact}, true
		}
		return l.wordJoin(u, p, at, demand)
	case ir.OpShl, ir.OpShr:
		return l.wordShift(u, p, at, demand)
	}
	return word{}, false
}

// wordJoin joins two words bit by bit. Where their bytes have no bit in common, each need be right in its own bits
// alone, and one mask and its complement choose between them: one instruction where there is one of three operands.
// A bit that neither has is the complement's, so it is masked for itself where it is demanded.
func (l *wordMemory) wordJoin(u *ir.UOp, p int, at coords, demand int64) (word, bool) {
	own := [2]int64{l.possible(u.Src[0]), l.possible(u.Src[1])}
	apart := own[0]&own[1] == 0
	if !apart {
		own = [2]int64{0xff, 0xff}
	}
	x, ok := l.wordOf(u.Src[0], p, at, demand&own[0])
	if !ok {
		return word{}, false
	}
	y, ok := l.wordOf(u.Src[1], p, at, demand&own[1])
	if !ok {
		return word{}, false
	}
	rest := 0xff &^ own[0]
	if demand&^(own[0]|own[1]) != 0 {
		rest = own[1]
	}
	exact := x.exact && y.exact
	if apart && !x.exact {
		x.val = l.wordAlu(ir.OpAnd, x.val, own[0]*0x01010101)
	}
	if apart && !y.exact {
		y.val = l.wordAlu(ir.OpAnd, y.val, rest*0x01010101)
	}
	return word{l.exprs.alu(u.Op, ir.I32, x.val, y.val), exact}, true
}

// wordAlu combines words with a constant.
func (l *wordMemory) wordAlu(op ir.Op, x val, c int64) val {
	key := derivedKey{x.v, fmt.Sprint(op, c)}
	v := l.scopes.derive(x.depth, key, func() *program.Value { return l.b.Alu(op, x.v, l.b.Int(x.v.Type, c)) })
	return val{v: v, subAxes: x.subAxes, depth: x.depth}
}

// wordShift shifts bytes inside words; bits that come from a neighbouring byte
// are masked where they matter.
func (l *wordMemory) wordShift(u *ir.UOp, p int, at coords, demand int64) (word, bool) {
	amount := u.Src[1]
	n, constant := amount.Int()
	least, most := n, n
	subAxes := []int(nil)
	var amounts []ir.Scalar
	if !constant {
		if !l.exprs.isStatic(amount) || l.free.Of(amount).Has(p) {
			return word{}, false
		}
		subAxes = l.exprs.laneSubAxes(amount, at)
		amounts = l.exprs.staticLanes(amount, at, subAxes)
		least, most = amounts[0].I, amounts[0].I
		for _, s := range amounts {
			least, most = min(least, s.I), max(most, s.I)
		}
	}
	if least < 0 || most > 7 {
		return word{}, false
	}
	inner := int64(0)
	for s := least; s <= most; s++ {
		if u.Op == ir.OpShr {
			inner |= demand << s & 0xff
		} else {
			inner |= demand >> s
		}
	}
	x, ok := l.wordOf(u.Src[0], p, at, inner)
	if !ok || most == 0 {
		return x, ok
	}
	op := u.Op
	var out val
	if least == most {
		out = l.wordShiftAlu(op, x.val, l.b.Int(program.Scalar(ir.I32), most))
	} else {
		lanes := lists.Map(amounts, func(s ir.Scalar) int64 { return s.I })
		by := val{v: l.b.IntLanes(ir.U32, lanes...), subAxes: subAxes, depth: l.scopes.top()}
		words := val{v: l.b.Bitcast(x.v, ir.U32), subAxes: x.subAxes, depth: l.scopes.top()}
		shifted := l.exprs.alu(op, ir.U32, words, by)
		out = val{v: l.b.Bitcast(shifted.v, ir.I32), subAxes: shifted.subAxes, depth: l.scopes.top()}
	}
	// Which bits of a byte may hold a neighbour's?
	foreign := int64(0xff) &^ (0xff >> most)
	clean := false
	if op == ir.OpShl {
		foreign = int64(1)<<most - 1
		clean = x.exact && l.Bounds.Of(u.Src[0]).Within(0, 0xff>>most)
	}
	if clean {
		return word{out, true}, true
	}
	if demand&foreign == 0 {
		return word{out, false}, true
	}
	if least != most {
		return word{}, false
	}
	keep := int64(0xff >> most)
	if op == ir.OpShl {
		keep = 0xff << most & 0xff
	}
	return word{l.wordAlu(ir.OpAnd, out, keep*0x01010101), x.exact}, true
}

// wordShiftAlu shifts all words by one amount; to the right without sign.
func (l *wordMemory) wordShiftAlu(op ir.Op, x val, n *program.Value) val {
	by, _ := l.b.KnownInt(n)
	v := l.scopes.derive(x.depth, derivedKey{x.v, fmt.Sprint(op, by)}, func() *program.Value {
		t := program.Vector(ir.U32, x.v.Type.Lanes)
		return l.b.Bitcast(l.b.Alu(op, l.b.Bitcast(x.v, ir.U32), l.b.Int(t, by)), ir.I32)
	})
	return val{v: v, subAxes: x.subAxes, depth: x.depth}
}

// wordField loads the words of a field of bytes: the four bytes of each must be
// neighbours, and words contiguous.
func (l *wordMemory) wordField(u *ir.UOp, p int, at coords) (word, bool) {
	if !u.DType.IsInt() || u.DType.Size() != 1 {
		return word{}, false
	}
	place := l.memory.placeOf(l.memory.base(u.Src[0]), l.memory.fieldAddress(u), 1, at.with(p, laneCoord))
	if place.vector != nil || !slices.Contains(place.subAxes, p) {
		return word{}, false
	}
	l.bytesLast(&place, p)
	n := len(place.subAxes)
	d := l.scopes.depth(u)
	if !inOrder(place.offsets) {
		return l.wordRuns(place, d)
	}
	count := len(place.offsets) / plan.WordElements
	ptr := l.scopes.derive(l.memory.ptrDepths[place.ptr], derivedKey{place.ptr, "as i32"}, func() *program.Value { return l.b.PtrCast(place.ptr, ir.I32) })
	v := l.scopes.derive(d, derivedKey{ptr, fmt.Sprint("words ", count)}, func() *program.Value { return l.b.Load(ptr, count, place.align) })
	return word{val{v: v, subAxes: place.subAxes[:n-1], depth: d}, true}, true
}

// bytesLast puts the lanes of a place in the order in which the bytes of a word follow each
// other.
func (l *wordMemory) bytesLast(at *place, p int) {
	k := slices.Index(at.subAxes, p)
	after := l.exprs.laneCount(at.subAxes[k+1:])
	bytes := int(l.extent[p])
	offsets := make([]int64, 0, len(at.offsets))
	for first := 0; first < len(at.offsets); first += bytes * after {
		for lane := range after {
			for b := range bytes {
				offsets = append(offsets, at.offsets[first+b*after+lane])
			}
		}
	}
	at.subAxes, at.offsets = append(slices.Delete(slices.Clone(at.subAxes), k, k+1), p), offsets
}

// wordRuns loads words of which some lie together, those of one block, and others apart.
func (l *wordMemory) wordRuns(p place, depth int) (word, bool) {
	r, ok := runsOf(p.offsets, 1, minRun)
	if !ok || r.unit != r.length || r.length%plan.WordElements != 0 {
		return word{}, false
	}
	v := l.scopes.derive(depth, derivedKey{p.ptr, fmt.Sprint("words at ", p.offsets)}, func() *program.Value {
		parts := lists.Map(r.starts, func(o int64) *program.Value {
			at := l.b.PtrCast(l.b.PtrAdd(p.ptr, l.b.Index(o)), ir.I32)
			return l.b.Load(at, r.length/plan.WordElements, int(lowBit(ir.GCD(int64(p.align), o))))
		})
		return l.b.Concat(parts...)
	})
	return word{val{v: v, subAxes: p.subAxes[:len(p.subAxes)-1], depth: depth}, true}, true
}
