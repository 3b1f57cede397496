package algebra

import (
	"cmp"
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// split-slices: when the uses of a value along one axis fall into boxes
// that do not overlap, in at least two consumers, every box becomes a value. A
// fused QKV projection must fall apart before placement: else q, which
// attention reads many times, drags K and V into one stored value.

// box is a closed interval of an axis and the consumers that read it.
type box struct {
	lo, hi    int64
	consumers []int
}

// SplitSlices applies the rule to every value.
func SplitSlices(s *state.State) {
	s.MarkDead()
	s.IndexUses()
	for i := 0; i < len(s.Values); i++ {
		p := s.Values[i]
		if p.Dead || p.Target >= 0 || p.Pinned || len(s.Users[p.ID]) < 2 {
			continue
		}
		for axis := range p.Ranges {
			if boxes := boxesOf(s.Graph, p, axis); len(boxes) > 1 {
				splitBoxes(s, p, axis, boxes)
				break
			}
		}
	}
}

// boxesOf groups the uses of p along an axis into disjoint boxes; nil when one
// is not bounded or all fall together.
func boxesOf(s *state.Graph, p *state.Value, axis int) []box {
	extent, ok := p.Ranges[axis].Src[0].Int()
	if !ok {
		return nil
	}
	var boxes []box
	for _, u := range s.PlacedUses(p) {
		b := s.Bounds.Of(u.Load.Indices()[axis])
		if b.Lo < 0 || b.Hi >= extent {
			return nil
		}
		boxes = append(boxes, box{b.Lo, b.Hi, []int{u.Consumer.ID}})
	}
	slices.SortStableFunc(boxes, func(x, y box) int { return cmp.Compare(x.lo, y.lo) })
	var merged []box
	for _, b := range boxes {
		if n := len(merged); n > 0 && b.lo <= merged[n-1].hi {
			merged[n-1].hi = max(merged[n-1].hi, b.hi)
			merged[n-1].consumers = append(merged[n-1].consumers, b.consumers...)
			continue
		}
		merged = append(merged, b)
	}
	all := true
	for _, b := range merged {
		for _, id := range b.consumers {
			all = all && id == merged[0].consumers[0]
		}
	}
	if all {
		return nil
	}
	return merged
}

// splitBoxes makes a value of every box and rewrites the reads of p.
func splitBoxes(s *state.State, p *state.Value, axis int, boxes []box) {
	parts := make([]*state.Value, len(boxes))
	for i, b := range boxes {
		index := slices.Clone(p.Ranges)
		var ranges []*ir.UOp
		for j, r := range p.Ranges {
			extent := r.Src[0]
			if j == axis {
				extent = s.A.Index(b.hi - b.lo + 1)
			}
			if j == axis && expr.IsUnit(extent) {
				index[j] = s.A.Index(b.lo)
				continue
			}
			own := s.NewRange(extent)
			ranges = append(ranges, own)
			index[j] = own
			if j == axis {
				index[j] = s.Simplify(s.A.Add(own, s.A.Index(b.lo)))
			}
		}
		parts[i] = s.NewValue(p.Node.DType, ranges, s.AtIndex(p.Ranges, p.Body, index))
		s.Users = append(s.Users, nil)
		s.ReadMemo = append(s.ReadMemo, state.Reads{})
		s.LinkReads(parts[i])
	}
	for _, c := range s.Consumers(p) {
		body := s.InlineAt(c, p, state.Replacement{Height: state.NoHeight, With: func(_ *state.Value, load *ir.UOp) *ir.UOp {
			index := slices.Clone(load.Indices())
			lo := s.Bounds.Of(index[axis]).Lo
			at := slices.IndexFunc(boxes, func(b box) bool { return b.lo <= lo && lo <= b.hi })
			index[axis] = s.Simplify(s.A.Add(index[axis], s.A.Index(-boxes[at].lo)))
			if boxes[at].lo == boxes[at].hi {
				index = slices.Delete(index, axis, axis+1)
			}
			return s.A.Load(parts[at].Node, index...)
		}})
		s.SetBody(c, body)
	}
	s.Record(p, true, "read in disjoint boxes", state.Number{Name: "boxes", Value: int64(len(boxes))})
}
