package schedule

import (
	"slices"
	"time"

	"tgc/ir"
	"tgc/pass"
)

// Placement decides which values vanish into their readers. The rules are tried
// in the order of the table of passes, each over the values in topological order;
// the first that fires starts again. A worklist makes that cheap.

// place runs rows of the placement group to a fixpoint. c is told what fired.
func (s *scheduler) place(group []*row, c *pass.Control) {
	s.markDead()
	s.indexUses()
	w := s.newWorklist(len(group))
	for fired := true; fired; {
		fired = false
		for k, r := range group {
			start := time.Now()
			fired = s.fireOnce(w, k, r)
			c.Spend(r.Name, time.Since(start))
			if fired {
				if c != nil && c.Trace {
					c.Fired(r.Name)
				}
				break // the first that fires starts again
			}
		}
	}
}

// worklist says which values a rule must try again.
type worklist struct {
	order []*value // live values, each after what it reads
	rank  []int    // value -> place in order
	dirty [][]bool // rule, place
	first []int    // rule -> no dirty place is before this one
}

func (s *scheduler) newWorklist(rules int) *worklist {
	w := &worklist{order: s.valueOrder(), rank: make([]int, len(s.values)), first: make([]int, rules)}
	for i, v := range w.order {
		w.rank[v.id] = i
	}
	for range rules {
		all := make([]bool, len(w.order))
		for i := range all {
			all[i] = true
		}
		w.dirty = append(w.dirty, all)
	}
	return w
}

// mark has all rules try a value again.
func (w *worklist) mark(id int) {
	r := w.rank[id]
	for k := range w.dirty {
		w.dirty[k][r] = true
		w.first[k] = min(w.first[k], r)
	}
}

// fireOnce tries rule k on the values that it must try, until it fires. What
// fires concerns only the value, its readers and what they read.
func (s *scheduler) fireOnce(w *worklist, k int, r *row) bool {
	for ; w.first[k] < len(w.order); w.first[k]++ {
		v := w.order[w.first[k]]
		if !w.dirty[k][w.first[k]] {
			continue
		}
		w.dirty[k][w.first[k]] = false
		if v.dead || v.target >= 0 || v.pinned || v.split || len(s.users[v.id]) == 0 {
			continue
		}
		readers := slices.Clone(s.users[v.id])
		if !r.try(s, v) {
			continue
		}
		for _, id := range readers {
			w.mark(id)
			for _, operand := range s.readMemo[id].values {
				w.mark(operand)
			}
		}
		return true
	}
	return false
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
