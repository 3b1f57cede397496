package state

import (
	"slices"

	"tgc/ir"
)

// PlacedUse is a use with its consumer.
type PlacedUse struct {
	Consumer *Value
	Use
}

// PlacedUses lists every use of p with its consumer.
func (s *Graph) PlacedUses(p *Value) []PlacedUse {
	var out []PlacedUse
	for _, c := range s.Consumers(p) {
		for _, u := range s.UsesOf(c, p) {
			out = append(out, PlacedUse{c, u})
		}
	}
	return out
}

// Where ReplaceReads may put an expression: an address takes only what is cheap.
const (
	BodiesOnly    = false
	IntoAddresses = true
)

// ReplaceReads puts expressions for the reads of p into all its consumers, if
// every consumer stays legal and all of them together cost no more.
func (s *State) ReplaceReads(p *Value, by Replacement, addresses bool) bool {
	return s.replaceReadsIn(s.Consumers(p), p, by, addresses, s.Pays)
}

// ReplaceReadsIn puts expressions for the reads of p into some of its consumers, which then need not wait for it, if each
// stays legal and they cost less than a share of a launch more. The others read what p stores.
func (s *State) ReplaceReadsIn(consumers []*Value, p *Value, by Replacement, share int64) bool {
	pays := func(p *Value, readers []*Value, fused []Form) bool { return s.paysAgain(p, readers, fused, share) }
	return s.replaceReadsIn(consumers, p, by, BodiesOnly, pays)
}

func (s *State) replaceReadsIn(consumers []*Value, p *Value, by Replacement, addresses bool, pays func(*Value, []*Value, []Form) bool) bool {
	fused := make([]Form, len(consumers))
	indices := make([][]*ir.UOp, len(consumers))
	for i, c := range consumers {
		if c.IndexReads(p) {
			if !addresses {
				return false
			}
			indices[i] = s.inlineIndex(c, p, by)
		}
		fused[i] = Form{s.InlineAt(c, p, by), c.StoreLoops()}
		if !s.MayRead(c, p, fused[i].Body) {
			s.Record(p, false, "versions in the way")
			return false
		}
	}
	if !pays(p, consumers, fused) {
		return false
	}
	for i, c := range consumers {
		if indices[i] != nil {
			c.Index = indices[i]
		}
		s.SetBody(c, fused[i].Body)
		c.Reasons = append(c.Reasons, s.Pass.Name+" "+p.Label())
	}
	return true
}

// inlineIndex puts an expression for the reads of p into the store's address.
func (s *Graph) inlineIndex(c, p *Value, by Replacement) []*ir.UOp {
	out := make([]*ir.UOp, len(c.Index))
	for i, x := range c.Index {
		trial := *c
		trial.Body = x
		out[i] = s.Simplify(s.InlineAt(&trial, p, by))
	}
	return out
}

// IndexReads reports that the store of c computes its address from p.
func (v *Value) IndexReads(p *Value) bool {
	return slices.ContainsFunc(v.Index, func(x *ir.UOp) bool { return slices.Contains(ir.Toposort(x), p.Node) })
}

// MayRead reports that consumer c may read what p reads: it must not have to
// run after a write that replaces a version which p reads, and a write of its
// own must stay in place.
func (s *Graph) MayRead(c, p *Value, body *ir.UOp) bool {
	for _, slot := range s.ReadMemo[p.ID].Versions {
		next := s.nextVersion(slot)
		if next < 0 {
			continue
		}
		writer := s.Versions[next].Writer
		if writer == c.ID {
			trial := *c
			trial.Body = body
			if !s.InPlace(&trial, slot) {
				return false
			}
			continue
		}
		if s.comesBefore(writer, c.ID) {
			return false
		}
	}
	return true
}

// nextVersion is the version that replaces a version, -1 for none.
func (s *Graph) nextVersion(slot int) int {
	if under := s.Versions[slot].Under; under >= 0 {
		slot = under
	}
	return slices.IndexFunc(s.Versions, func(v *Version) bool { return v.Previous == slot })
}

// comesBefore reports that value w must run before value c.
func (s *Graph) comesBefore(w, c int) bool {
	before := s.Edges(slices.DeleteFunc(slices.Clone(s.Values), func(v *Value) bool { return v.Dead }))
	seen := make([]bool, len(s.Values))
	todo := []int{c}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, b := range before[id] {
			if b == w {
				return true
			}
			if !seen[b] {
				seen[b] = true
				todo = append(todo, b)
			}
		}
	}
	return false
}
