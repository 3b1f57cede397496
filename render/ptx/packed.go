package ptx

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Arithmetic on packed words: what needs no lane of its own.

// packedAlu computes an op on whole words of packed lanes, if it is one of
// those that allow it and an operand is in words already. It reports success.
func (r *renderer) packedAlu(in *program.Instr) bool {
	t := in.Result.Type
	if !isPacked(t) || t.Elem.IsFloat() || !r.inWords(in.Args) {
		return false
	}
	n := number{dtype: ir.U32, class: word}
	d := t.Elem
	var compute func(x, y operand) operand
	bits := r.possible(in.Args[0]) // those that a lane of the result can have
	switch in.Ir {
	case ir.OpAnd:
		other := r.possible(in.Args[1])
		if c, ok := r.single(in.Args[1]); ok && c.literal() && bits&^c.bits == 0 {
			compute = func(x, _ operand) operand { return x }
			break
		}
		bits &= other
		compute = func(x, y operand) operand { return r.emit("and.b32", n, x, y) }
	case ir.OpOr, ir.OpXor:
		bits |= r.possible(in.Args[1])
		name := map[ir.Op]string{ir.OpOr: "or.b32", ir.OpXor: "xor.b32"}[in.Ir]
		compute = func(x, y operand) operand { return r.emit(name, n, x, y) }
	case ir.OpNot:
		bits = mask(d)
		compute = func(x, _ operand) operand { return r.emit("not.b32", n, x) }
	case ir.OpAdd, ir.OpSub:
		bits = mask(d)
		compute = func(x, y operand) operand { return r.addPacked(in.Ir, d, x, y) }
	case ir.OpShl, ir.OpShr:
		count, ok := r.single(in.Args[1])
		if !ok || !count.literal() || in.Ir == ir.OpShr && d.IsSigned() {
			return false
		}
		from := bits
		bits = shiftedBits(in.Ir, d, from, int64(count.bits))
		compute = func(x, _ operand) operand { return r.shiftPacked(in.Ir, d, x, int64(count.bits), from) }
	default:
		return false
	}
	x, y := r.words(in.Args[0]), r.words(in.Args[len(in.Args)-1])
	out := make([]operand, len(x))
	for i := range out {
		out[i] = compute(x[i], y[i])
	}
	r.setWords(in.Result, out)
	r.values[in.Result.ID].bits = bits
	return true
}

func mask(d ir.DType) uint64 { return 1<<d.Bits() - 1 }

// possible are the bits that a lane of a packed vector can have. Lanes past the
// last keep to them as well: they are zeros, copies, or came about by the same
// ops.
func (r *renderer) possible(v *program.Value) uint64 {
	h := r.values[v.ID]
	if h.words != nil && h.bits != 0 {
		return h.bits
	}
	if c, ok := r.single(v); ok && c.literal() {
		return c.bits & mask(v.Type.Elem)
	}
	return mask(v.Type.Elem)
}

func shiftedBits(op ir.Op, d ir.DType, bits uint64, count int64) uint64 {
	switch {
	case count < 0 || count >= int64(d.Bits()):
		return 0
	case op == ir.OpShl:
		return bits << count & mask(d)
	}
	return bits >> count
}

// inWords reports operands of which some are words and the others literals or
// words.
func (r *renderer) inWords(args []*program.Value) bool {
	some := false
	for _, a := range args {
		if !isPacked(a.Type) {
			return false
		}
		switch {
		case r.values[a.ID].words != nil:
			some = true
		case !r.isLiteral(a):
			return false
		}
	}
	return some
}

func (r *renderer) isLiteral(v *program.Value) bool {
	for _, o := range r.values[v.ID].lanes {
		if !o.literal() {
			return false
		}
	}
	return true
}

// repeat is a pattern of one element's bits in every lane of a word.
func repeat(d ir.DType, bits uint64) operand {
	bits &= 1<<d.Bits() - 1
	if d.Size() == 1 {
		bits |= bits << 8
	}
	return operand{bits: bits | bits<<16}
}

// shiftPacked shifts the word and clears what came from the neighbour, if its
// bits can have anything there.
func (r *renderer) shiftPacked(op ir.Op, d ir.DType, x operand, count int64, bits uint64) operand {
	all := mask(d)
	if count < 0 || count >= int64(d.Bits()) {
		return operand{}
	}
	if count == 0 {
		return x
	}
	n := number{dtype: ir.U32, class: word}
	switch {
	case op == ir.OpShl && bits<<count&^all == 0:
		return r.shiftBy("shl.b", n, x, int(count))
	case op == ir.OpShr && bits&(1<<count-1) == 0:
		return r.shiftBy("shr.u", n, x, int(count))
	case op == ir.OpShl:
		return r.emit("and.b32", n, r.shiftBy("shl.b", n, x, int(count)), repeat(d, all<<count))
	}
	return r.emit("and.b32", n, r.shiftBy("shr.u", n, x, int(count)), repeat(d, all>>count))
}

// addPacked keeps carries (or borrows) inside of lanes: the upper bits of the
// lanes are added apart, without one.
func (r *renderer) addPacked(op ir.Op, d ir.DType, x, y operand) operand {
	n := number{dtype: ir.U32, class: word}
	top := uint64(1) << (d.Bits() - 1)
	low := func(o operand) operand { return r.emit("and.b32", n, o, repeat(d, top-1)) }
	upper := r.emit("and.b32", n, r.emit("xor.b32", n, x, y), repeat(d, top))
	if op == ir.OpAdd {
		return r.emit("xor.b32", n, r.emit("add.u32", n, low(x), low(y)), upper)
	}
	difference := r.emit("sub.u32", n, r.emit("or.b32", n, x, repeat(d, top)), low(y))
	flipped := r.emit("xor.b32", n, upper, repeat(d, top))
	return r.emit("xor.b32", n, difference, flipped)
}

// movement moves lanes. Packed vectors stay packed where words move as a whole
// or a byte permute does it.
func (r *renderer) movement(in *program.Instr) error {
	t := in.Result.Type
	switch in.Op {
	case program.FoldLanes:
		return r.fold(in)
	case program.Extract:
		r.set(in.Result, []operand{r.laneFor(in.Args[0], in.Lane, in.Result)})
		return nil
	}
	if isPacked(t) && r.packedMovement(in) {
		return nil
	}
	lane := func(v *program.Value, i int) operand { return r.laneFor(v, i, in.Result) }
	lanes := make([]operand, 0, t.Lanes)
	switch in.Op {
	case program.Broadcast:
		for range t.Lanes {
			lanes = append(lanes, lane(in.Args[0], 0))
		}
	case program.Insert:
		for i := range t.Lanes {
			lanes = append(lanes, lane(in.Args[0], i))
		}
		lanes[in.Lane] = lane(in.Args[1], 0)
	case program.Shuffle:
		n := in.Args[0].Type.Lanes
		for _, m := range in.Mask {
			lanes = append(lanes, lane(in.Args[max(m, 0)/n], max(m, 0)%n))
		}
	case program.Concat:
		for _, a := range in.Args {
			for i := range a.Type.Lanes {
				lanes = append(lanes, lane(a, i))
			}
		}
	default:
		return fmt.Errorf("no %s", in.Op)
	}
	r.set(in.Result, lanes)
	return nil
}

// packedMovement makes each result word of at most two source words.
func (r *renderer) packedMovement(in *program.Instr) bool {
	t := in.Result.Type
	per := 4 / t.Elem.Size()
	from := gpu.LaneSource(in)
	if from == nil {
		return false
	}
	words := make([]operand, wordsOf(t))
	plans := make([]gpu.WordPlan, len(words))
	for i := range words {
		for k := range per {
			lane := min(i*per+k, t.Lanes-1)
			v, at := from(lane)
			if !isPacked(v.Type) || r.values[v.ID].words == nil || !plans[i].Add(v, at/per, at%per) {
				return false
			}
		}
	}
	for i := range words {
		words[i] = r.planned(&plans[i], t.Elem.Size())
	}
	r.setWords(in.Result, words)
	return true
}

// planned is a word made of at most two others.
func (r *renderer) planned(p *gpu.WordPlan, size int) operand {
	a := r.words(p.Sources[0].Value)[p.Sources[0].Word]
	if p.Identity(size) {
		return a
	}
	b := operand{}
	if len(p.Sources) == 2 {
		b = r.words(p.Sources[1].Value)[p.Sources[1].Word]
	}
	return r.prmt(r.inReg(a, word), b, p.Selector(size))
}

// fold combines lanes in program.FoldOrder.
func (r *renderer) fold(in *program.Instr) error {
	v := in.Args[0]
	n := number{dtype: v.Type.Elem, class: r.classOf(v)}
	if r.classOf(in.Result) == wide {
		n.class = wide
	}
	lanes := make([]operand, v.Type.Lanes)
	for i := range lanes {
		lanes[i] = r.laneAs(v, i, n.class)
	}
	sum, err := gpu.Fold(lanes, func(x, y operand) (operand, error) { return r.compute(in.Ir, n, []operand{x, y}) })
	if err != nil {
		return err
	}
	r.set(in.Result, []operand{sum})
	return nil
}
