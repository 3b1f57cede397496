package shape

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/target"
)

// Packed panels of a CPU: decoded weights of a tile of rows whose lanes are rows. What lies
// along k in memory lies along rows in the panel, and the four bytes of a dot instruction's
// lane side by side:
//
//	[k/4][row][k%4] bytes          [k][row] floats
//
// Decoding takes lanes of both, so that runs of a row are one load, and shuffles put the
// lanes in order once for all uses. A vector of the panel then has a row in each lane, an
// activation is the same for all of them, and no sum is ever folded over lanes.

// panelRun is how many neighbours along k are lanes of a panel's decoding: as bytes, the
// shortest run that is a load of its own.
const panelRun = 16

// panelCopies is how many points along k are decoded without a loop: what a byte holds of
// several is then loaded once.
const panelCopies = 8

// recordCopies is the same of interleaved rows, which are decoded point by point: a group's scale is then made once. A Xeon, prompts of 32 and 128
// tokens in exact mode, ms of two layers of 1280 x 3584 with 8 and 32 points: IQ4_XS 14.3 and 11.5, 40.3 and 35.9, IQ3_S 13.6 and 11.1,
// 38.4 and 36.4 (docs/bench/cpu-experts.txt).
const recordCopies = 32

// turns reports a value whose lanes are rows and which is decoded along k: packed, or floats whose rows
// lie along k in memory.
func (h *hoister) turns(u *ir.UOp) bool {
	if h.st.Desc.Kind == target.GPU || h.free.Of(u).Meet(h.lanes).Empty() {
		return false
	}
	return h.packed(u) || analyse.Any(u, h.rowsApart)
}

// packed reports a value of packed weights.
func (h *hoister) packed(u *ir.UOp) bool {
	return analyse.Any(u, func(x *ir.UOp) bool { return x.Op == ir.OpField })
}

// rowsApart reports a load whose lanes are rows that do not lie side by side.
func (h *hoister) rowsApart(u *ir.UOp) bool {
	if u.Op != ir.OpLoad || u.Src[0].Op != ir.OpParam || h.free.Of(u).Meet(h.lanes).Empty() {
		return false
	}
	index := u.Indices()
	return !slices.ContainsFunc(ir.NewLinearizer(h.st.Arena).Of(index[len(index)-1]).Terms, func(t ir.Term) bool {
		return t.Coef == 1 && !h.free.Of(t.Atom).Meet(h.lanes).Empty()
	})
}

// dotByte is the byte of a factor of a dot that is staged as its panel, also where what holds it is wider.
func (h *hoister) dotByte(u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpCast || u.DType != ir.I32 || !h.turns(u) {
		return nil
	}
	for _, i := range h.free.Of(u).List() {
		if h.dots[h.free.Ranges[i]] {
			return ByteFactor(h.st.Arena, h.st.bounds, u, true)
		}
	}
	return nil
}

// stageByte replaces a wider integer by a read of the panel of its byte.
func (h *hoister) stageByte(u, narrow *ir.UOp) {
	if read := h.panel(narrow); read != nil {
		h.staged, h.replace[u] = append(h.staged, u), h.st.Arena.Cast(read, u.DType)
	}
}

// panelAxis is a range of a panel's array.
type panelAxis struct {
	outer, z *ir.UOp // the range that it is, or is a part of, and its own
	segments []plan.Segment
}

// stagePanel replaces u by a read of a panel, or by the sum of its terms in several where tile
// instructions sum it.
func (h *hoister) stagePanel(u *ir.UOp) {
	if !h.onTiles(u) {
		if read := h.panel(u); read != nil {
			h.staged, h.replace[u] = append(h.staged, u), read
		}
		return
	}
	a, rest := h.st.Arena, u
	var sum *ir.UOp
	n := TermsOf(h.st.bounds, u).BF16
	for k := range n {
		term := a.Cast(rest, ir.BF16)
		if n == 1 { // the low half of the float is zero
			high := a.Binary(ir.OpShr, a.Make(ir.OpBitcast, ir.U32, nil, u), a.ConstInt(ir.U32, 16))
			term = a.Make(ir.OpBitcast, ir.BF16, nil, a.Cast(high, ir.U16))
		}
		read := h.panel(term)
		if read == nil {
			return
		}
		read = a.Cast(read, ir.F32)
		if rest = a.Sub(rest, a.Cast(term, ir.F32)); k == 0 {
			sum = read
		} else {
			sum = a.Add(sum, read)
		}
	}
	h.staged, h.replace[u] = append(h.staged, u), sum
}

// onTiles reports a float that a tile instruction sums.
func (h *hoister) onTiles(u *ir.UOp) bool {
	return u.DType == ir.F32 && slices.ContainsFunc(h.free.Of(u).List(), func(i int) bool { return h.tiled[h.free.Ranges[i]] })
}

// panel is a read of a panel of u; nil where it has no room.
func (h *hoister) panel(u *ir.UOp) *ir.UOp {
	a, free := h.st.Arena, h.inner(h.free.Of(u))
	rename := make(map[*ir.UOp]*ir.UOp)
	var along, across, last []panelAxis // of k and tiles; lanes of rows; bytes of a dot
	var index []*ir.UOp
	bytes := int64(max(u.DType.Size(), 1))
	word := plan.WordElements / bytes
	add := func(list *[]panelAxis, r *ir.UOp, n int64, segments ...plan.Segment) *ir.UOp {
		z := h.st.newRange(a.Index(n))
		*list = append(*list, panelAxis{r, z, segments})
		return z
	}
	for _, i := range free.List() {
		r := h.free.Ranges[i]
		n, constant := r.Src[0].Int()
		if bytes *= max(n, 1); !constant {
			return nil
		}
		switch {
		case h.lanes.Has(i):
			rename[r] = add(&across, r, n, plan.Segment{Size: n, Role: plan.Lane})
		case h.dots[r] && len(last) == 0 && word > 1 && n%word == 0:
			rename[r] = a.Mul(add(&along, r, n/word), a.Index(word))
			rename[r] = a.Add(rename[r], add(&last, r, word, plan.Segment{Size: word, Role: plan.Lane}))
		default:
			rename[r] = add(&along, r, n)
		}
	}
	if bytes > h.st.Desc.PanelBytes() {
		return nil
	}
	if len(last) == 0 {
		word = 1
	}
	h.panelSegments(u, along, word)
	axes := slices.Concat(along, across, last)
	src := []*ir.UOp{a.Substitute(u, rename)}
	for k, x := range axes {
		src = append(src, x.z)
		switch {
		case len(last) == 0 || x.outer != last[0].outer:
			index = append(index, x.outer)
		case k == len(axes)-1:
			index = append(index, a.Mod(x.outer, a.Index(word)))
		default:
			index = append(index, a.Div(x.outer, a.Index(word)))
		}
		h.fresh = append(h.fresh, h.stagePlan(x.z, x.segments))
	}
	return a.Load(a.Make(ir.OpStage, u.DType, ir.StageArg{}, src...), index...)
}

// panelSegments takes lanes and copies of the innermost ranges along k within a block of
// weights. word is how many neighbours along the last of them lie side by side.
func (h *hoister) panelSegments(u *ir.UOp, along []panelAxis, word int64) {
	cuts := plan.Boundaries(h.st.Arena, u)
	lanes, copies := int64(panelRun), int64(panelCopies)
	switch {
	case word > 1:
		lanes /= word
	case h.inRecords(u):
		lanes, copies = 1, recordCopies // rows are lanes in memory already
	case !h.packed(u):
		// A square of a register of rows; wider tiles are as long as a value may be.
		lanes, copies = min(int64(max(h.st.Desc.VectorBytes/4, 1)), plan.MaxLanes/h.lanePoints(u)), 1
	}
	for k := len(along) - 1; k >= 0; k-- {
		x := &along[k]
		i := h.free.Index.Of(x.outer)
		if h.store.Has(i) {
			break
		}
		n, _ := x.z.Src[0].Int()
		within := n // of a block
		if h.blocks(u, i) {
			within = 1
			for _, c := range cuts[x.outer] {
				within = c
			}
			if k == len(along)-1 {
				within /= word
			}
		}
		v := powerOfTwoIn(within, lanes)
		c := powerOfTwoIn(within/v, copies)
		x.segments = []plan.Segment{{Size: v, Role: plan.Lane}, {Size: c, Role: plan.Unroll}}
		if lanes, copies = lanes/v, copies/c; c > 1 {
			lanes = 1
		}
		if v*c != n {
			break
		}
	}
}

// lanePoints is how many lanes a value has.
func (h *hoister) lanePoints(u *ir.UOp) int64 {
	n := int64(1)
	for _, i := range h.free.Of(u).Meet(h.lanes).List() {
		lanes, _ := h.free.Ranges[i].Src[0].Int()
		n *= max(lanes, 1)
	}
	return n
}

// inRecords reports a value of packed weights whose rows are interleaved.
func (h *hoister) inRecords(u *ir.UOp) bool {
	bits := h.st.Desc.Records
	return bits > 0 && analyse.Any(u, func(x *ir.UOp) bool { return x.Op == ir.OpField && packed.InRecords(x, bits) })
}

// powerOfTwoIn is the largest power of two up to limit that divides n.
func powerOfTwoIn(n, limit int64) int64 {
	v := int64(1)
	for v*2 <= limit && n%(v*2) == 0 {
		v *= 2
	}
	return v
}

// blocks reports a range along which u reads one block of weights after the other.
func (h *hoister) blocks(u *ir.UOp, i int) bool {
	return analyse.Any(u, func(x *ir.UOp) bool { return x.Op == ir.OpField && h.free.Of(x.Src[2]).Has(i) })
}
