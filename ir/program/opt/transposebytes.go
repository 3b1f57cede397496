package opt

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Weights of a few bits may lie side by side in a byte: neighbours have their bits from the same
// byte, each shifted by an amount of its own, which takes a shift and a mask for each. Of four
// bytes of a word the fields in the same place are shifted and masked together. So four vectors of
// neighbours, one of each byte, are computed as four vectors of bytes, one of each place:
//
//	byte b of w >> {0,2,4,6} & 3, for b = 0..3   is the transpose of   w >> 2*f & 3, for f = 0..3
//
// Floats change places without an instruction. A sum of products of bytes takes the vectors as
// they are, and the transpose of the other factors, which rows share.

// transposeBytes computes the fields of bytes of a word together.
func transposeBytes(p *program.Program) {
	renumber(p)
	t := &transposer{
		Builder: program.Resume(p), fieldFinder: fieldsIn(p), readers: p.Readers(),
		fours: make(map[*program.Value]*transposed), renamed: make(map[*program.Value]*program.Value), loads: make(map[*program.Value]*program.Value), unread: make(map[*program.Value]bool),
	}
	t.find(p.Body)
	if len(t.fours) == 0 {
		return
	}
	for _, four := range t.fours {
		t.loads[t.loadOf(four.lanes.word).Result] = nil
	}
	t.block(p.Body)
	t.Finish()
	for v, w := range t.renamed {
		for t.renamed[w] != nil {
			w = t.renamed[w]
		}
		t.renamed[v] = w
	}
	renameValues(p.Body, t.renamed)
	dropUnreadIn(p.Body, p.Readers(), func(in *program.Instr) bool { return t.unread[in.Result] || isVector(in) })
	renumber(p)
}

// wordLanes are the bytes of a word.
const wordLanes = 4

type transposer struct {
	*program.Builder
	fieldFinder
	readers map[*program.Value]int
	fours   map[*program.Value]*transposed    // by where they stand
	renamed map[*program.Value]*program.Value // what vectors and sums become
	loads   map[*program.Value]*program.Value // loaded words, as bytes
	unread  map[*program.Value]bool           // words and their parts, of which bytes were taken
	made    map[string]*program.Value         // in the block that is being written
}

// sideBySide are lanes that are computed alike of one byte of a word.
type sideBySide struct {
	how   string         // they are computed, of which word
	word  *program.Value // of four bytes
	place int            // of the byte
	of    *program.Value // what is computed
	first int            // of its lanes
}

// transposed are the same lanes of each of the four bytes of a word: floats, or factors of sums
// that go into one sum.
type transposed struct {
	lanes  sideBySide               // of one of them
	of     [wordLanes]program.Instr // by the place of the byte
	factor int                      // argument of sums; 0: floats
	found  int                      // bits of the bytes found
	at     *program.Value           // the result of the instruction after which the transpose stands
}

// find finds what is transposed in a block and in those in it.
func (t *transposer) find(b *program.Block) {
	open, reader := make(map[string]*transposed), make(map[*program.Value]*program.Instr)
	for i := range b.Instrs {
		for _, a := range b.Instrs[i].Args {
			reader[a] = &b.Instrs[i]
		}
	}
	for i := range b.Instrs {
		in := &b.Instrs[i]
		for inner := range in.Blocks() {
			t.find(inner)
		}
		s, factor, into := t.sideBySide(in, reader)
		if into == "" {
			continue
		}
		key := s.how + into
		if open[key] == nil {
			open[key] = &transposed{lanes: s, factor: factor, at: in.Result}
		}
		four := open[key]
		if factor > 0 {
			four.at = in.Result // where all other factors are known
		}
		four.of[s.place], four.found = *in, four.found|1<<s.place
		if four.found == 1<<wordLanes-1 {
			delete(open, key)
			t.fours[four.at] = four
		}
	}
}

// sideBySide reads lanes that may be transposed with those of three other bytes, and what they go
// into, all in the same way; "": they may not.
func (t *transposer) sideBySide(in *program.Instr, reader map[*program.Value]*program.Instr) (s sideBySide, factor int, into string) {
	switch {
	case in.Op == program.Dot4 && in.Result.Type.Lanes == 1:
		for k := 2; k >= 1; k-- {
			if s, ok := t.lanesOf(in.Args[k]); ok && t.makers[in.Args[3-k]].Op != program.Const {
				return s, k, fmt.Sprintf("factor %d of %d, beside %v", k, t.total(in.Result, reader).ID, in.Args[3-k].Type)
			}
		}
	case in.Op == program.Alu && in.Result.Type.Elem == ir.F32 && in.Result.Type.Lanes%wordLanes == 0 && !t.goesOn(in.Result, reader):
		if s, ok := t.lanesOf(in.Result); ok {
			return s, 0, "floats"
		}
	}
	return sideBySide{}, 0, ""
}

// goesOn reports a value whose only reader is computed of the same byte alone.
func (t *transposer) goesOn(v *program.Value, reader map[*program.Value]*program.Instr) bool {
	in := reader[v]
	if t.readers[v] != 1 || in == nil || in.Op != program.Alu {
		return false
	}
	_, ok := t.lanesOf(in.Result)
	return ok
}

// total is the sum that a sum goes into, and nowhere else.
func (t *transposer) total(v *program.Value, reader map[*program.Value]*program.Instr) *program.Value {
	for t.readers[v] == 1 && reader[v] != nil {
		in := reader[v]
		adds := in.Op == program.Alu && (in.Ir == ir.OpAdd || in.Ir == ir.OpSub && in.Args[0] == v)
		if !adds && (in.Op != program.Dot4 || in.Args[0] != v) {
			break
		}
		v = in.Result
	}
	return v
}

// lanesOf reads lanes that are computed of one byte, each with constants of its own.
func (t *transposer) lanesOf(v *program.Value) (s sideBySide, ok bool) {
	s.of = v
	if in := t.makers[v]; in != nil && v.Type.Lanes == wordLanes {
		if word, ok := in.TakesWord(); ok {
			s.of, s.first = in.Args[0], wordLanes*word
		}
	}
	s.how = fmt.Sprintf("%d of %d: ", s.first, s.of.Type.Lanes)
	differs := false
	ok = t.describe(s.of, &s, &differs)
	return s, ok && differs && s.word != nil
}

// describe adds how lanes are computed; false: otherwise, or of several bytes.
func (t *transposer) describe(v *program.Value, s *sideBySide, differs *bool) bool {
	in := t.makers[v]
	if in == nil || v.Type.Lanes != s.of.Type.Lanes {
		return false
	}
	switch _, known := t.constant(v); {
	case known || in.Op == program.ConstLanes && in.Ints != nil:
		s.how += fmt.Sprintf("%d ", v.ID)
		*differs = *differs || !known
		return true
	case in.Op == program.Broadcast:
		w, place, ok := t.byteOf(in.Args[0])
		if !ok || t.loadOf(w) == nil || s.word != nil && (s.word != w || s.place != place) {
			return false
		}
		s.word, s.place = w, place
		s.how += fmt.Sprintf("byte of %d ", w.ID)
		return true
	case in.Op == program.Alu && slices.Contains(onLanes, in.Ir):
		s.how += fmt.Sprintf("%v %v ", in.Ir, v.Type.Elem)
		return !slices.ContainsFunc(in.Args, func(a *program.Value) bool { return !t.describe(a, s, differs) })
	}
	return false
}

// onLanes are operations by which fields are taken out of bytes, and converted.
var onLanes = []ir.Op{ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpShl, ir.OpShr, ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpCast}

// loadOf is what loads a word, by itself or beside others; nil, if nothing does.
func (t *transposer) loadOf(w *program.Value) *program.Instr {
	in := t.makers[w]
	if in != nil && in.Op == program.Extract {
		in = t.makers[in.Args[0]]
	}
	if in == nil || in.Op != program.Load || len(in.Args) != 1 {
		return nil
	}
	return in
}

// block writes a block and those in it anew.
func (t *transposer) block(b *program.Block) {
	outer, instrs := t.made, b.Instrs
	t.made = make(map[string]*program.Value)
	b.Instrs = make([]program.Instr, 0, len(instrs))
	for _, in := range instrs {
		for inner := range in.Blocks() {
			t.block(inner)
		}
		t.With(b, func() {
			t.Emit(in)
			if in.Result == nil {
				return
			}
			before := t.MakeFor(in.Result.Origin)
			if _, wanted := t.loads[in.Result]; wanted {
				t.loadBytes(in)
			}
			if four := t.fours[in.Result]; four != nil {
				t.write(four)
			}
			t.MakeAgainFor(before)
		})
	}
	t.made = outer
}

// loadBytes loads words once more, as bytes.
func (t *transposer) loadBytes(in program.Instr) {
	words := in.Result
	in.Args = []*program.Value{t.PtrCast(in.Args[0], ir.U8)}
	in.Result = t.NewValue(program.Vector(ir.U8, wordLanes*words.Type.Lanes))
	t.Emit(in)
	t.loads[words], t.unread[words] = in.Result, true
}

// write writes the transpose, and what takes the place of what was transposed.
func (t *transposer) write(four *transposed) {
	if four.factor > 0 {
		t.sums(four)
	} else {
		t.floats(four)
	}
	for _, in := range four.of {
		t.unread[in.Result] = true
	}
	for w := range t.wordsOf(four) {
		t.unread[w] = true
	}
}

// wordsOf are what the four bytes were made of, down to the word.
func (t *transposer) wordsOf(four *transposed) map[*program.Value]bool {
	all := make(map[*program.Value]bool)
	var visit func(v *program.Value)
	visit = func(v *program.Value) {
		in := t.makers[v]
		if all[v] || in == nil || in.Op == program.Load || in.Op == program.Const {
			return
		}
		all[v] = true
		for _, a := range in.Args {
			visit(a)
		}
	}
	for _, in := range four.of {
		visit(in.Args[four.factor])
	}
	return all
}

// floats lets vectors be lanes of their transpose.
func (t *transposer) floats(four *transposed) {
	n := four.lanes.of.Type.Lanes
	fields := lists.Make(n, func(f int) *program.Value { return t.field(four.lanes, f) })
	for b, in := range four.of {
		pairs := lists.Make(n/2, func(i int) *program.Value { return t.Shuffle(fields[2*i], fields[2*i+1], b, wordLanes+b) })
		t.renamed[in.Result] = t.Concat(pairs...)
	}
}

// sums writes four sums as a chain of sums of the transpose.
func (t *transposer) sums(four *transposed) {
	var others [wordLanes]*program.Value
	last := 0
	for b, in := range four.of {
		others[b] = in.Args[3-four.factor]
		if in.Result == four.at {
			last = b
		}
		t.renamed[in.Result] = in.Args[0]
	}
	total := four.of[last].Args[0]
	for f, other := range t.transpose(others) {
		args := [2]*program.Value{t.field(four.lanes, f), other}
		if four.factor == 2 {
			args[0], args[1] = args[1], args[0]
		}
		total = t.Dot4(total, args[0], args[1])
	}
	t.renamed[four.of[last].Result] = total
}

// transpose makes vectors of the first lanes of four vectors, of the second ones, and so on.
func (t *transposer) transpose(x [wordLanes]*program.Value) (out [wordLanes]*program.Value) {
	merged := func(a, b *program.Value, mask ...int) *program.Value {
		return t.once(fmt.Sprintf("lanes %v of %d and %d", mask, a.ID, b.ID), func() *program.Value { return t.Shuffle(a, b, mask...) })
	}
	for half, mask := range [][]int{{0, 4, 1, 5}, {2, 6, 3, 7}} {
		a, b := merged(x[0], x[1], mask...), merged(x[2], x[3], mask...)
		out[2*half], out[2*half+1] = merged(a, b, 0, 1, 4, 5), merged(a, b, 2, 3, 6, 7)
	}
	return out
}

// once is a value of the block that is made once.
func (t *transposer) once(key string, make func() *program.Value) *program.Value {
	if t.made[key] == nil {
		t.made[key] = make()
	}
	return t.made[key]
}

// field is one lane of all bytes of a word.
func (t *transposer) field(s sideBySide, lane int) *program.Value {
	return t.once(fmt.Sprintf("field %d of %s", lane, s.how), func() *program.Value { return t.make(s.of, s.first+lane) })
}

// make computes for all bytes of a word what a lane of a value is computed of one.
func (t *transposer) make(v *program.Value, lane int) *program.Value {
	in, of := t.makers[v], program.Vector(v.Type.Elem, wordLanes)
	switch {
	case in.Op == program.ConstLanes:
		return t.Int(of, in.Ints[lane])
	case in.Op == program.Const && of.Elem.IsFloat():
		return t.Float(of, in.Float)
	case in.Op == program.Const:
		return t.Int(of, in.Int)
	case in.Op == program.Alu:
		args := lists.Map(in.Args, func(a *program.Value) *program.Value { return t.make(a, lane) })
		if in.Ir == ir.OpCast {
			return t.Cast(args[0], of.Elem)
		}
		return t.Alu(in.Ir, args...)
	}
	if w, _, ok := t.byteOf(in.Args[0]); ok {
		return t.bytes(w)
	}
	return t.Broadcast(in.Args[0], wordLanes) // of a constant
}

// bytes are those of a word.
func (t *transposer) bytes(w *program.Value) *program.Value {
	if all := t.loads[w]; all != nil {
		return all
	}
	of := t.makers[w]
	return t.once(fmt.Sprintf("bytes of %d", w.ID), func() *program.Value { return t.Slice(t.loads[of.Args[0]], wordLanes*of.Lane, wordLanes) })
}
