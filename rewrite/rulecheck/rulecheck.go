package rulecheck

import (
	"testing"

	"tgc/ir"
	"tgc/rewrite"
)

// Effort says how hard to look.
type Effort struct {
	Firings int // at least this many per rule
	Tries   int // sampled nodes per rule, at most
	Inputs  int // random inputs per firing
	Wholes  int // sampled expressions per set
}

// Default is enough for a test run of a second or two.
var Default = Effort{Firings: 100, Tries: 200000, Inputs: 12, Wholes: 500}

// reporter is the part of testing.T that the checks need.
type reporter interface {
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
}

// Check tests every rule of the sets and each set as a whole.
func Check(t *testing.T, effort Effort, sets ...*rewrite.Set) {
	names := make(map[string]bool)
	for _, set := range sets {
		if names[set.Name] {
			t.Errorf("two sets are called %s", set.Name)
		}
		names[set.Name] = true
		for _, rule := range set.Rules {
			t.Run(set.Name+"/"+rule.Name, func(t *testing.T) { checkRule(t, effort, rule) })
		}
		t.Run(set.Name, func(t *testing.T) { CheckWhole(t, effort.Wholes, set) })
	}
}

// checkRule fires one rule on sampled nodes.
func checkRule(t reporter, effort Effort, rule *rewrite.Rule) {
	fired := 0
	for try := 0; try < effort.Tries && fired < effort.Firings; try++ {
		s := rewrite.NewSampler(uint64(try))
		before := sample(s, rule)
		if before == nil {
			continue
		}
		c := rewrite.NewContext(s.Arena)
		after := rule.Apply(c, before)
		if after == nil || after == before {
			continue
		}
		fired++
		checkFiring(t, effort, s, rule, before, after, fired <= fullFirings)
		if t.Failed() {
			return
		}
	}
	if fired < effort.Firings {
		t.Errorf("fired %d times in %d samples, want %d: its guards are hardly ever satisfied", fired, effort.Tries, effort.Firings)
	}
}

// sample makes a node for a rule.
func sample(s *rewrite.Sampler, rule *rewrite.Rule) *ir.UOp {
	if rule.Sample != nil {
		return rule.Sample(s)
	}
	list := rule.Variants()
	from := list[s.Rand.IntN(len(list))]
	return s.Instance(from, s.Type(rewrite.AnyTypes), make(map[*rewrite.Pattern]*ir.UOp))
}

// fullFirings is for how many firings of a rule all values of two bytes are
// tried; one byte always is.
const fullFirings = 5

// checkFiring compares a node with what a rule made of it.
func checkFiring(t reporter, effort Effort, s *rewrite.Sampler, rule *rewrite.Rule, before, after *ir.UOp, full bool) {
	if before.DType != after.DType {
		t.Errorf("%s becomes a %s: %s", before.DType, after.DType, show(before))
		return
	}
	measure(t, rule, s.Arena, before, after)
	leaves := leavesOf(s.Arena.Make(ir.OpSink, ir.Void, nil, before, after))
	check := func(e env) bool {
		x, y := eval(before, e), eval(after, e)
		if !same(x, y) {
			t.Errorf("%s = %v\nbecomes %s = %v\nwhere %s", show(before), x, show(after), y, showEnv(leaves, e))
		}
		return same(x, y)
	}
	if (full || len(leaves) == 1) && exhaustive(leaves, check) {
		return
	}
	for range effort.Inputs {
		if e, ok := randomEnv(s, leaves); ok && !check(e) {
			return
		}
	}
}

// measure checks that the set's measure falls, constants folded.
func measure(t reporter, rule *rewrite.Rule, a *ir.Arena, before, after *ir.UOp) {
	of := rule.Set().Measure.Of
	if of == nil {
		return
	}
	after = rewrite.FoldConstants(a, after)
	if x, y := of(before), of(after); x <= y {
		t.Errorf("the measure (%s) goes from %d to %d:\n%s\n%s", rule.Set().Measure.Text, x, y, show(before), show(after))
	}
}

// exhaustive tries all values of one or two leaves of 8 bits; false if the
// leaves are others.
func exhaustive(leaves []*ir.UOp, check func(env) bool) bool {
	if len(leaves) == 0 || len(leaves) > 2 {
		return false
	}
	for _, u := range leaves {
		if u.Op != ir.OpArg || u.DType.Size() != 1 || u.DType.IsFloat() {
			return false
		}
	}
	for word := range 1 << (8 * len(leaves)) {
		e := make(env)
		for i, u := range leaves {
			e[u] = ir.IntScalar(ir.WrapInt(u.DType, int64(word>>(8*i)&255)))
		}
		if !check(e) {
			break
		}
	}
	return true
}
