package lower

import (
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// Scales in panels. The scales of neighbouring groups lie side by side, and copies of
// the sum read one each: a lane reads those of all copies at once, 16 bytes in the
// time of four. Shared memory is what bounds a product whose factors are in panels.

// panelScale reads a scale of a panel together with those of the copies next to it;
// ok is false where there are none.
func (l *stager) panelScale(u *ir.UOp, at coords) (v val, ok bool) {
	stage := u.Src[0]
	size := int64(stage.DType.Size())
	if !shape.IsSharedTile(stage) || size != shape.BankBytes || !l.free.Of(u).Meet(l.lanes).Empty() {
		return val{}, false
	}
	terms := l.memory.linear.Of(l.Simplify.Do(l.stageIndex(u))).Terms
	first, n, lane := at, int64(1), int64(0)
	for found := true; found && n*size < widestRead; {
		found = false
		for _, t := range terms {
			i, isRange := l.free.Index.Get(t.Atom)
			if isRange && t.Coef == n && l.Roles[i] == plan.Unroll && n*l.extent[i]*size <= widestRead {
				first, lane, n, found = first.with(i, 0), lane+n*int64(at[i]), n*l.extent[i], true
				break
			}
		}
	}
	if n == 1 {
		return val{}, false
	}
	scales := l.mma.fragment(u, first, u.DType, func() []*program.Value {
		array := l.fillStage(stage, first)
		p := l.memory.placeOf(array, l.readAddress(u), size, first)
		return []*program.Value{l.b.Load(p.ptr, int(n), p.align)}
	})
	return val{v: l.b.Extract(scales[0], int(lane)), depth: l.scopes.top()}, true
}
