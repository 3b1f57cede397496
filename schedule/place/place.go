package place

import (
	"slices"
	"time"

	"tgc/pass"
	"tgc/schedule/state"
)

// Placement decides which values vanish into their readers. The rules are tried
// in the order of the table of passes, each over the values in topological order;
// the first that fires starts again. A worklist makes that cheap.

// Rule is a rule of the placement group: it is tried on one value, and
// says whether it changed the state.
type Rule struct {
	Info *pass.Info
	Try  func(*state.State, *state.Value) bool
}

// ToFixpoint runs rules of the placement group to a fixpoint. c is told what fired.
func ToFixpoint(s *state.State, group []Rule, c *pass.Control) {
	s.MarkDead()
	s.IndexUses()
	s.ForgetPrices()
	s.NameValues()
	w := newWorklist(s.Graph, len(group))
	text := ""
	if c.Watched() {
		text = s.Text()
	}
	left := mostFirings(s)
	for fired := true; fired; left-- {
		if fired = false; left == 0 {
			s.Fail("%s (%s) does not end: a bug of the rule", s.Pass.Name, s.Pass.Key)
			return
		}
		for k, r := range group {
			s.Pass = r.Info
			c.Begin(r.Info.Name)
			start := time.Now()
			fired = fireOnce(s, w, k, r)
			c.Spend(r.Info.Name, time.Since(start))
			if fired {
				if c != nil && c.Trace {
					c.Fired(r.Info.Name)
				}
				if c.Watched() {
					before := text
					text = s.Text()
					c.OnChange(*r.Info, "", before, text)
				}
				break // the first that fires starts again
			}
		}
	}
}

// mostFirings bounds how often rules fire: each makes a value less, or a few of one, so that
// rules that fire more often than this undo each other.
func mostFirings(s *state.State) int { return 1000 + 100*len(s.Values) }

// worklist says which values a rule must try again.
type worklist struct {
	order []*state.Value // live values, each after what it reads
	rank  []int          // value -> place in order
	dirty [][]bool       // rule, place
	first []int          // rule -> no dirty place is before this one
}

func newWorklist(s *state.Graph, rules int) *worklist {
	w := &worklist{order: valueOrder(s), rank: make([]int, len(s.Values)), first: make([]int, rules)}
	for i, v := range w.order {
		w.rank[v.ID] = i
	}
	for range rules {
		all := slices.Repeat([]bool{true}, len(w.order))
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
func fireOnce(s *state.State, w *worklist, k int, r Rule) bool {
	for ; w.first[k] < len(w.order); w.first[k]++ {
		v := w.order[w.first[k]]
		if !w.dirty[k][w.first[k]] {
			continue
		}
		w.dirty[k][w.first[k]] = false
		if v.Dead || v.Target >= 0 || v.Pinned || v.Split || len(s.Users[v.ID]) == 0 {
			continue
		}
		readers := slices.Clone(s.Users[v.ID])
		if !try(s, v, r) {
			continue
		}
		for _, id := range readers {
			w.mark(id)
			for _, operand := range s.ReadMemo[id].Values {
				w.mark(operand)
			}
		}
		return true
	}
	return false
}

// try tries a rule on a value, unless it was decided of the rule, or of the whole group.
func try(s *state.State, v *state.Value, r Rule) bool {
	choice, decided := s.DecisionOn(v, state.Rule(r.Info.Name))
	if !decided {
		choice, decided = s.DecisionOn(v, state.Rule(r.Info.Group))
	}
	switch {
	case !decided:
		return r.Try(s, v)
	case choice == state.Apply:
		return s.Insist(func() bool { return r.Try(s, v) })
	}
	s.Record(v, false, state.Decided)
	return false
}

// valueOrder lists the live values, each after what it reads.
func valueOrder(s *state.Graph) []*state.Value {
	seen := make([]bool, len(s.Values))
	var order []*state.Value
	var visit func(v *state.Value)
	visit = func(v *state.Value) {
		if seen[v.ID] || v.Dead {
			return
		}
		seen[v.ID] = true
		for _, id := range s.ReadMemo[v.ID].Values {
			visit(s.Values[id])
		}
		order = append(order, v)
	}
	for _, v := range s.Values {
		visit(v)
	}
	return order
}
