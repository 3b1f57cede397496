package schedule

import (
	"slices"

	"tgc/ir"
)

// Placement decides which values vanish into their readers. The rules are tried
// in order, each over the values in topological order; the first that fires
// starts again. A worklist makes that cheap: a firing concerns only the value,
// its readers and what they read.

// placementRule is one row: the rule and its attempt on a value.
type placementRule struct {
	rule Rule
	try  func(*scheduler, *value) bool
}

// placementRules in order. A before B, because:
//   - R5p before R1p: inlining 1/l with its own copy of the tuple would read
//     the scores twice, and they would become a kernel of their own;
//   - R1p before R1: a bias goes into its producer's epilogue, not into the
//     loop of the attention scores;
//   - R1 before R4i: no recomputation before one that recomputes;
//   - R4i before R6: a head norm's sum must be in its reader before the tile
//     is computed;
//   - R6 before R6p: an epilogue costs no second read, a prologue does.
var placementRules = []placementRule{
	{JoinProj, (*scheduler).joinProjections},
	{PointFusion, (*scheduler).pointFusion},
	{Inline, (*scheduler).inlinePointwise},
	{Broadcast, (*scheduler).broadcastReduce},
	{TileEpilogue, (*scheduler).tileEpilogue},
	{StagePrologue, (*scheduler).stagePrologue},
}

// place runs the placement rules to a fixpoint.
func (s *scheduler) place(*ir.UOp) {
	s.markDead()
	s.indexUses()
	order := s.valueOrder()
	rank := make([]int, len(s.values))
	for i, v := range order {
		rank[v.id] = i
	}
	var dirty [][]bool // rule -> rank
	first := make([]int, len(placementRules))
	for range placementRules {
		all := make([]bool, len(order))
		for i := range all {
			all[i] = true
		}
		dirty = append(dirty, all)
	}
	mark := func(id int) {
		r := rank[id]
		for k := range dirty {
			dirty[k][r] = true
			first[k] = min(first[k], r)
		}
	}
	for {
		fired := false
	rules:
		for k, row := range placementRules {
			if !s.opt.Rules.Has(row.rule) {
				continue
			}
			for ; first[k] < len(order); first[k]++ {
				v := order[first[k]]
				if !dirty[k][first[k]] {
					continue
				}
				dirty[k][first[k]] = false
				if v.dead || v.target >= 0 || v.pinned || v.split || len(s.users[v.id]) == 0 {
					continue
				}
				readers := slices.Clone(s.users[v.id])
				if !row.try(s, v) {
					continue
				}
				for _, id := range readers {
					mark(id)
					for _, operand := range s.readMemo[id].values {
						mark(operand)
					}
				}
				fired = true
				break rules
			}
		}
		if !fired {
			return
		}
	}
}

// markDead finds the values that nothing stored depends on.
func (s *scheduler) markDead() { s.liveValues() }

// valueOrder lists the live values, each after what it reads.
func (s *scheduler) valueOrder() []*value {
	state := make([]bool, len(s.values))
	var order []*value
	var visit func(v *value)
	visit = func(v *value) {
		if state[v.id] || v.dead {
			return
		}
		state[v.id] = true
		for _, id := range s.readMemo[v.id].values {
			visit(s.values[id])
		}
		order = append(order, v)
	}
	for _, v := range s.values {
		visit(v)
	}
	return order
}

// placedUses lists every use of p with its consumer.
func (s *scheduler) placedUses(p *value) []placedUse {
	var out []placedUse
	for _, c := range s.consumers(p) {
		for _, u := range s.usesOf(c, p) {
			out = append(out, placedUse{c, u})
		}
	}
	return out
}

// replaceReads puts expressions for the reads of p into all its consumers, if
// every consumer stays legal.
func (s *scheduler) replaceReads(rule Rule, p *value, by replacement) bool {
	consumers := s.consumers(p)
	bodies := make([]*ir.UOp, len(consumers))
	indices := make([][]*ir.UOp, len(consumers))
	for i, c := range consumers {
		if c.indexReads(p) {
			if rule != Inline {
				return false // addresses only take cheap values
			}
			indices[i] = s.inlineIndex(c, p, by)
		}
		bodies[i] = s.inlineAt(c, p, by)
		if !s.mayRead(c, p, bodies[i]) {
			s.record(rule, p, false, "versions in the way")
			return false
		}
	}
	for i, c := range consumers {
		if indices[i] != nil {
			c.index = indices[i]
		}
		s.setBody(c, bodies[i])
		c.reasons = append(c.reasons, rule.String()+" "+p.label())
	}
	return true
}

// inlineIndex puts an expression for the reads of p into the store's address.
func (s *scheduler) inlineIndex(c, p *value, by replacement) []*ir.UOp {
	out := make([]*ir.UOp, len(c.index))
	for i, x := range c.index {
		trial := *c
		trial.body = x
		out[i] = s.simplify(s.inlineAt(&trial, p, by))
	}
	return out
}

// indexReads reports that the store of c computes its address from p.
func (v *value) indexReads(p *value) bool {
	for _, x := range v.index {
		if slices.Contains(ir.Toposort(x), p.node) {
			return true
		}
	}
	return false
}

// mayRead reports that consumer c may read what p reads: it must not have to
// run after a write that replaces a version which p reads, and a write of its
// own must stay in place.
func (s *scheduler) mayRead(c, p *value, body *ir.UOp) bool {
	for _, slot := range s.readMemo[p.id].versions {
		next := s.nextVersion(slot)
		if next < 0 {
			continue
		}
		writer := s.versions[next].writer
		if writer == c.id {
			trial := *c
			trial.body = body
			if !s.inPlace(&trial, slot) {
				return false
			}
			continue
		}
		if s.comesBefore(writer, c.id) {
			return false
		}
	}
	return true
}

// nextVersion is the version that replaces a version, -1 for none.
func (s *scheduler) nextVersion(slot int) int {
	if under := s.versions[slot].under; under >= 0 {
		slot = under
	}
	for i, v := range s.versions {
		if v.previous == slot {
			return i
		}
	}
	return -1
}

// comesBefore reports that value w must run before value c.
func (s *scheduler) comesBefore(w, c int) bool {
	var live []*value
	for _, v := range s.values {
		if !v.dead {
			live = append(live, v)
		}
	}
	before := s.edges(live)
	seen := make([]bool, len(s.values))
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
