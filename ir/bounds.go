package ir

import "math/bits"

// Bounds computes and remembers an Interval for every integer node: ranges,
// divisibility and known bits. It follows integer nodes only (a float says
// nothing about an integer), does not recurse, and visits a node once.
type Bounds struct {
	known NodeMap[Interval]
	todo  []*UOp
}

// NewBounds makes an empty memo. It may serve several graphs of one arena.
func NewBounds() *Bounds { return new(Bounds) }

// Of is what is known about an integer, Bool or Idx node.
func (b *Bounds) Of(u *UOp) Interval {
	if v, ok := b.lookup(u); ok {
		return v
	}
	b.todo = append(b.todo[:0], u)
	for len(b.todo) > 0 {
		top := b.todo[len(b.todo)-1]
		if _, ok := b.lookup(top); ok {
			b.todo = b.todo[:len(b.todo)-1]
			continue
		}
		ready := true
		for _, s := range top.Src {
			if _, ok := b.lookup(s); !ok {
				b.todo = append(b.todo, s)
				ready = false
			}
		}
		if ready {
			b.known.Set(top, b.compute(top))
			b.todo = b.todo[:len(b.todo)-1]
		}
	}
	v, _ := b.known.Get(u)
	return v
}

// lookup finds a node that needs no work.
func (b *Bounds) lookup(u *UOp) (Interval, bool) {
	if u.DType.IsFloat() || u.DType == Void {
		return anything, true
	}
	switch u.Op {
	case OpConst:
		if v, ok := u.Int(); ok {
			if u.DType == U64 && v < 0 {
				return Interval{Lo: 0, Hi: PosInf, Mult: 1, Zeros: ^uint64(v), Ones: uint64(v)}, true
			}
			return constant(v), true
		}
	case OpParam, OpBuffer, OpField, OpProj, OpArg, OpRng, OpValue, OpStage, OpGather, OpAssign, OpIota:
		return rangeOf(u.DType), true
	}
	return b.known.Get(u)
}

// compute derives a node's interval from its sources'.
func (b *Bounds) compute(u *UOp) Interval {
	d := u.DType
	src := func(i int) Interval { v, _ := b.lookup(u.Src[i]); return v }
	switch u.Op {
	case OpVar:
		arg := u.Arg.(VarArg)
		return Interval{Lo: arg.Lo, Hi: arg.Hi, Mult: max(arg.Multiple, 1)}.settle(d)
	case OpRange:
		hi := src(0).Hi
		if hi != PosInf {
			hi = max(hi-1, 0)
		}
		return span(0, hi).settle(d)
	case OpTable:
		return tableInterval(u)
	case OpLoad:
		if u.Src[0].Op == OpTable {
			return src(0)
		}
	case OpAssume:
		return assumeInterval(src(0), src(1), src(2)).settle(d)
	case OpReduce:
		if arg := u.Arg.(ReduceArg); arg.Op != OpInvalid {
			return reduceInterval(arg.Op, d, src(0), b.ofExtent(u.ReduceRange()))
		}
	case OpWhere:
		if c, ok := src(0).Const(); ok {
			return src(2 - int(c))
		}
		return union(src(1), src(2)).settle(d)
	case OpCast:
		return castInterval(d, u.Src[0].DType, src(0))
	case OpCmpLt, OpCmpEq:
		return compareInterval(u.Op, u.Src[0].DType, src(0), src(1))
	}
	if !u.Op.IsElementwise() || d == Bool && u.Op != OpAnd && u.Op != OpOr && u.Op != OpNot && u.Op != OpXor {
		return rangeOf(d)
	}
	switch len(u.Src) {
	case 1:
		return unaryInterval(u.Op, d, src(0))
	case 2:
		return binaryInterval(u.Op, d, src(0), src(1))
	}
	return rangeOf(d)
}

// ofExtent is the interval of a RANGE's extent; a RANGE's sources are known
// when the RANGE is.
func (b *Bounds) ofExtent(r *UOp) Interval {
	if r.Op != OpRange {
		return anything
	}
	v, ok := b.lookup(r.Src[0])
	if !ok {
		return anything
	}
	return v
}

// tableInterval reads the whole of an integer table.
func tableInterval(u *UOp) Interval {
	data, size := u.Arg.(TableArg).Data, u.DType.Size()
	if u.DType == U64 || size == 0 || len(data) < size {
		return rangeOf(u.DType)
	}
	v := span(PosInf, NegInf)
	v.Zeros, v.Ones = ^uint64(0), ^uint64(0)
	for at := 0; at+size <= len(data); at += size {
		var word uint64
		for i := range size {
			word |= uint64(data[at+i]) << (8 * i)
		}
		x := WrapInt(u.DType, int64(word))
		v.Lo, v.Hi = min(v.Lo, x), max(v.Hi, x)
		v.Zeros &= ^uint64(x)
		v.Ones &= uint64(x)
	}
	return v.settle(u.DType)
}

// assumeInterval cuts x to lo..hi unless that leaves nothing.
func assumeInterval(x, lo, hi Interval) Interval {
	cut := x
	cut.Lo, cut.Hi = max(x.Lo, lo.Lo), min(x.Hi, hi.Hi)
	if cut.Lo > cut.Hi {
		return x
	}
	return cut
}

// reduceInterval folds a value of interval x over n points.
func reduceInterval(op Op, d DType, x, n Interval) Interval {
	switch op {
	case OpAdd:
		if d == Bool {
			return rangeOf(d)
		}
		n.Lo = max(n.Lo, 0)
		sum := mulInterval(span(n.Lo, max(n.Hi, n.Lo)), span(x.Lo, x.Hi))
		sum.Mult = GCD(x.Mult, x.Rem) // n unknown: only the common factor of the terms
		if sum.Mult == 0 {
			return constant(0)
		}
		sum.Rem = 0
		return sum.wrap(d)
	case OpMax, OpMin:
		if n.Lo >= 1 {
			return x
		}
	}
	return rangeOf(d)
}

// union holds both.
func union(x, y Interval) Interval {
	v := span(min(x.Lo, y.Lo), max(x.Hi, y.Hi))
	v.Zeros, v.Ones = x.Zeros&y.Zeros, x.Ones&y.Ones
	apart, ok := CheckedAdd(x.Rem, -y.Rem)
	return v.residue(GCD(GCD(x.Mult, y.Mult), apart), x.Rem, ok && y.Rem != NegInf)
}

func castInterval(d, from DType, x Interval) Interval {
	switch {
	case from.IsFloat():
		return rangeOf(d)
	case d == Bool:
		if x.Lo > 0 || x.Hi < 0 || x.Ones != 0 {
			return constant(1)
		}
		if v, ok := x.Const(); ok && v == 0 {
			return constant(0)
		}
		return rangeOf(Bool)
	}
	zeros, ones := extendBits(d, x.Zeros, x.Ones)
	if from == U64 && x.Hi == PosInf || from == Idx && d == U64 && x.Lo < 0 {
		v := rangeOf(d)
		v.Zeros, v.Ones = v.Zeros|zeros, ones
		return v.settle(d)
	}
	v := x.wrap(d)
	v.Zeros, v.Ones = v.Zeros|zeros, v.Ones|ones
	if d == I64 && from == Idx {
		v.Lo, v.Hi, v.Mult, v.Rem = x.Lo, x.Hi, x.Mult, x.Rem
	}
	return v.settle(d)
}

func compareInterval(op Op, d DType, x, y Interval) Interval {
	if d.IsFloat() {
		return rangeOf(Bool)
	}
	below := x.Hi < y.Lo && x.Hi != PosInf && y.Lo != NegInf
	if op == OpCmpLt {
		switch {
		case below:
			return constant(1)
		case x.Lo >= y.Hi && y.Hi != PosInf && x.Lo != NegInf:
			return constant(0)
		}
		return rangeOf(Bool)
	}
	above := y.Hi < x.Lo && y.Hi != PosInf && x.Lo != NegInf
	apart := x.Ones&y.Zeros != 0 || x.Zeros&y.Ones != 0
	if m := GCD(x.Mult, y.Mult); m > 1 && FloorMod(x.Rem, m) != FloorMod(y.Rem, m) {
		apart = true
	}
	xv, xConst := x.Const()
	yv, yConst := y.Const()
	switch {
	case below || above || apart:
		return constant(0)
	case xConst && yConst && xv == yv:
		return constant(1)
	}
	return rangeOf(Bool)
}

func unaryInterval(op Op, d DType, x Interval) Interval {
	switch op {
	case OpNeg:
		return mulInterval(x, constant(-1)).wrap(d)
	case OpNot:
		if d == Bool {
			if v, ok := x.Const(); ok {
				return constant(1 - v)
			}
			return rangeOf(d)
		}
		v := rangeOf(d)
		zeros, ones := extendBits(d, x.Ones, x.Zeros)
		v.Zeros, v.Ones = v.Zeros|zeros, ones
		return v.settle(d)
	case OpAbs:
		switch {
		case x.Lo >= 0:
			return x
		case x.Lo == NegInf:
			return rangeOf(d)
		}
		hi := max(x.Hi, -x.Lo)
		return span(max(0, -x.Hi), hi).wrap(d)
	case OpPopc:
		width := intBits(d)
		known := bits.OnesCount64(x.Ones & widthMask(width))
		unknown := width - bits.OnesCount64((x.Zeros|x.Ones)&widthMask(width))
		return span(int64(known), int64(known+unknown)).settle(d)
	case OpClz:
		return span(0, int64(intBits(d))).settle(d)
	}
	return rangeOf(d)
}

func binaryInterval(op Op, d DType, x, y Interval) Interval {
	switch op {
	case OpAdd:
		return addInterval(x, y).wrap(d)
	case OpSub:
		return addInterval(x, mulInterval(y, constant(-1))).wrap(d)
	case OpMul:
		return mulInterval(x, y).wrap(d)
	case OpFloorDiv:
		return divInterval(d, x, y).wrap(d)
	case OpFloorMod:
		return modInterval(d, x, y)
	case OpMin, OpMax:
		v := union(x, y)
		if op == OpMin {
			v.Hi = min(x.Hi, y.Hi)
		} else {
			v.Lo = max(x.Lo, y.Lo)
		}
		return v.settle(d)
	case OpAnd, OpOr, OpXor:
		return bitInterval(op, d, x, y)
	case OpShl, OpShr:
		return shiftInterval(op, d, x, y)
	}
	return rangeOf(d)
}

func addInterval(x, y Interval) Interval {
	v := span(satAdd(x.Lo, y.Lo), satAdd(x.Hi, y.Hi))
	v.Mult = GCD(x.Mult, y.Mult)
	rem, ok := CheckedAdd(x.Rem, y.Rem)
	return v.residue(v.Mult, rem, ok)
}

// residue sets value = mult*n + rem, or nothing when it is not known.
func (v Interval) residue(mult, rem int64, ok bool) Interval {
	if !ok {
		v.Mult, v.Rem = 1, 0
		return v
	}
	v.Mult, v.Rem = mult, rem
	if mult != 0 {
		v.Rem = FloorMod(rem, mult)
	}
	return v
}

// mulInterval: (m*a + r)(n*b + s) is a multiple of gcd(m*n, m*s, n*r) plus rs.
func mulInterval(x, y Interval) Interval {
	corners := [4]int64{satMul(x.Lo, y.Lo), satMul(x.Lo, y.Hi), satMul(x.Hi, y.Lo), satMul(x.Hi, y.Hi)}
	v := span(corners[0], corners[0])
	for _, c := range corners[1:] {
		v.Lo, v.Hi = min(v.Lo, c), max(v.Hi, c)
	}
	mn, ok1 := CheckedMul(x.Mult, y.Mult)
	ms, ok2 := CheckedMul(x.Mult, y.Rem)
	nr, ok3 := CheckedMul(y.Mult, x.Rem)
	rs, ok4 := CheckedMul(x.Rem, y.Rem)
	return v.residue(GCD(mn, GCD(ms, nr)), rs, ok1 && ok2 && ok3 && ok4)
}

func divInterval(d DType, x, y Interval) Interval {
	if d == U64 && (x.Hi == PosInf || y.Hi == PosInf) {
		return span(0, PosInf)
	}
	if y.Lo < 1 {
		if x.Finite() {
			most := max(satMul(x.Lo, -1), x.Hi, -1*min(x.Lo, 0), 0)
			if x.Lo >= 0 && y.Lo >= 0 {
				return span(0, most)
			}
			return span(satMul(most, -1), most)
		}
		return anything
	}
	v := span(PosInf, NegInf)
	for _, c := range [4]int64{satDiv(x.Lo, y.Lo), satDiv(x.Lo, y.Hi), satDiv(x.Hi, y.Lo), satDiv(x.Hi, y.Hi)} {
		v.Lo, v.Hi = min(v.Lo, c), max(v.Hi, c)
	}
	if c, ok := y.Const(); ok && x.Mult%c == 0 {
		return v.residue(x.Mult/c, FloorDiv(x.Rem, c), true)
	}
	return v
}

func modInterval(d DType, x, y Interval) Interval {
	if d == U64 && (x.Hi == PosInf || y.Hi == PosInf) {
		return rangeOf(d)
	}
	c, isConst := y.Const()
	switch {
	case y.Lo < 0 || !isConst && y.Lo < 1:
		if y.Finite() {
			return span(min(y.Lo+1, 0), max(y.Hi-1, 0)).wrap(d)
		}
		return rangeOf(d)
	case isConst && c == 0:
		return constant(0)
	case x.Lo >= 0 && x.Hi < y.Lo && x.Hi != PosInf:
		return x
	}
	v := span(0, PosInf)
	if y.Hi != PosInf {
		v.Hi = y.Hi - 1
	}
	if x.Lo >= 0 {
		v.Hi = min(v.Hi, x.Hi)
	}
	if !isConst {
		return v.wrap(d)
	}
	if x.Finite() && FloorDiv(x.Lo, c) == FloorDiv(x.Hi, c) {
		v.Lo, v.Hi = FloorMod(x.Lo, c), FloorMod(x.Hi, c)
	}
	v = v.residue(GCD(x.Mult, c), x.Rem, true)
	if c&(c-1) == 0 {
		mask := uint64(c - 1)
		v.Zeros, v.Ones = x.Zeros|^mask, x.Ones&mask
	}
	return v.settle(d)
}

func bitInterval(op Op, d DType, x, y Interval) Interval {
	v := rangeOf(d)
	switch op {
	case OpAnd:
		v.Zeros, v.Ones = x.Zeros|y.Zeros, x.Ones&y.Ones
	case OpOr:
		v.Zeros, v.Ones = x.Zeros&y.Zeros, x.Ones|y.Ones
	case OpXor:
		v.Zeros, v.Ones = x.Zeros&y.Zeros|x.Ones&y.Ones, x.Zeros&y.Ones|x.Ones&y.Zeros
	}
	if d == Bool {
		v.Zeros |= ^uint64(1)
	}
	if op == OpAnd && d != U64 {
		// Masking a value that is not negative makes it no larger.
		if x.Lo >= 0 {
			v.Lo, v.Hi = 0, min(v.Hi, x.Hi)
		}
		if y.Lo >= 0 {
			v.Lo, v.Hi = 0, min(v.Hi, y.Hi)
		}
	}
	return v.settle(d)
}

// shiftInterval treats a constant amount exactly; of others it knows the sign.
func shiftInterval(op Op, d DType, x, y Interval) Interval {
	width := int64(intBits(d))
	c, isConst := y.Const()
	if !isConst || c < 0 || c >= width {
		v := rangeOf(d)
		if op == OpShr && d != U64 && x.Lo >= 0 {
			v.Lo, v.Hi = 0, x.Hi
		}
		return v.settle(d)
	}
	if op == OpShl {
		v := anything
		if c < 62 {
			v = mulInterval(x, constant(1<<c))
		}
		v = v.wrap(d)
		zeros, ones := extendBits(d, x.Zeros<<uint(c)|(1<<uint(c)-1), x.Ones<<uint(c))
		v.Zeros, v.Ones = v.Zeros|zeros, v.Ones|ones
		return v.settle(d)
	}
	if d == U64 {
		v := rangeOf(d)
		v.Zeros, v.Ones = ^(^x.Zeros >> uint(c)), x.Ones>>uint(c)
		if c > 0 {
			v.Hi = int64(^uint64(0) >> uint(c))
		}
		return v.settle(d)
	}
	v := span(x.Lo>>uint(c), x.Hi>>uint(c))
	if x.Lo == NegInf {
		v.Lo = rangeOf(d).Lo >> uint(c)
	}
	if x.Hi == PosInf {
		v.Hi = rangeOf(d).Hi >> uint(c)
	}
	v.Zeros, v.Ones = uint64(int64(x.Zeros)>>uint(c)), uint64(int64(x.Ones)>>uint(c))
	if d == Idx && isInf(x.Lo) {
		v.Lo = NegInf
	}
	if d == Idx && isInf(x.Hi) {
		v.Hi = PosInf
	}
	return v.settle(d)
}

// extendBits cuts known bits to the width of d and extends them to 64 bits as
// values of d are.
func extendBits(d DType, zeros, ones uint64) (uint64, uint64) {
	width := intBits(d)
	if width == 64 {
		return zeros, ones
	}
	if d.IsSigned() {
		up := uint(64 - width)
		return uint64(int64(zeros<<up) >> up), uint64(int64(ones<<up) >> up)
	}
	mask := widthMask(width)
	return zeros | ^mask, ones & mask
}

// OfForm is what is known about a linear form, from its atoms one by one.
func (b *Bounds) OfForm(f LinearForm) Interval {
	sum := constant(f.Const)
	for _, t := range f.Terms {
		sum = addInterval(sum, mulInterval(b.Of(t.Atom), constant(t.Coef)))
	}
	return sum.settle(Idx)
}
