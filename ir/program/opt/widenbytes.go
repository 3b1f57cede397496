package opt

import (
	"math/bits"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/target"
)

// Rows that lie interleaved are read as words, of which each holds bytes of one row. A byte of
// a word narrows the vector, which is computed on as bytes and widened again where it becomes
// floats: five instructions of the one port that moves bytes across lanes. What bytes are
// computed with here (masks, shifts, choices) gives the same in the words, whose upper bits are
// masked where a later step would see them. A panel of 16 rows of Q4_K takes an Intel core 28
// instead of 60 cycles for 128 weights, by the tables of LLVM.

// widenBytes computes in words what becomes floats and is made of bytes of words.
func widenBytes(p *program.Program, desc *target.Desc) {
	w := &widener{Builder: program.Resume(p), makers: make(map[*program.Value]*program.Instr), vectorBytes: desc.VectorBytes}
	p.Body.Each(func(in *program.Instr) {
		if in.Result != nil {
			copied := *in // blocks are written anew
			w.makers[in.Result] = &copied
		}
	})
	w.block(p.Body)
	if !w.found {
		return
	}
	w.Finish()
	dropUnread(p)
}

type widener struct {
	*program.Builder
	makers      map[*program.Value]*program.Instr
	vectorBytes int
	found       bool
	words       map[*program.Value]words // of the block that is being written
}

// words are bytes in lanes of 32 bits. The bytes are below 2^bits; where they are dirty, what
// stands above in the words means nothing. Bytes with signs are whole numbers in their words.
type words struct {
	value  *program.Value
	bits   int
	dirty  bool
	signed bool
}

// block writes a block and those in it anew.
func (w *widener) block(b *program.Block) {
	outer, instrs := w.words, b.Instrs
	w.words = make(map[*program.Value]words)
	b.Instrs = make([]program.Instr, 0, len(instrs))
	for _, in := range instrs {
		for inner := range in.Blocks() {
			w.block(inner)
		}
		w.With(b, func() {
			if w.pays(&in) {
				w.found = true
				before := w.MakeFor(in.Result.Origin)
				in.Args = []*program.Value{w.clean(w.widen(in.Args[0])).value}
				w.MakeAgainFor(before)
			}
			w.Emit(in)
		})
	}
	w.words = outer
}

// pays reports a conversion of bytes of words to floats, one register of them.
func (w *widener) pays(in *program.Instr) bool {
	if in.Op != program.Alu || in.Ir != ir.OpCast || in.Result.Type.Elem != ir.F32 {
		return false
	}
	of := in.Args[0].Type
	narrow := of.Elem == ir.U8 || of.Elem == ir.I8
	if !narrow || of.Lanes == 1 || of.Lanes*ir.I32.Size() > w.vectorBytes {
		return false
	}
	fromWords, ok := w.widens(in.Args[0])
	return ok && fromWords
}

// widens reports a value whose words can be computed, and whether it is made of words.
func (w *widener) widens(v *program.Value) (fromWords, ok bool) {
	in := w.makers[v]
	switch {
	case in == nil:
		return false, false
	case in.Op == program.Const, in.Op == program.Broadcast && v.Type.Elem == ir.U8:
		return false, true
	case in.Op != program.Alu:
		return false, false
	}
	args := in.Args
	switch in.Ir {
	case ir.OpCast:
		from := args[0].Type.Elem
		if v.Type.Elem == ir.U8 && (from == ir.U32 || from == ir.I32) {
			return true, true
		}
		if v.Type.Elem != ir.I8 || from != ir.U8 || w.bitsOf(args[0]) >= byteBits {
			return false, false
		}
	case ir.OpAdd: // of a number that has no sign and one that has: it never leaves the byte
		if c := w.makers[args[1]]; v.Type.Elem != ir.I8 || c == nil || c.Op != program.Const || c.Int > 0 || w.makers[args[0]] == nil || w.makers[args[0]].Ir != ir.OpCast {
			return false, false
		}
		return w.widens(args[0])
	case ir.OpAnd, ir.OpOr, ir.OpShr:
		if v.Type.Elem != ir.U8 {
			return false, false
		}
	case ir.OpShl:
		if c := w.makers[args[1]]; v.Type.Elem != ir.U8 || c == nil || c.Op != program.Const {
			return false, false
		}
	case ir.OpWhere:
		if v.Type.Elem != ir.U8 {
			return false, false
		}
		args = args[1:]
	default:
		return false, false
	}
	for _, a := range args {
		more, ok := w.widens(a)
		if !ok {
			return false, false
		}
		fromWords = fromWords || more
	}
	return fromWords, true
}

// bitsOf bounds a value of bytes: it is below 2 to this.
func (w *widener) bitsOf(v *program.Value) int {
	in := w.makers[v]
	switch {
	case in == nil:
	case in.Op == program.Const:
		return bits.Len8(uint8(in.Int))
	case in.Op != program.Alu:
	case in.Ir == ir.OpAnd:
		return min(w.bitsOf(in.Args[0]), w.bitsOf(in.Args[1]))
	case in.Ir == ir.OpOr:
		return max(w.bitsOf(in.Args[0]), w.bitsOf(in.Args[1]))
	case in.Ir == ir.OpWhere:
		return max(w.bitsOf(in.Args[1]), w.bitsOf(in.Args[2]))
	case in.Ir == ir.OpShr || in.Ir == ir.OpShl:
		if c := w.makers[in.Args[1]]; c != nil && c.Op == program.Const {
			shift := int(c.Int)
			if in.Ir == ir.OpShr {
				shift = -shift
			}
			return min(max(w.bitsOf(in.Args[0])+shift, 0), byteBits)
		}
		if in.Ir == ir.OpShr {
			return w.bitsOf(in.Args[0])
		}
	}
	return byteBits
}

// widen makes the words of a value for which widens holds.
func (w *widener) widen(v *program.Value) words {
	if known, ok := w.words[v]; ok {
		return known
	}
	out := w.make(v, w.makers[v])
	w.words[v] = out
	return out
}

func (w *widener) make(v *program.Value, in *program.Instr) words {
	wide := program.Vector(ir.I32, v.Type.Lanes)
	number := w.bitsOf(v)
	switch in.Op {
	case program.Const:
		return words{value: w.Int(wide, in.Int), bits: number}
	case program.Broadcast:
		return words{value: w.Broadcast(w.Cast(in.Args[0], ir.I32), v.Type.Lanes), bits: number}
	}
	switch in.Ir {
	case ir.OpCast:
		if in.Args[0].Type.Elem == ir.U8 {
			x := w.clean(w.widen(in.Args[0]))
			return words{value: x.value, bits: number, signed: true}
		}
		return words{value: w.Cast(in.Args[0], ir.I32), bits: number, dirty: true}
	case ir.OpAdd:
		x := w.widen(in.Args[0])
		return words{value: w.Alu(ir.OpAdd, x.value, w.Int(wide, w.makers[in.Args[1]].Int)), bits: byteBits, signed: true}
	case ir.OpAnd:
		return w.and(w.widen(in.Args[0]), w.widen(in.Args[1]), number)
	case ir.OpWhere:
		x, y := w.clean(w.widen(in.Args[1])), w.clean(w.widen(in.Args[2]))
		return words{value: w.Where(in.Args[0], x.value, y.value), bits: number}
	case ir.OpOr:
		x, y := w.clean(w.widen(in.Args[0])), w.clean(w.widen(in.Args[1]))
		return words{value: w.Alu(ir.OpOr, x.value, y.value), bits: number}
	}
	x, by := w.widen(in.Args[0]), w.clean(w.widen(in.Args[1]))
	c := w.makers[in.Args[1]]
	if in.Ir == ir.OpShl { // by a constant; what leaves the byte stands above it
		dirty := x.dirty || x.bits+int(c.Int) > byteBits
		return words{value: w.Alu(ir.OpShl, x.value, by.value), bits: number, dirty: dirty}
	}
	if c.Op != program.Const || int(c.Int) >= x.bits {
		x = w.clean(x)
	}
	return words{value: w.Alu(ir.OpShr, x.value, by.value), bits: number, dirty: x.dirty}
}

// and is x and y: one of them that is clean takes away what means nothing in the other, as far
// as its own bits reach.
func (w *widener) and(x, y words, number int) words {
	if x.dirty {
		x, y = y, x
	}
	dirty := y.dirty && (x.dirty || x.bits > y.bits)
	return words{value: w.Alu(ir.OpAnd, x.value, y.value), bits: number, dirty: dirty}
}

// clean are words with nothing above their bytes.
func (w *widener) clean(x words) words {
	if !x.dirty {
		return x
	}
	mask := w.Int(program.Vector(ir.I32, x.value.Type.Lanes), 1<<x.bits-1)
	return words{value: w.Alu(ir.OpAnd, x.value, mask), bits: x.bits}
}
