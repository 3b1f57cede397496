package lower

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// Narrow fields of packed weights. Copies of a thread often read neighbouring
// bytes: the scales of the groups that it takes. A GPU's memory unit counts
// loads, not bytes, so they are read as one aligned word, and each copy takes
// its bytes out of it: of LLaMA's Q6_K matvecs 7 loads a row become 4.

// maxWordBytes is the widest word that narrow fields are taken from.
const maxWordBytes = 8

// wordPart splits the address of a field: the word starts at whole, the field at
// static + dynamic bytes inside it.
type wordPart struct {
	bytes   int64 // of the word
	whole   ir.LinearForm
	static  []ir.Term // copies
	dynamic []ir.Term // threads and loops
	offset  int64     // a constant
	reach   int64     // most of the dynamic part
}

// loadInWord reads a field as part of an aligned word that other copies read,
// too; ok is false where there is no such word.
func (l *wordMemory) loadInWord(u *ir.UOp, at coords) (out val, ok bool) {
	size := int64(u.DType.Size())
	if !l.block.onGPU() || size >= 4 || len(l.exprs.laneSubAxes(u, at)) > 0 {
		return val{}, false
	}
	form := l.memory.fieldAddress(u).form
	for bytes := int64(maxWordBytes); bytes > size; bytes /= 2 {
		w, inside := l.wordPart(form, bytes)
		if !inside || l.memory.align[l.memory.base(u.Src[0])]%bytes != 0 || !l.wordInBuffer(u.Src[0], w) {
			continue
		}
		first := w.offset
		for _, t := range w.static {
			first += t.Coef * l.exprs.evalStatic(t.Atom, at).I
		}
		// The dynamic part stays within 32 bits, which one shift takes apart.
		if first%4+w.reach+size > min(4, bytes) {
			continue
		}
		return l.takeFromWord(u, w, first, at), true
	}
	return val{}, false
}

// wordPart splits a form for words of so many bytes; inside: the rest stays in
// the word, and copies share it.
func (l *wordMemory) wordPart(form ir.LinearForm, bytes int64) (w wordPart, inside bool) {
	w = wordPart{bytes: bytes, offset: form.Const & (bytes - 1)}
	w.whole.Const = form.Const - w.offset
	most := w.offset
	for _, t := range form.Terms {
		if t.Coef%bytes == 0 {
			w.whole.Terms = append(w.whole.Terms, t)
			continue
		}
		b := l.Bounds.Of(t.Atom)
		if t.Coef < 0 || b.Lo < 0 || b.Hi > bytes {
			return w, false
		}
		most += t.Coef * b.Hi
		if l.exprs.isStatic(t.Atom) {
			w.static = append(w.static, t)
			continue
		}
		w.dynamic = append(w.dynamic, t)
		w.reach += t.Coef * b.Hi
	}
	return w, len(w.static) > 0 && most < bytes
}

// wordInBuffer reports that the last word, too, lies in the buffer.
func (l *wordMemory) wordInBuffer(buf *ir.UOp, w wordPart) bool {
	last := w.whole.Const
	for _, t := range w.whole.Terms {
		b := l.Bounds.Of(t.Atom)
		if t.Coef < 0 || b.Lo < 0 || b.Hi == ir.PosInf {
			return false
		}
		product, ok := ir.CheckedMul(t.Coef, b.Hi)
		if !ok {
			return false
		}
		if last, ok = ir.CheckedAdd(last, product); !ok {
			return false
		}
	}
	return last+w.bytes <= l.memory.paramBytes(buf)
}

// takeFromWord loads the word, once for all copies, and shifts the field out.
func (l *wordMemory) takeFromWord(u *ir.UOp, w wordPart, first int64, at coords) val {
	p := l.memory.placeOf(l.memory.base(u.Src[0]), &flatAddress{form: w.whole}, 1, at)
	words := int(max(w.bytes/4, 1))
	elem := ir.U32
	if w.bytes < 4 {
		elem = ir.U16
	}
	key := derivedKey{p.ptr, fmt.Sprint("word ", w.bytes)}
	word := l.scopes.derive(l.scopes.top(), key, func() *program.Value {
		return l.b.Load(l.b.PtrCast(p.ptr, elem), words, int(w.bytes))
	})
	part := l.scopes.derive(l.scopes.top(), derivedKey{word, fmt.Sprint("part ", first/4)}, func() *program.Value {
		v := l.b.Extract(word, int(first/4))
		if elem != ir.U32 {
			v = l.b.Cast(v, ir.U32)
		}
		if len(w.dynamic) == 0 {
			return v
		}
		sum := l.b.Index(0)
		for _, t := range w.dynamic {
			sum = l.b.Add(sum, l.b.Mul(l.exprs.lower(t.Atom, at).v, l.b.Index(8*t.Coef)))
		}
		return l.b.Alu(ir.OpShr, v, l.b.Cast(sum, ir.U32))
	})
	bits := part
	if by := first % 4; by > 0 {
		bits = l.b.Alu(ir.OpShr, bits, l.b.Int(program.Scalar(ir.U32), 8*by))
	}
	if u.DType.IsFloat() {
		return val{v: l.b.Bitcast(l.b.Cast(bits, ir.U16), u.DType), depth: l.scopes.top()}
	}
	return val{v: l.b.Cast(bits, u.DType), depth: l.scopes.top()}
}
