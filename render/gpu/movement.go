package gpu

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// movement moves lanes. Packed vectors stay packed where words move as a whole
// or a byte permute does it.
func (s *Selector) movement(in *program.Instr) error {
	t := in.Result.Type
	if s.left[in.Args[0]] {
		return nil // dots make what they read
	}
	switch in.Op {
	case program.FoldLanes:
		return s.fold(in)
	case program.Extract:
		if v := in.Args[0]; s.simplify && v.Type.Elem == ir.F16 && s.values[v.ID].words != nil {
			s.values[in.Result.ID] = &held{half: &half{v, in.Lane}}
			return nil
		}
		s.set(in.Result, []Operand{s.print.Hold(s.Lane(in.Args[0], in.Lane), s.TypeOf(in.Result))})
		return nil
	}
	if IsPacked(t) && s.packedMovement(in) {
		return nil
	}
	lanes := make([]Operand, 0, t.Lanes)
	take := func(v *program.Value, i int) {
		lanes = append(lanes, s.print.Hold(s.Lane(v, i), s.TypeOf(in.Result)))
	}
	switch in.Op {
	case program.Broadcast:
		take(in.Args[0], 0)
		for len(lanes) < t.Lanes {
			lanes = append(lanes, lanes[0])
		}
	case program.Shuffle, program.Concat:
		from := LaneSource(in)
		for i := range t.Lanes {
			take(from(i))
		}
	default:
		return fmt.Errorf("no %s", in.Op)
	}
	s.set(in.Result, lanes)
	return nil
}

// packedMovement makes each result word of at most two source words.
func (s *Selector) packedMovement(in *program.Instr) bool {
	t := in.Result.Type
	size := t.Elem.Size()
	per := 4 / size
	from := LaneSource(in)
	if from == nil {
		return false
	}
	plans := make([]WordPlan, wordsOf(t))
	for i := range plans {
		for k := range per {
			v, at := from(min(i*per+k, t.Lanes-1))
			if !IsPacked(v.Type) || s.values[v.ID].words == nil || !plans[i].Add(v, at/per, at%per) {
				return false
			}
		}
	}
	words := lists.Make(len(plans), func(i int) Operand { return s.planned(&plans[i], size) })
	s.setWords(in.Result, words)
	return true
}

// planned is a word made of at most two others.
func (s *Selector) planned(p *WordPlan, size int) Operand {
	source := func(i int) Operand { return s.Words(p.Sources[i].Value)[p.Sources[i].Word] }
	a := source(0)
	if p.Identity(size) {
		return a
	}
	b := word(0)
	if len(p.Sources) == 2 {
		b = source(1)
	}
	return s.print.Permute(s.print.Variable(a, U32), b, p.Selector(size))
}

// fold combines lanes in program.FoldOrder.
func (s *Selector) fold(in *program.Instr) error {
	v := in.Args[0]
	n := Number{DType: v.Type.Elem, Type: s.TypeOf(v)}
	if s.TypeOf(in.Result) == I64 {
		n.Type = I64
	}
	lanes := lists.Make(v.Type.Lanes, func(i int) Operand { return s.LaneAs(v, i, n.Type) })
	sum, err := Fold(lanes, func(x, y Operand) (Operand, error) { return s.compute(in.Ir, n, []Operand{x, y}) })
	if err != nil {
		return err
	}
	s.set(in.Result, []Operand{s.print.Hold(sum, s.TypeOf(in.Result))})
	return nil
}
