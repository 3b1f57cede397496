package shape

import (
	"math"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/packed"
)

// The PACK Opt: lanes are 32-bit words of packed bytes.
//
// Four neighbouring elements whose integers share a word become copies p = 0..3,
// the words become lanes. Masks and shifts of bytes are those of words; element
// p of every lane is then and(word, 255<<8p), converted: f(q)*2^8p, exactly. One
// and one conversion for 16 weights, where widening bytes takes three
// instructions. The activations are staged in the same order, times 2^-8p.
//
// What does not depend on p leaves the sum over p (class A):
//
//	sum_p y*s*(A*q + B)  ->  s*A * sum_p (y*2^-8p)*(f(q)*2^8p)  +  s*B * sum_p y
//
// and sum_p y is staged too. So scales and minima cost a product for four
// weights, not for each.
//
// Of weights whose rows are interleaved (packed.Records) lanes are rows already: PACK 1. All
// that shares bytes are copies, and a scale, which is the same for many of them, leaves their
// sum as far as it is the same. Of a code of a table a word, shifted, is the place of each lane's entry.

// packSubAxes finds the sub-axes of a reduce axis for PACK: low to high, with
// roles; ok is false where no packed field suits. The field with the most bytes
// decides: sub-axes that move its byte address are lanes until a register is
// full, the others (which nibble) are copies.
func packSubAxes(sink *ir.UOp, r *ir.UOp, cuts []int64, lanes int64) (segments []plan.Segment, ok bool) {
	field, block := packField(sink, r, lanes == 1)
	if field == nil {
		return nil, false
	}
	n, constant := r.Src[0].Int()
	if !constant || n%block != 0 {
		return nil, false
	}
	chain := append([]int64{1, plan.WordElements}, plan.ChainWithin(cuts, plan.WordElements, block)...)
	chain = append(chain, block)
	if lanes == 1 {
		return rowSubAxes(sink, r, field, chain), true
	}
	taken := int64(1)
	for i := range len(chain) - 1 {
		size := chain[i+1] / chain[i]
		step := indexStep(field.Src[3], r, chain[i])
		switch {
		case i == 0 && step != 1:
			return nil, false
		case i == 0 || step == 0 || step != plan.WordElements*taken || taken*size > lanes:
			segments = append(segments, plan.Segment{Size: size, Role: plan.Unroll})
		default:
			segments = append(segments, plan.Segment{Size: size, Role: plan.Lane})
			taken *= size
		}
	}
	// Blocks too small for a register are lanes side by side.
	if blocks := lanes / taken; blocks > 1 && taken*blocks == lanes && n/block%blocks == 0 {
		segments = append(segments, plan.Segment{Size: blocks, Role: plan.Lane})
		taken *= blocks
	}
	return segments, taken == lanes
}

// rowCopies is how many elements of a row are one body where lanes are rows, if what shares
// bytes allows. With 64 of each of two matrices LLVM spills: instructions of a body for 1,024 weights of gate
// and up, with 64 and 32, Q4_K 314 and 255, Q6_K 364 and 318; one Zen 4 core, a layer of Q4_K 5.8 and 5.1 ms.
const rowCopies = 32

// rowSubAxes are the sub-axes of a block where lanes are rows: elements that share a byte, or
// that differ by how far it is shifted, are copies; of the bytes so many that the body is short.
func rowSubAxes(sink, r, field *ir.UOp, chain []int64) (segments []plan.Segment) {
	shifts := shiftAmounts(sink, r)
	sharing := func(i int) bool {
		return i > 0 && (indexStep(field.Src[3], r, chain[i]) == 0 || slices.ContainsFunc(shifts, func(x *ir.UOp) bool { return indexStep(x, r, chain[i]) != 0 }))
	}
	left := int64(rowCopies)
	for i := range len(chain) - 1 {
		if sharing(i) {
			left /= chain[i+1] / chain[i]
		}
	}
	for i := range len(chain) - 1 {
		size := chain[i+1] / chain[i]
		if sharing(i) {
			segments = append(segments, plan.Segment{Size: size, Role: plan.Unroll})
			continue
		}
		n := powerOfTwoIn(size, max(left, 1))
		if i == 0 {
			n = size
		}
		left /= n
		if n > 1 {
			segments = append(segments, plan.Segment{Size: n, Role: plan.Unroll})
		}
		if size > n {
			segments = append(segments, plan.Segment{Size: size / n, Role: plan.Serial})
			left = 1
		}
	}
	return segments
}

// shiftAmounts are the amounts by which bytes of fields are shifted, as indices.
func shiftAmounts(sink, r *ir.UOp) (list []*ir.UOp) {
	for _, u := range ir.Toposort(sink) {
		if (u.Op == ir.OpShl || u.Op == ir.OpShr) && u.DType.Size() == 1 && analyse.Any(u.Src[1], func(x *ir.UOp) bool { return x == r }) {
			x := u.Src[1]
			for x.Op == ir.OpCast {
				x = x.Src[0]
			}
			list = append(list, x)
		}
	}
	return list
}

// packField is the widest field of bytes whose place in the block moves with r, of signed ones only
// where those are wanted.
func packField(sink, r *ir.UOp, signed bool) (field *ir.UOp, block int64) {
	most := 0
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpField || u.DType != ir.U8 && !(signed && u.DType == ir.I8) {
			continue
		}
		arg := u.Arg.(ir.FieldArg)
		f, ok := packed.Lookup(arg.Format)
		if !ok {
			continue
		}
		fd, ok := f.Field(arg.Field)
		if ok && fd.Run == 0 && fd.Count > most && indexStep(u.Src[3], r, 1) == 1 {
			most, field, block = fd.Count, u, int64(f.BlockElems)
		}
	}
	return field, block
}

// indexStep is how far an index moves when r goes from 0 to step, all other
// ranges 0; 0 also if it cannot be told.
func indexStep(x, r *ir.UOp, step int64) int64 {
	at := func(v int64) (int64, bool) { return evalIndex(x, r, v) }
	lo, ok0 := at(0)
	hi, ok1 := at(step)
	if !ok0 || !ok1 {
		return 0
	}
	return hi - lo
}

func evalIndex(x, r *ir.UOp, v int64) (int64, bool) {
	if n, ok := x.Int(); ok {
		return n, true
	}
	switch {
	case x == r:
		return v, true
	case x.Op == ir.OpRange:
		return 0, true
	case x.DType != ir.Idx || !x.Op.IsElementwise() || x.Op == ir.OpCast:
		return 0, false
	}
	args := make([]ir.Scalar, len(x.Src))
	for i, s := range x.Src {
		n, ok := evalIndex(s, r, v)
		if !ok {
			return 0, false
		}
		args[i] = ir.IntScalar(n)
	}
	return ir.EvalScalar(x.Op, ir.Idx, ir.Idx, args).I, true
}

// Packable reports whether PACK suits a reduce axis of a kernel, for lanes of
// registers of so many bytes.
func Packable(a *ir.Arena, sink *ir.UOp, axis string, vectorBytes int) bool {
	free, err := plan.NewFree(sink)
	if err != nil {
		return false
	}
	for i, x := range free.Axes {
		words := int64(vectorBytes / plan.WordElements)
		if x.Name != axis || x.Kind != plan.ReduceAxis || !onlyWords(free, sink, i, words == 1) {
			continue
		}
		_, ok := packSubAxes(sink, x.Range, plan.Boundaries(a, sink)[x.Range], words)
		return ok
	}
	return false
}

// onlyWords reports an axis along which rows come from one packed format alone:
// any other operand that has rows would be read with a stride. Operands with
// other store axes, such as the tokens of a batch, are staged. Every field of
// bytes of which neighbours are read is part of an integer below 128, as a word needs it. Where lanes are rows, words may hold places of a short
// table, and a wider integer bits that all elements of a word share.
func onlyWords(free *plan.Free, sink *ir.UOp, axis int, rowLanes bool) bool {
	format := ""
	bounds := ir.NewBounds()
	neighbours := func(x *ir.UOp) bool { return x.Op == ir.OpField && indexStep(x.Src[3], free.Ranges[axis], 1) != 0 }
	order := ir.Toposort(sink)
	stores, rows := free.OfKind(plan.StoreAxis).Minus(choosing(free, order)), analyse.RangeSet{}
	for _, u := range order {
		if u.Op == ir.OpField && free.Of(u).Has(axis) {
			rows = rows.Union(free.Of(u).Meet(stores))
		}
	}
	for _, u := range order {
		switch {
		case !free.Of(u).Has(axis):
		case u.Op == ir.OpField && u.DType.IsInt() && u.DType.Size() > 1 && !(rowLanes && inWords(u)):
			return false // bits of elements apart from their bytes
		case u.Op == ir.OpField:
			name := u.Arg.(ir.FieldArg).Format
			if format != "" && format != name {
				return false
			}
			format = name
		case u.Op == ir.OpLoad && u.Src[0].Op == ir.OpTable && rowLanes:
			if PlaceInTable(u) == nil {
				return false
			}
		case u.Op == ir.OpLoad && (!free.Of(u).Meet(rows).Empty() || u.Src[0].Op == ir.OpTable):
			return false
		case u.Op == ir.OpCast && u.DType.IsFloat() && u.Src[0].DType == ir.U8 && !bounds.Of(u.Src[0]).Within(0, 127) && analyse.Any(u.Src[0], neighbours):
			return false
		}
	}
	return format != ""
}

// inWords reports a field of a format whose words have all that tells their elements apart.
func inWords(field *ir.UOp) bool {
	f, ok := packed.Lookup(field.Arg.(ir.FieldArg).Format)
	return ok && f.InWords()
}

// PlaceInTable is the byte that names an entry of a short table, nil where u reads none.
func PlaceInTable(u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpLoad || !packed.IsShortTable(u.Src[0]) {
		return nil
	}
	if x := u.Indices()[0]; x.Op == ir.OpCast && x.Src[0].DType == ir.U8 {
		return x.Src[0]
	}
	return nil
}

// choosing are the axes that only say which of several matrices a field is of, by what is read of memory at them. Other
// operands along them are staged: each matrix may have activations of its own.
func choosing(free *plan.Free, order []*ir.UOp) analyse.RangeSet {
	var direct, all analyse.RangeSet
	for _, u := range order {
		if u.Op != ir.OpField {
			continue
		}
		all = all.Union(free.Of(u))
		ir.Walk(func(x *ir.UOp) []*ir.UOp {
			switch x.Op {
			case ir.OpLoad, ir.OpReduce:
				return nil
			case ir.OpRange:
				direct.Add(free.Index.Of(x))
			}
			return x.Src
		}, u.Src[1:]...)
	}
	return all.Minus(direct)
}

// cutWords turns PACK Opts into segments.
func cutWords(st *State) error {
	st.Axes = slices.Clone(st.Axes)
	for i := range st.Axes {
		p := &st.Axes[i]
		if !p.Pack {
			continue
		}
		segments, ok := packSubAxes(st.Sink, p.Axis.Range, plan.Boundaries(st.Arena, st.Sink)[p.Axis.Range], p.PackWords)
		if !ok {
			return planError("PACK %s: no packed field has %d words along it", p.Axis.Name, p.PackWords)
		}
		p.Segments = segments
	}
	return nil
}

// sumWords rewrites, after splitting, every sum over a word's elements.
func sumWords(st *State, sink *ir.UOp) *ir.UOp {
	pack, rows := make(map[*ir.UOp]bool), false
	for _, p := range st.Axes {
		if s := p.Split; p.Pack && s != nil {
			pack[s.SubAxes[len(s.SubAxes)-1].Range] = true
			rows = rows || p.PackWords == 1
		}
	}
	if len(pack) == 0 {
		return sink
	}
	k := &packer{st: st, stages: make(map[*ir.UOp]*ir.UOp), apart: make(map[*ir.UOp]*shifted), rows: rows}
	var err error
	if k.free, err = plan.NewFree(sink); err != nil {
		return sink // order-ranges reports it
	}
	order := ir.Toposort(sink)
	chosen := choosing(k.free, order)
	for i, x := range k.free.Axes {
		if x.Kind == plan.StoreAxis && !k.inside(x.Range) && !chosen.Has(i) {
			k.outer.Add(i)
		}
	}
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range order {
		switch {
		case !analyse.IsSum(u):
		case pack[u.ReduceRange()]:
			if to := k.sum(u); to != nil {
				with[u] = to
			}
		case k.apart[u.Src[0]] != nil:
			with[u] = k.sumApart(u)
		}
	}
	return st.Arena.Substitute(sink, with)
}

// shifted is a sum in two parts: of words, and of a shift (a minimum) times activations. The
// shift is the same for many words, whose activations are summed up first.
type shifted struct {
	words, shift, total *ir.UOp // total: of activations; shift nil: it stands in the sum
	scale               *ir.UOp // of words; nil: it stands in the sum
}

// sumApart sums the parts of a sum over words along the next range outwards. A scale stays
// outside of their sum as long as it is the same.
func (k *packer) sumApart(u *ir.UOp) *ir.UOp {
	a, r, x := k.st.Arena, u.ReduceRange(), k.apart[u.Src[0]]
	i, words, scale := k.free.Index.Of(r), x.words, x.scale
	if scale != nil && k.free.Of(scale).Has(i) {
		words, scale = a.Mul(scale, words), nil
	}
	next := &shifted{words: a.Reduce(ir.OpAdd, words, r), shift: x.shift, scale: scale}
	k.apart[u] = next
	value := next.words
	if scale != nil {
		value = a.Mul(scale, value)
	}
	if x.total == nil {
		return value
	}
	if x.shift != nil && !k.free.Of(x.shift).Has(i) {
		next.total = a.Reduce(ir.OpAdd, x.total, r)
		if staged := k.stage(next.total); staged != nil {
			return a.Add(value, a.Mul(next.shift, staged))
		}
	}
	next.shift, next.total = nil, a.Reduce(ir.OpAdd, k.ofShift(x), r)
	return a.Add(value, next.total)
}

// ofShift is what a shift adds to a sum.
func (k *packer) ofShift(x *shifted) *ir.UOp {
	if x.shift == nil {
		return x.total
	}
	return k.st.Arena.Mul(x.shift, k.stage(x.total))
}

// packer rewrites the sums of one kernel.
type packer struct {
	st     *State
	free   *plan.Free
	outer  analyse.RangeSet    // of stores: not all of their points lie in each work unit, and they choose no matrix
	stages map[*ir.UOp]*ir.UOp // value -> read of its stage
	apart  map[*ir.UOp]*shifted
	rows   bool // lanes are rows
}

// inside reports a range of stores all of whose points lie in each work unit.
func (k *packer) inside(r *ir.UOp) bool {
	role := k.st.roles[r]
	return role == plan.Unroll || role == plan.Serial
}

// sum rewrites one sum over p; nil where its form does not fit.
func (k *packer) sum(u *ir.UOp) *ir.UOp {
	a, p := k.st.Arena, u.ReduceRange()
	i := k.free.Index.Of(p)
	rest, y := a.Const(u.DType, 1), a.Const(u.DType, 1)
	var q, scale, shift *ir.UOp
	for _, f := range analyse.Factors(u.Src[0]) {
		if !k.free.Of(f).Has(i) {
			rest = product(a, rest, f)
			continue
		}
		if s, word, b := k.linearInWord(f, i); word != nil && q == nil {
			scale, q, shift = s, word, b
			continue
		}
		y = product(a, y, f)
	}
	if q == nil || !k.free.Of(y).Meet(k.outer).Empty() || !k.free.Of(y).Has(i) {
		return nil
	}
	word, weighted := a.Cast(q, u.DType), y
	if q.Op != ir.OpLoad {
		pow := packScale(a, p)
		word, weighted = a.Mul(word, pow), a.Mul(y, a.Binary(ir.OpFDiv, a.Const(u.DType, 1), pow))
	}
	staged := k.stage(weighted)
	total := k.stageSum(y, p)
	if staged == nil || total == nil {
		return nil
	}
	sum := a.Reduce(ir.OpAdd, a.Mul(word, staged), p)
	if k.rows {
		return k.scaled(u, sum, product(a, rest, orOne(a, scale, u.DType)), rest, shift, k.sumOf(y, p))
	}
	if scale != nil {
		sum = a.Mul(product(a, rest, scale), sum)
	}
	switch {
	case shift == nil && scale != nil:
		return sum
	case shift == nil:
		return product(a, rest, sum)
	case scale != nil:
		k.apart[u] = &shifted{words: sum, shift: product(a, rest, shift), total: k.sumOf(y, p)}
		return a.Add(sum, a.Mul(product(a, rest, shift), total))
	case shift.Op == ir.OpConst:
		return product(a, rest, a.Add(sum, k.stage(a.Mul(k.sumOf(y, p), shift))))
	}
	return product(a, rest, a.Add(sum, a.Mul(shift, total)))
}

// scaled notes a sum over a word with its scale and shift apart.
func (k *packer) scaled(u, sum, scale, rest, shift, total *ir.UOp) *ir.UOp {
	a := k.st.Arena
	x := &shifted{words: sum, scale: scale}
	k.apart[u] = x
	value := a.Mul(scale, sum)
	if shift == nil {
		return value
	}
	x.shift, x.total = product(a, rest, shift), total
	return a.Add(value, k.ofShift(x))
}

func orOne(a *ir.Arena, x *ir.UOp, dtype ir.DType) *ir.UOp {
	if x == nil {
		return a.Const(dtype, 1)
	}
	return x
}

func product(a *ir.Arena, x, y *ir.UOp) *ir.UOp {
	switch {
	case x.IsFloat(1):
		return y
	case y.IsFloat(1):
		return x
	}
	return a.Mul(x, y)
}

// linearInWord reads a factor as scale*f(q) + shift with q bytes of a packed
// field, or what a short table has for them, and scale, shift free of p; nil is 1 and 0.
func (k *packer) linearInWord(u *ir.UOp, p int) (scale, q, shift *ir.UOp) {
	a := k.st.Arena
	switch u.Op {
	case ir.OpCast:
		switch x := u.Src[0]; {
		case x.DType == ir.U8 && k.isWord(x) && k.st.bounds.Of(x).Within(0, 127):
			return nil, x, nil
		case k.rows && x.Op == ir.OpField && x.DType == ir.I8:
			return nil, x, nil
		case k.rows:
			if q := PlaceInTable(x); q != nil && k.isWord(q) {
				return nil, x, nil
			}
		}
	case ir.OpAdd, ir.OpSub:
		x, b := u.Src[0], u.Src[1]
		if u.Op == ir.OpAdd && k.free.Of(b).Has(p) {
			x, b = b, x
		}
		if k.free.Of(b).Has(p) {
			return nil, nil, nil
		}
		if u.Op == ir.OpSub {
			b = a.Unary(ir.OpNeg, b)
		}
		var word *ir.UOp
		for _, f := range analyse.Factors(x) {
			if !k.free.Of(f).Has(p) {
				if scale == nil {
					scale = a.Const(u.DType, 1)
				}
				scale = product(a, scale, f)
				continue
			}
			s, w, c := k.linearInWord(f, p)
			if w == nil || s != nil || c != nil || word != nil {
				return nil, nil, nil
			}
			word = w
		}
		return scale, word, b
	}
	return nil, nil, nil
}

// isWord reports bytes computed with masks and constant shifts from fields.
func (k *packer) isWord(u *ir.UOp) bool {
	switch u.Op {
	case ir.OpField:
		return u.DType == ir.U8
	case ir.OpConst:
		return u.DType == ir.U8
	case ir.OpAnd, ir.OpOr, ir.OpXor:
		return k.isWord(u.Src[0]) && k.isWord(u.Src[1])
	case ir.OpShl, ir.OpShr:
		loaded := func(x *ir.UOp) bool { return x.Op == ir.OpLoad || x.Op == ir.OpField || x.Op == ir.OpVar }
		return !analyse.Any(u.Src[1], loaded) && k.isWord(u.Src[0])
	}
	return false
}

// packScale is 2^8p.
func packScale(a *ir.Arena, p *ir.UOp) *ir.UOp {
	amount := a.Cast(a.Mul(p, a.Index(8)), ir.U32)
	return a.Cast(a.Binary(ir.OpShl, a.ConstInt(ir.U32, 1), amount), ir.F32)
}

func (k *packer) sumOf(y, p *ir.UOp) *ir.UOp { return k.st.Arena.Reduce(ir.OpAdd, y, p) }

func (k *packer) stageSum(y, p *ir.UOp) *ir.UOp { return k.stage(k.sumOf(y, p)) }

// stage puts a value free of store ranges into an array over its sub-axes, lanes
// innermost, and reads it at the same sub-axes.
func (k *packer) stage(v *ir.UOp) *ir.UOp {
	if r := k.stages[v]; r != nil {
		return r
	}
	a := k.st.Arena
	rename := make(map[*ir.UOp]*ir.UOp)
	var ranges, index, lanes, laneIndex []*ir.UOp
	bytes, width := int64(v.DType.Size()), int64(1)
	for _, i := range slices.Backward(k.free.Of(v).List()) {
		r := k.free.Ranges[i]
		n, constant := r.Src[0].Int()
		if !constant {
			return nil
		}
		bytes *= n
		z := k.st.newRange(r.Src[0])
		rename[r] = z
		role := k.st.roles[r]
		switch role {
		case plan.Grid: // which matrix
			role = plan.Serial
		case plan.Unroll:
			role = plan.Serial
			if k.rows && n*width <= stageLanes {
				role, width = plan.Lane, n*width
			}
		}
		k.st.place(z, role, orderKey{k.st.order[r].axis + packStageOrder, k.st.order[r].subAxis})
		if role == plan.Lane {
			lanes, laneIndex = append(lanes, z), append(laneIndex, r)
		} else {
			ranges, index = append(ranges, z), append(index, r)
		}
	}
	for _, list := range [][]*ir.UOp{ranges, index, lanes, laneIndex} {
		slices.Reverse(list)
	}
	// Copies inside the stage's own value (the sum over p) keep their range.
	if bytes > int64(k.st.Desc.CacheL2Bytes/2) || bytes > math.MaxInt32 {
		return nil
	}
	src := append([]*ir.UOp{a.Substitute(v, rename)}, append(ranges, lanes...)...)
	read := a.Load(a.Make(ir.OpStage, v.DType, ir.StageArg{}, src...), append(index, laneIndex...)...)
	k.stages[v] = read
	return read
}

// stageLanes are the lanes that copies become where they are put into an array.
const stageLanes = 32

// packStageOrder puts the sub-axes of packed stages after all axes.
const packStageOrder = 1 << 16
