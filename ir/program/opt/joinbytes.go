package opt

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// Scales of groups are bytes of words, often a few bits of two of them. A thread that has
// several groups computed each from its byte: four scales of six bits took 24 instructions.
// What is done to several bytes of a word in the same way is done to the word here, once.

// joinBytes computes bytes of a word together, where they are computed alike.
func joinBytes(p *program.Program) {
	renumber(p)
	j := &byteJoiner{Builder: program.Resume(p), fieldFinder: fieldsIn(p)}
	j.block(p.Body)
	if j.joined {
		j.Finish()
		dropUnread(p)
	}
}

type byteJoiner struct {
	*program.Builder
	fieldFinder
	joined bool
}

// wordByte is a byte that is made of bytes of words, all in the same place.
type wordByte struct {
	how   string // it is made, of which words
	place int    // in words
}

// block writes a block and those in it anew.
func (j *byteJoiner) block(b *program.Block) {
	instrs := b.Instrs
	alike := j.alike(instrs)
	words := make(map[string]*program.Value)
	b.Instrs = make([]program.Instr, 0, len(instrs))
	for _, in := range instrs {
		for inner := range in.Blocks() {
			j.block(inner)
		}
		j.With(b, func() {
			if c, ok := j.converted(&in); ok && len(alike[c.how]) > 1 {
				before := j.MakeFor(in.Result.Origin)
				if words[c.how] == nil {
					words[c.how] = j.word(in.Args[0])
				}
				in.Args, j.joined = []*program.Value{j.byteAt(words[c.how], c.place)}, true
				j.MakeAgainFor(before)
			}
			j.Emit(in)
		})
	}
}

// alike are the places of bytes that a block converts, by how they are made.
func (j *byteJoiner) alike(instrs []program.Instr) map[string]map[int]bool {
	found := make(map[string]map[int]bool)
	for i := range instrs {
		if c, ok := j.converted(&instrs[i]); ok {
			if found[c.how] == nil {
				found[c.how] = make(map[int]bool)
			}
			found[c.how][c.place] = true
		}
	}
	return found
}

// converted reports the conversion of a byte that is computed from words.
func (j *byteJoiner) converted(in *program.Instr) (wordByte, bool) {
	if in.Op != program.Alu || in.Ir != ir.OpCast || in.Args[0].Type != program.Scalar(ir.U8) || in.Result.Type.Elem == ir.U8 {
		return wordByte{}, false
	}
	if of := j.makers[in.Args[0]]; of == nil || of.Ir == ir.OpCast {
		return wordByte{}, false // as it is
	}
	c := wordByte{place: -1}
	ok := j.describe(in.Args[0], &c)
	return c, ok
}

// describe adds how a byte is made; false: otherwise.
func (j *byteJoiner) describe(v *program.Value, c *wordByte) bool {
	if in := j.makers[v]; in != nil && in.Op == program.Alu && in.Ir == ir.OpWhere {
		c.how += fmt.Sprintf("where %d ", in.Args[0].ID)
		return j.describe(in.Args[1], c) && j.describe(in.Args[2], c)
	}
	fields := j.fieldsOf(v)
	c.how += fmt.Sprintf("fields %d ", len(fields))
	for _, f := range fields {
		w, place, ok := j.byteOf(f.of)
		if !ok || c.place >= 0 && c.place != place {
			return false
		}
		c.place = place
		c.how += fmt.Sprintf("%d %d %d ", w.ID, f.bits, f.up)
	}
	return true
}

// word computes all four bytes that are made as one is.
func (j *byteJoiner) word(v *program.Value) (out *program.Value) {
	if in := j.makers[v]; in.Ir == ir.OpWhere {
		return j.Where(in.Args[0], j.word(in.Args[1]), j.word(in.Args[2]))
	}
	for _, f := range j.fieldsOf(v) {
		w, _, _ := j.byteOf(f.of)
		switch {
		case f.up > 0:
			w = j.Alu(ir.OpShl, w, j.Int(w.Type, int64(f.up)))
		case f.up < 0:
			w = j.Alu(ir.OpShr, w, j.Int(w.Type, int64(-f.up)))
		}
		if f.bits != allBits || f.up != 0 {
			w = j.Alu(ir.OpAnd, w, j.Int(w.Type, 0x01010101*int64(shifted(f.bits, f.up))))
		}
		if out != nil {
			w = j.Alu(ir.OpOr, out, w)
		}
		out = w
	}
	return out
}

// byteAt is a byte of a word.
func (j *byteJoiner) byteAt(w *program.Value, place int) *program.Value {
	if place > 0 {
		w = j.Alu(ir.OpShr, w, j.Int(w.Type, int64(byteBits*place)))
	}
	return j.Cast(w, ir.U8)
}
