package gpu

import (
	"fmt"

	"tgc/internal/lists"
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
	lanes := lists.Make(t.Lanes, func(i int) Operand {
		return s.Loaded(program.Scalar(t.Elem), access, s.element(p, offsets, i), in.Align)[0]
	})
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
	half, paired := s.pairs[from]
	paired = paired && s.values[half.of.ID].words != nil
	if paired && s.leaveToDots(in, table) {
		return true
	}
	levels := s.tableWords(fmt.Sprintf("levels %d", table.Value.ID), []byte(table.Table))
	large := len(table.Table) > 8
	if paired {
		from = half.of
	}
	words := s.Words(from)
	out := make([]Operand, len(words))
	for i, w := range words {
		if paired {
			key := fmt.Sprintf("levels %d of %d %d", table.Value.ID, from.ID, i)
			out[i] = s.nibbleLevels(key, w, levels, large, half.upper)
		} else {
			out[i] = s.levels(w, levels, large)
		}
	}
	s.setWords(in.Result, out)
	return true
}

// tableWords are the words of a table of up to 16 bytes, under a key. A permute takes one
// constant. PTX's compiler would keep the other in a register that a warp shares and copy it
// for each permute, so the first word of each two is made of something that it takes to
// differ between threads (docs/bench/h200-shared-tables.txt: a ninth of a kernel's instructions).
func (s *Selector) tableWords(key string, table []byte) (words [4]Operand) {
	for i, b := range table {
		words[i/4].Bits |= uint64(b) << (8 * (i % 4))
	}
	for i := range words {
		bits := word(words[i].Bits)
		words[i] = s.Once(fmt.Sprintf("%s %d", key, i), func() Operand {
			if !s.simplify || i%2 != 0 {
				return s.print.Variable(bits, U32)
			}
			zero := s.Once("zero", func() Operand { return s.print.Named(s.shiftedRight(s.print.Thread('x'), 16)) })
			return s.print.Named(s.word(ir.OpXor, zero, bits))
		})
	}
	return words
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

// levels looks up four bytes: their nibbles side by side select.
func (s *Selector) levels(w Operand, levels [4]Operand, large bool) Operand {
	pairs := s.print.Named(s.word(ir.OpOr, w, s.shiftedRight(w, 4)))
	selector := s.print.Named(s.print.Permute(pairs, word(0), 0x4420))
	within, choice := s.selectors(selector, large)
	return s.selectLevels(levels, within, choice, large)
}

// nibbleLevels looks up the lower or the upper nibbles of four bytes. Both halves of the
// bytes select as they lie, and are put in order afterwards: less work than four at a
// time. key names what both have in common.
func (s *Selector) nibbleLevels(key string, w Operand, levels [4]Operand, large, upper bool) Operand {
	var four [2]Operand
	for i := range four {
		four[i] = s.Once(fmt.Sprintf("%s %d", key, i), func() Operand {
			within := s.Once(key+" within", func() Operand { return s.print.Named(s.word(ir.OpAnd, w, word(0x77777777))) })
			choice := within
			if large {
				choice = s.Once(key+" choice", func() Operand {
					upper := s.word(ir.OpAnd, s.shiftedRight(w, 1), word(0x44444444))
					return s.print.Named(s.word(ir.OpOr, upper, word(0x32103210)))
				})
			}
			if i == 1 {
				within, choice = s.print.Named(s.shiftedRight(within, 16)), s.print.Named(s.shiftedRight(choice, 16))
			}
			return s.print.Named(s.selectLevels(levels, within, choice, large))
		})
	}
	if upper {
		return s.print.Permute(four[0], four[1], 0x7531)
	}
	return s.print.Permute(four[0], four[1], 0x6420)
}

// selectors are those of the two permutes of four nibbles: the two lower bits pick a
// byte of a word, the next the word, the upper one which half of the table.
func (s *Selector) selectors(nibbles Operand, large bool) (within, choice Operand) {
	within = s.print.Named(s.word(ir.OpAnd, nibbles, word(0x7777)))
	if large {
		upper := s.word(ir.OpAnd, s.shiftedRight(nibbles, 1), word(0x4444))
		choice = s.print.Named(s.word(ir.OpOr, upper, word(0x3210)))
	}
	return within, choice
}

// selectLevels picks four bytes of a table.
func (s *Selector) selectLevels(levels [4]Operand, within, choice Operand, large bool) Operand {
	low := s.print.PermuteBy(levels[0], levels[1], within)
	if !large {
		return low
	}
	return s.print.PermuteBy(low, s.print.PermuteBy(levels[2], levels[3], within), choice)
}

func (s *Selector) shiftedRight(w Operand, by uint64) Operand {
	return s.word(ir.OpShr, s.print.Variable(w, U32), Operand{Bits: by, Type: I32})
}

// leaveToDots reports a look-up that sums of products do themselves, and notes it.
func (s *Selector) leaveToDots(in *program.Instr, table *program.Param) bool {
	if !s.simplify || !s.dotted[in.Result] {
		return false
	}
	_, s.left[in.Result] = splitLevels([]byte(table.Table))
	return s.left[in.Result]
}
