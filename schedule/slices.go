package schedule

import (
	"cmp"
	"slices"

	"tgc/ir"
)

// R0s, slice split: when the uses of a value along one axis fall into boxes
// that do not overlap, in at least two consumers, every box becomes a value. A
// fused QKV projection must fall apart before placement: else q, which
// attention reads many times, drags K and V into one stored value.

// box is a closed interval of an axis and the consumers that read it.
type box struct {
	lo, hi    int64
	consumers []int
}

// splitSlices runs R0s on every value.
func (s *scheduler) splitSlices() {
	s.markDead()
	s.indexUses()
	for i := 0; i < len(s.values); i++ {
		p := s.values[i]
		if p.dead || p.target >= 0 || p.pinned || len(s.users[p.id]) < 2 {
			continue
		}
		for axis := range p.ranges {
			if boxes := s.boxesOf(p, axis); len(boxes) > 1 {
				s.splitBoxes(p, axis, boxes)
				break
			}
		}
	}
}

// boxesOf groups the uses of p along an axis into disjoint boxes; nil when one
// is not bounded or all fall together.
func (s *scheduler) boxesOf(p *value, axis int) []box {
	extent, ok := p.ranges[axis].Src[0].Int()
	if !ok {
		return nil
	}
	var boxes []box
	for _, u := range s.placedUses(p) {
		b := s.bounds.Of(u.load.Indices()[axis])
		if b.Lo < 0 || b.Hi >= extent {
			return nil
		}
		boxes = append(boxes, box{b.Lo, b.Hi, []int{u.consumer.id}})
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
func (s *scheduler) splitBoxes(p *value, axis int, boxes []box) {
	parts := make([]*value, len(boxes))
	for i, b := range boxes {
		index := slices.Clone(p.ranges)
		var ranges []*ir.UOp
		for j, r := range p.ranges {
			extent := r.Src[0]
			if j == axis {
				extent = s.a.Index(b.hi - b.lo + 1)
			}
			if j == axis && isUnit(extent) {
				index[j] = s.a.Index(b.lo)
				continue
			}
			own := s.newRange(extent)
			ranges = append(ranges, own)
			index[j] = own
			if j == axis {
				index[j] = s.simplify(s.a.Add(own, s.a.Index(b.lo)))
			}
		}
		parts[i] = s.newValue(p.node.DType, ranges, s.atIndex(p.ranges, p.body, index))
		s.users = append(s.users, nil)
		s.readMemo = append(s.readMemo, reads{})
		s.linkReads(parts[i])
	}
	for _, c := range s.consumers(p) {
		body := s.inlineAt(c, p, replacement{height: noHeight, with: func(_ *value, load *ir.UOp) *ir.UOp {
			index := slices.Clone(load.Indices())
			lo := s.bounds.Of(index[axis]).Lo
			at := slices.IndexFunc(boxes, func(b box) bool { return b.lo <= lo && lo <= b.hi })
			index[axis] = s.simplify(s.a.Add(index[axis], s.a.Index(-boxes[at].lo)))
			if boxes[at].lo == boxes[at].hi {
				index = slices.Delete(index, axis, axis+1)
			}
			return s.a.Load(parts[at].node, index...)
		}})
		s.setBody(c, body)
	}
	s.record(SliceSplit, p, true, "read in disjoint boxes", Number{"boxes", int64(len(boxes))})
}
