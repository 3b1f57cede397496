package cuda

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// Arithmetic on packed words: what needs no lane of its own. Masks that clear
// what cannot be set are left to the compiler, which knows.

// packedAlu computes an op on whole words of packed lanes, if it is one of
// those that allow it and an operand is in words already. It reports success.
func (r *renderer) packedAlu(in *program.Instr) bool {
	t := in.Result.Type
	if !isPacked(t) || t.Elem.IsFloat() || !r.inWords(in.Args) {
		return false
	}
	var compute func(x, y operand) operand
	switch in.Ir {
	case ir.OpAnd, ir.OpOr, ir.OpXor:
		compute = func(x, y operand) operand {
			return r.let(uint32Type, "%s %s %s", x.text(), bitOps[in.Ir], y.text())
		}
	case ir.OpNot:
		compute = func(x, _ operand) operand { return r.let(uint32Type, "~%s", x.text()) }
	case ir.OpAdd, ir.OpSub:
		compute = func(x, y operand) operand { return r.addPacked(in.Ir, t.Elem, x, y) }
	case ir.OpShl, ir.OpShr:
		count, ok := r.single(in.Args[1])
		if !ok || !count.literal() || in.Ir == ir.OpShr && t.Elem.IsSigned() {
			return false
		}
		compute = func(x, _ operand) operand { return r.shiftPacked(in.Ir, t.Elem, x, count.bits) }
	default:
		return false
	}
	x, y := r.words(in.Args[0]), r.words(in.Args[len(in.Args)-1])
	out := make([]operand, len(x))
	for i := range out {
		out[i] = compute(x[i], y[i])
	}
	r.setWords(in.Result, out)
	return true
}

// inWords reports operands of which some are words and the others literals or
// words.
func (r *renderer) inWords(args []*program.Value) bool {
	some := false
	for _, a := range args {
		if !isPacked(a.Type) {
			return false
		}
		if r.values[a.ID].words != nil {
			some = true
			continue
		}
		for _, o := range r.values[a.ID].lanes {
			if !o.literal() {
				return false
			}
		}
	}
	return some
}

// repeat is a pattern of one element's bits in every lane of a word.
func repeat(d ir.DType, bits uint64) string {
	bits &= 1<<d.Bits() - 1
	if d.Size() == 1 {
		bits |= bits << 8
	}
	return literal(uint32Type, bits|bits<<16)
}

// shiftPacked shifts the word and clears what came from the neighbour.
func (r *renderer) shiftPacked(op ir.Op, d ir.DType, x operand, count uint64) operand {
	all := uint64(1)<<d.Bits() - 1
	switch {
	case count >= uint64(d.Bits()):
		return operand{t: uint32Type}
	case count == 0:
		return x
	case op == ir.OpShl:
		return r.let(uint32Type, "%s << %d & %s", x.text(), count, repeat(d, all<<count))
	}
	return r.let(uint32Type, "%s >> %d & %s", x.text(), count, repeat(d, all>>count))
}

// addPacked keeps carries (or borrows) inside of lanes: the upper bits of the
// lanes are added apart, without one.
func (r *renderer) addPacked(op ir.Op, d ir.DType, x, y operand) operand {
	top := uint64(1) << (d.Bits() - 1)
	tops, rest := repeat(d, top), repeat(d, top-1)
	upper := r.let(uint32Type, "(%s ^ %s) & %s", x.text(), y.text(), tops)
	if op == ir.OpAdd {
		return r.let(uint32Type, "((%s & %s) + (%s & %s)) ^ %s", x.text(), rest, y.text(), rest, upper.text())
	}
	return r.let(uint32Type, "((%s | %s) - (%s & %s)) ^ %s ^ %s", x.text(), tops, y.text(), rest, upper.text(), tops)
}

// movement moves lanes. Packed vectors stay packed where words move as a whole
// or a byte permute does it.
func (r *renderer) movement(in *program.Instr) error {
	t := in.Result.Type
	switch in.Op {
	case program.FoldLanes:
		return r.fold(in)
	case program.Extract:
		r.set(in.Result, []operand{r.sameType(r.lane(in.Args[0], in.Lane), r.typeOf(in.Result))})
		return nil
	}
	if isPacked(t) && r.packedMovement(in) {
		return nil
	}
	lanes := make([]operand, 0, t.Lanes)
	take := func(v *program.Value, i int) { lanes = append(lanes, r.sameType(r.lane(v, i), r.typeOf(in.Result))) }
	switch in.Op {
	case program.Broadcast:
		take(in.Args[0], 0)
		for len(lanes) < t.Lanes {
			lanes = append(lanes, lanes[0])
		}
	case program.Insert:
		for i := range t.Lanes {
			if i == in.Lane {
				take(in.Args[1], 0)
			} else {
				take(in.Args[0], i)
			}
		}
	case program.Shuffle, program.Concat:
		from := gpu.LaneSource(in)
		for i := range t.Lanes {
			take(from(i))
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
	size := t.Elem.Size()
	per := 4 / size
	from := gpu.LaneSource(in)
	if from == nil {
		return false
	}
	plans := make([]gpu.WordPlan, wordsOf(t))
	for i := range plans {
		for k := range per {
			v, at := from(min(i*per+k, t.Lanes-1))
			if !isPacked(v.Type) || r.values[v.ID].words == nil || !plans[i].Add(v, at/per, at%per) {
				return false
			}
		}
	}
	words := make([]operand, len(plans))
	for i := range words {
		p := &plans[i]
		words[i] = r.words(p.Sources[0].Value)[p.Sources[0].Word]
		if p.Identity(size) {
			continue
		}
		b := operand{t: uint32Type}
		if len(p.Sources) == 2 {
			b = r.words(p.Sources[1].Value)[p.Sources[1].Word]
		}
		words[i] = r.permute(words[i], b, p.Selector(size))
	}
	r.setWords(in.Result, words)
	return true
}

// fold combines lanes in program.FoldOrder.
func (r *renderer) fold(in *program.Instr) error {
	v := in.Args[0]
	n := number{dtype: v.Type.Elem, t: r.typeOf(v)}
	if r.typeOf(in.Result) == int64Type {
		n.t = int64Type
	}
	lanes := make([]operand, v.Type.Lanes)
	for i := range lanes {
		lanes[i] = r.lane(v, i)
	}
	sum, err := gpu.Fold(lanes, func(x, y operand) (operand, error) { return r.compute(in.Ir, n, []operand{x, y}) })
	if err != nil {
		return err
	}
	r.set(in.Result, []operand{r.sameType(sum, r.typeOf(in.Result))})
	return nil
}
