package heuristic

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/packed"
)

// wordBytes is the least that a thread loads at once.
const wordBytes = 4

// byteAxis is the innermost axis of a weight's sum along which its bytes differ. Along
// those inside of it are the values of a table's entry.
func (a *analysis) byteAxis(w *operand) int {
	differs := func(i int) bool {
		return slices.ContainsFunc(w.accesses, func(u *ir.UOp) bool { return a.free.Of(u).Has(i) })
	}
	return lists.Last(w.chain, differs, w.chain[len(w.chain)-1])
}

// entryLanes makes lanes of the values of a table's entry, which lie side by side in the
// table, and reports whether there are any.
func (c *mapped) entryLanes(w *operand, bytes int) bool {
	i := w.chain[len(w.chain)-1]
	if i == bytes || !c.constant(i) || !c.laneSafe(i) {
		return false
	}
	c.split(plan.VECTOR, i, c.left(i)/c.dot(i))
	return true
}

// entriesOfWord is how many points of an axis have the numbers of their entries in a word.
func (a *analysis) entriesOfWord(w *operand, axis int) int64 {
	n := int64(1)
	for _, u := range w.accesses {
		if a.free.Of(u).Has(axis) {
			n = max(n, wordBytes/int64(u.DType.Size()))
		}
	}
	return n
}

// shortRun reports an innermost axis of a weight that is shorter than a word: a codebook
// has two indices of a byte side by side, and more of them along the next axis.
func (a *analysis) shortRun(w *operand, inner int) bool {
	for _, u := range w.accesses {
		if u.Op == ir.OpField && a.free.Of(u).Has(inner) && a.size(inner)*int64(u.DType.Size()) >= wordBytes {
			return false
		}
	}
	return isPacked(w.param) && a.constant(inner)
}

// fillWord lets a thread take all of a short run, and of what lies beside it along the
// next axes, as copies: those share words, which lanes would load in parts.
func (c *mapped) fillWord(w *operand, inner int) {
	c.split(plan.UNROLL, inner, c.left(inner))
	elements, contiguous := c.size(inner), c.innerAxes(w)
	for j := slices.Index(w.chain, inner) - 1; j >= 0 && elements < wordBytes; j-- {
		i := w.chain[j]
		if !c.constant(i) || !contiguous.Has(i) || elements*c.size(i) > c.loadElements(w) {
			return
		}
		c.split(plan.UNROLL, i, c.size(i))
		elements *= c.size(i)
	}
}

// loadElements is how many elements a thread loads at once along a row: 16
// bytes where rows are aligned so.
func (a *analysis) loadElements(w *operand) int64 {
	f, ok := packed.Lookup(w.param.Arg.(ir.ParamArg).Format)
	if !ok || f.IsPlain() {
		return int64(16 / max(w.param.DType.Size(), 2))
	}
	if a.desc.Planes {
		return 16
	}
	most := int64(4)
	for i := range f.Fields {
		if at := f.Fields[i]; at.Bytes() >= f.BlockBytes/2 {
			most = max(most, powerOfTwoDivisor(int64(f.BlockBytes), powerOfTwoDivisor(int64(at.Offset), 16)))
		}
	}
	return most
}

// liesApart reports a weight of which neighbouring pieces lie apart in memory: where a thread takes
// both, those of lanes lie side by side.
func (a *analysis) liesApart(w *operand) bool {
	f, ok := packed.Lookup(w.param.Arg.(ir.ParamArg).Format)
	return ok && a.desc.Planes && slices.ContainsFunc(f.Fields, func(fd packed.Field) bool { return fd.Apart.Unit == 1 })
}

// sharesBytes reports an axis of a weight's sum along which some bytes that
// hold its integers stay the same: other bits of them are other weights.
func (a *analysis) sharesBytes(w *operand, axis int) bool {
	inner := a.byteAxis(w)
	return slices.ContainsFunc(w.accesses, func(u *ir.UOp) bool {
		return u.Op == ir.OpField && u.DType.Size() <= 2 && a.free.Of(u).Has(inner) && !a.free.Of(u).Has(axis)
	})
}
