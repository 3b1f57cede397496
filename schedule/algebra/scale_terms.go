package algebra

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// scale-terms: matrix instructions of a GPU multiply F16 and BF16. An f32 is three terms of bf16, whose range is its own, or two of
// f16, scaled by a power of two for each row so that none is too large (docs/decisions/0058):
//
//	sum_k y*q  ->  2^e * sum_k (f32(a) + f32(b)/2^11)*q,  a = f16(y/2^e), b = f16((y/2^e - a)*2^11)
//
// where 2^e is the power of two below the largest |y| of the row, over 2^13: |a| < 2^14. Both hold 11 bits, of which the second's
// sign is one: what is lost is at most 2^-23 |y|, or 2^-50 of the row's largest, where an f32 itself loses 2^-24 |y|. Beside weights that are
// f16 themselves the second is scaled by 2^6 (analyse.HalfTermScale, docs/decisions/0074).

const (
	termBits    = 11 // of an f16
	exponentOne = 23 // where the exponent of an f32 begins
	largestBits = 13 // a row's largest is scaled to 2^13 and more, and less than 2^14
	leastBits   = 14 + largestBits
	infiniteF32 = 0x7f800000 // the exponent of an f32, all bits set
	twiceBias   = 254        // exponents of a power of two and its reciprocal together
)

// ScaleTerms applies the rule to all values.
func ScaleTerms(s *state.State) {
	least := s.Opt.Profile.ScaledTokens
	if least == 0 {
		return
	}
	reads, products, uses := make(map[*state.Value]*ir.UOp), make(map[*state.Value]int64), make(map[*state.Value]int64)
	readers := lists.Filter(s.Values, func(v *state.Value) bool {
		if v.Dead || s.Height(v.Body) == 0 || s.WeightReuse(v) < least {
			return false
		}
		read := codesMeet(s, v.Body)
		if read == nil {
			return false
		}
		p, _ := s.IsRead(read)
		reads[v], products[p] = read, products[p]+expr.Saturate(s.Points(v.Ranges), s.Points(summed(s, read)))
		uses[p] = max(uses[p], s.WeightReuse(v))
		return true
	})
	for _, v := range readers {
		if p, _ := s.IsRead(reads[v]); products[p] >= s.Opt.Profile.Launch*s.Opt.Profile.Workers*productsSaved {
			planes := s.Opt.Profile.PlaneTokens
			scaleReads(s, v, reads[v], planes > 0 && uses[p] >= planes)
		}
	}
}

// scaleReads has v read scaled activations, the terms in planes or in words.
func scaleReads(s *state.State, v *state.Value, read *ir.UOp, planes bool) {
	second := 1.0 / (1 << termBits)
	if analyse.Any(v.Body, func(u *ir.UOp) bool { return isStoredHalf(s, u) }) {
		second = analyse.HalfTermScale
	}
	h := newScaledRow(s, read, planes, second)
	body, linear := h.scaled(v.Body)
	if !linear {
		return
	}
	v.Body = s.A.Mul(body, h.down)
	s.Record(v, true, "terms of f16", state.Number{Name: "points", Value: s.Points(h.of.Ranges)})
}

// productsSaved is how many products of a multiprocessor by matrix instructions it takes, for each operation of a launch's time, that
// a third of their instructions is what both launches cost that scale activations. On an H200 these are a thousand million: a layer of
// SmolLM2 360M with 5,000 million, in four sums, took as long as before, with 1,260 million 12 % longer (docs/bench/h200-terms.txt).
const productsSaved = 60

// summed are the ranges of a value along which a read of it is summed up.
func summed(s *state.State, read *ir.UOp) (ranges []*ir.UOp) {
	p, _ := s.IsRead(read)
	for i, x := range read.Indices() {
		if alongSum(s.Graph, x) {
			ranges = append(ranges, p.Ranges[i])
		}
	}
	return ranges
}

// codesMeet is a read of the activations that codes, or weights of F16, are multiplied with in the innermost sums of a body; nil where there are none.
func codesMeet(s *state.State, body *ir.UOp) *ir.UOp {
	for _, u := range ir.Toposort(body) {
		if read, _ := codeProduct(s, u); read != nil {
			return read
		}
	}
	return nil
}

// codeProduct takes a sum of activations times codes, or weights of F16, apart.
func codeProduct(s *state.State, u *ir.UOp) (read, code *ir.UOp) {
	if !analyse.IsFloatSum(u) || s.Height(u.Src[0]) > 0 {
		return nil, nil
	}
	factors := analyse.Factors(u.Src[0])
	if len(factors) != 2 {
		return nil, nil
	}
	for i, f := range factors {
		p, isRead := s.IsRead(f)
		if !isRead || p.Node.DType != ir.F32 || s.ReadsField(f) || !s.DependsOn(f, u.ReduceRange()) {
			continue
		}
		if isStoredCode(s, factors[1-i]) || isStoredHalf(s, factors[1-i]) && !isRounded(p.Body) {
			return f, factors[1-i]
		}
	}
	return nil, nil
}

// isStoredCode reports an integer of packed weights.
func isStoredCode(s *state.State, u *ir.UOp) bool { return isTileCode(s, u) && s.ReadsField(u) }

// isStoredHalf reports a weight of F16, but for the scales of packed ones.
func isStoredHalf(s *state.State, u *ir.UOp) bool {
	return isHalf(u) && u.Src[0].Op == ir.OpLoad && s.ReadsWeight(u.Src[0])
}

// isRounded reports activations that are halves already: one term.
func isRounded(u *ir.UOp) bool {
	return u.Op == ir.OpCast && u.Src[0].DType.IsFloat() && u.Src[0].DType.Size() < u.DType.Size()
}

// scaledRow are activations as terms, with a scale for each of their rows.
type scaledRow struct {
	*state.State
	of       *state.Value
	row      []*ir.UOp    // where the row is read; nil for axes that are summed
	up, down *ir.UOp      // factors of the row, 2^-e and 2^e
	stored   *state.Value // both terms: words, or planes of them
	planes   bool
	second   float64 // what the second term is times
	memo     map[*ir.UOp]scaledNode
}

// scaledNode is a node with scaled activations, and whether it is linear in them.
type scaledNode struct {
	u      *ir.UOp
	linear bool
}

func newScaledRow(s *state.State, read *ir.UOp, planes bool, second float64) *scaledRow {
	a := s.A
	p, _ := s.IsRead(read)
	h := &scaledRow{State: s, of: p, planes: planes, second: second, memo: make(map[*ir.UOp]scaledNode)}
	places := places(a, p.Ranges)
	var rows, at []*ir.UOp // of the value, and as read
	for i, x := range read.Indices() {
		if alongSum(s.Graph, x) {
			places[i] = a.Range(scaledPlace+i, p.Ranges[i].Src[0])
			h.row = append(h.row, nil)
			continue
		}
		rows, at, h.row = append(rows, p.Ranges[i]), append(at, x), append(h.row, x)
	}
	scale := h.scaleOf(rows, places)
	h.up, h.down = reciprocalOf(a, a.Load(scale.Node, at...)), a.Load(scale.Node, at...)
	key := a.Mul(a.Cast(s.AtIndex(p.Ranges, a.Load(p.Node, p.Ranges...), places), ir.F16), a.Const(ir.F16, second))
	y := a.Mul(a.Load(p.Node, p.Ranges...), reciprocalOf(a, a.Load(scale.Node, rows...)))
	high := a.Cast(y, ir.F16)
	low := a.Cast(a.Mul(a.Sub(y, a.Cast(high, ir.F32)), a.Const(ir.F32, 1/second)), ir.F16)
	if h.planes {
		plane := h.NewRange(a.Index(termPlanes))
		of := a.Where(a.Lt(plane, a.Index(1)), high, low)
		h.stored = h.value(key, append([]*ir.UOp{plane}, p.Ranges...), of)
		return h
	}
	word := func(x *ir.UOp) *ir.UOp { return a.Cast(a.Make(ir.OpBitcast, ir.U16, nil, x), ir.U32) }
	h.stored = h.value(key, p.Ranges, a.Binary(ir.OpOr, word(high), a.Binary(ir.OpShl, word(low), a.ConstInt(ir.U32, halfBits))))
	return h
}

// halfBits are those of an f16. Both terms of a number lie in one word, so that a thread loads those of its points at once. Instructions
// that read shared memory want them apart (PlaneTokens).
const (
	halfBits   = 16
	termPlanes = 2
)

// scaledPlace is the first id of ranges in place of those that are summed.
const scaledPlace = groupPlace + 1<<10

// value is one of the activations' points, the same for all readers.
func (h *scaledRow) value(key *ir.UOp, ranges []*ir.UOp, body *ir.UOp) *state.Value {
	known, ok := h.RestMemo[key]
	if !ok {
		known = h.NewValue(body.DType, nil, nil)
		h.SetSignature(known, ranges, body)
		known.Pinned = true
		h.RestMemo[key] = known
	}
	return known
}

// scaleOf is the value of the rows' scales: the largest exponent of each, less the bits above the point.
func (h *scaledRow) scaleOf(rows, places []*ir.UOp) *state.Value {
	a, p := h.A, h.of
	exponent := func(u *ir.UOp) *ir.UOp {
		return a.Binary(ir.OpAnd, a.Make(ir.OpBitcast, ir.I32, nil, u), a.ConstInt(ir.I32, infiniteF32))
	}
	key := exponent(h.AtIndex(p.Ranges, a.Load(p.Node, p.Ranges...), places))
	known, ok := h.RestMemo[key]
	if ok {
		return known
	}
	most := exponent(a.Load(p.Node, p.Ranges...))
	for i, r := range slices.Backward(p.Ranges) {
		if h.row[i] == nil {
			k := h.NewRange(r.Src[0])
			most = h.CloseReduce(a.Reduce(ir.OpMax, h.AtIndex([]*ir.UOp{r}, most, []*ir.UOp{k}), k))
		}
	}
	most = a.Binary(ir.OpMax, most, a.ConstInt(ir.I32, leastBits<<exponentOne))
	known = h.NewValue(ir.F32, nil, nil)
	h.SetSignature(known, rows, a.Make(ir.OpBitcast, ir.F32, nil, a.Sub(most, a.ConstInt(ir.I32, largestBits<<exponentOne))))
	h.RestMemo[key] = known
	return known
}

// reciprocalOf is 1/x of a power of two.
func reciprocalOf(a *ir.Arena, x *ir.UOp) *ir.UOp {
	return a.Make(ir.OpBitcast, ir.F32, nil, a.Sub(a.ConstInt(ir.I32, twiceBias<<exponentOne), a.Make(ir.OpBitcast, ir.I32, nil, x)))
}

// scaled is a node in which activations are scaled; where it is linear in them it is then scaled, too.
func (h *scaledRow) scaled(u *ir.UOp) (out *ir.UOp, linear bool) {
	if known, ok := h.memo[u]; ok {
		return known.u, known.linear
	}
	out, linear = h.scale(u)
	h.memo[u] = scaledNode{out, linear}
	return out, linear
}

func (h *scaledRow) scale(u *ir.UOp) (*ir.UOp, bool) {
	a := h.A
	if p, isRead := h.IsRead(u); isRead {
		return a.Mul(u, h.up), p == h.of && h.sameRow(u)
	}
	if read, code := codeProduct(h.State, u); read != nil {
		p, _ := h.IsRead(read)
		return a.Reduce(ir.OpAdd, a.Mul(h.terms(read), code), u.ReduceRange()), p == h.of && h.sameRow(read)
	}
	switch {
	case u.Op == ir.OpMul:
		for i, f := range u.Src {
			if x, linear := h.scaled(f); linear && !h.reads(u.Src[1-i]) {
				return h.times(x, u.Src[1-i]), true
			}
		}
	case u.Op == ir.OpAdd || u.Op == ir.OpSub:
		x, ofX := h.scaled(u.Src[0])
		y, ofY := h.scaled(u.Src[1])
		return a.Binary(u.Op, x, y), ofX && ofY
	case u.Op == ir.OpNeg:
		x, linear := h.scaled(u.Src[0])
		return a.With(u, []*ir.UOp{x}), linear
	case analyse.IsFloatSum(u):
		x, linear := h.scaled(u.Src[0])
		return a.Reduce(ir.OpAdd, x, u.ReduceRange()), linear
	}
	return u, false
}

// times is a sum times a scale. Where codes times the scale are integers that an f16 holds they are summed as such: instructions
// then go on with the sum of one group where that of the next begins.
func (h *scaledRow) times(u, scale *ir.UOp) *ir.UOp {
	most, ok := h.mostOf(scale)
	if scaled := h.scaleCodes(u, scale, most); ok && scaled != nil {
		return scaled
	}
	return h.A.Mul(scale, u)
}

// scaleCodes is a sum of activations times codes whose codes are scaled; nil where it is none, or where they would be too large.
func (h *scaledRow) scaleCodes(u, scale *ir.UOp, most int64) *ir.UOp {
	a := h.A
	switch {
	case analyse.IsFloatSum(u):
		if x := h.scaleCodes(u.Src[0], scale, most); x != nil {
			return a.Reduce(ir.OpAdd, x, u.ReduceRange())
		}
	case u.Op == ir.OpMul && h.ReadsField(u.Src[1]) && !h.ReadsField(u.Src[0]):
		if code, ok := h.mostOf(u.Src[1]); ok && code*most <= mostTerm {
			return a.Mul(u.Src[0], a.Mul(u.Src[1], scale))
		}
	}
	return nil
}

// mostTerm bounds integers of which each is an f16.
const mostTerm = 1 << termBits

// mostOf is the largest magnitude of a product of integers that packed weights store; ok is false for other factors.
func (h *scaledRow) mostOf(u *ir.UOp) (most int64, ok bool) {
	most = 1
	for _, f := range analyse.Factors(u) {
		x := h.IntegerOf(f)
		if x == nil || !h.Bounds.Of(x).Within(-mostTerm, mostTerm) {
			return 0, false
		}
		b := h.Bounds.Of(x)
		most *= max(b.Hi, -b.Lo)
	}
	return most, true
}

// terms are activations at a place as the sum of their terms.
func (h *scaledRow) terms(read *ir.UOp) *ir.UOp {
	a := h.A
	sum := func(high, low *ir.UOp) *ir.UOp {
		return a.Add(a.Cast(high, ir.F32), a.Mul(a.Cast(low, ir.F32), a.Const(ir.F32, h.second)))
	}
	if h.planes {
		plane := func(i int64) *ir.UOp {
			return a.Load(h.stored.Node, append([]*ir.UOp{a.Index(i)}, read.Indices()...)...)
		}
		return sum(plane(0), plane(1))
	}
	words := a.Load(h.stored.Node, read.Indices()...)
	half := func(x *ir.UOp) *ir.UOp { return a.Make(ir.OpBitcast, ir.F16, nil, a.Cast(x, ir.U16)) }
	return sum(half(words), half(a.Binary(ir.OpShr, words, a.ConstInt(ir.U32, halfBits))))
}

// sameRow reports a read of the row that is scaled.
func (h *scaledRow) sameRow(read *ir.UOp) bool {
	for i, x := range read.Indices() {
		if h.row[i] != nil && h.row[i] != x {
			return false
		}
	}
	return true
}

// reads reports a node that reads the activations.
func (h *scaledRow) reads(u *ir.UOp) bool {
	return analyse.Any(u, func(x *ir.UOp) bool { return x.Op == ir.OpValue && x == h.of.Node })
}
