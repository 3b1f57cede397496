package gpu

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// Accesses of elements that lie apart.

func (s *Selector) gather(in *program.Instr) {
	p, offsets, t := in.Args[0], in.Args[1], in.Result.Type
	if s.lookup(in) {
		return
	}
	access := s.loads(p, in.Cache)
	lanes := make([]Operand, t.Lanes)
	for i := range lanes {
		lanes[i] = s.Loaded(program.Scalar(t.Elem), access, s.element(p, offsets, i), in.Align)[0]
	}
	s.set(in.Result, lanes)
}

func (s *Selector) scatter(in *program.Instr) {
	p, offsets, v := in.Args[0], in.Args[1], in.Args[2]
	for i := range v.Type.Lanes {
		// Nothing is known of the lane's own bounds.
		lane := &program.Value{ID: len(s.values), Type: program.Scalar(v.Type.Elem)}
		o := s.LaneAs(v, i, s.TypeOf(lane))
		s.values = append(s.values, &held{lanes: []Operand{o}})
		s.store(stores(p, in.Cache), lane, s.element(p, offsets, i), in.Align)
	}
}

// lookup is a gather from a table of up to 16 bytes by offsets that came from
// packed bytes: four lanes by byte permutes (the levels of 4-bit codebooks).
func (s *Selector) lookup(in *program.Instr) bool {
	table, from, ok := s.codebook(in)
	if !ok {
		return false
	}
	var levels [4]Operand
	for i := range len(table.Table) {
		levels[i/4].Bits |= uint64(table.Table[i]) << (8 * (i % 4))
	}
	for i := range levels {
		key := fmt.Sprintf("levels %d %d", table.Value.ID, i)
		levels[i] = s.Once(key, func() Operand { return s.print.Variable(word(levels[i].Bits), U32) })
	}
	words := s.Words(from)
	out := make([]Operand, len(words))
	for i, w := range words {
		out[i] = s.levels(w, levels, len(table.Table) > 8)
	}
	s.setWords(in.Result, out)
	return true
}

// codebook finds the table and the packed bytes of a lookup.
func (s *Selector) codebook(in *program.Instr) (table *program.Param, from *program.Value, ok bool) {
	p, offsets, t := in.Args[0], in.Args[1], in.Result.Type
	table, from = s.tables[p], s.origin[offsets]
	if table == nil || from == nil || t.Elem.Size() != 1 || t.Elem == ir.Bool || !IsPacked(t) {
		return nil, nil, false
	}
	a := s.Address(p)
	if len(table.Table) > 16 || a.Off != 0 || a.Base != s.Address(table.Value).Base || s.values[from.ID].words == nil {
		return nil, nil, false
	}
	b, known := s.bounds[offsets]
	return table, from, known && b.Lo >= 0 && b.Hi < int64(len(table.Table))
}

// levels looks up four bytes. The two lower bits of the selector's nibbles pick
// within a word, the next the word, the upper one which half of the table.
func (s *Selector) levels(w Operand, levels [4]Operand, large bool) Operand {
	shifted := func(w Operand, by uint64) Operand {
		return s.word(ir.OpShr, s.print.Variable(w, U32), Operand{Bits: by, Type: I32})
	}
	pairs := s.print.Named(s.word(ir.OpOr, w, shifted(w, 4)))
	selector := s.print.Permute(pairs, word(0), 0x4420)
	within := s.print.Named(s.word(ir.OpAnd, selector, word(0x7777)))
	low := s.print.PermuteBy(levels[0], levels[1], within)
	if !large {
		return low
	}
	high := s.print.PermuteBy(levels[2], levels[3], within)
	choice := s.word(ir.OpAnd, shifted(selector, 1), word(0x4444))
	return s.print.PermuteBy(low, high, s.print.Named(s.word(ir.OpOr, choice, word(0x3210))))
}
