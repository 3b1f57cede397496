package rewrite

import (
	"testing"

	"tgc/ir"
)

// Sets of rules are tested by machine: every rule must fire often enough on
// sampled nodes that satisfy its guards, keep the value bit for bit on sampled
// inputs (all inputs, where they are few), lower its set's measure, and whole
// sets must be idempotent.

func TestRules(t *testing.T) { Check(t, Default, Sets()...) }

func TestSimplifyWhole(t *testing.T) { CheckWhole(t, 20000, Sets()...) }

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
func Check(t *testing.T, effort Effort, sets ...*Set) {
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
func checkRule(t reporter, effort Effort, rule *Rule) {
	if rule.Go != nil && samples[rule.String()] == nil {
		t.Fatalf("a rule of Go code needs a sampler")
		return
	}
	fired := 0
	for try := 0; try < effort.Tries && fired < effort.Firings; try++ {
		s := NewSampler(uint64(try))
		before := sample(s, rule)
		if before == nil {
			continue
		}
		c := NewContext(s.Arena)
		after := rule.apply(c, before)
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

// samples makes random nodes at which the rules that are Go code may fire.
var samples = map[string]func(*Sampler) *ir.UOp{
	"fold/constants":       (*Sampler).ConstantNode,
	"fold/one-value":       (*Sampler).NarrowNode,
	"index/sum/linear":     func(s *Sampler) *ir.UOp { return s.IndexSum(3) },
	"index/div/div":        func(s *Sampler) *ir.UOp { return s.IndexDivision(ir.OpFloorDiv) },
	"index/div/mod":        func(s *Sampler) *ir.UOp { return s.IndexDivision(ir.OpFloorMod) },
	"index/compare/less":   func(s *Sampler) *ir.UOp { return s.IndexCompare(ir.OpCmpLt) },
	"index/compare/equal":  func(s *Sampler) *ir.UOp { return s.IndexCompare(ir.OpCmpEq) },
	"index/compare/minmax": (*Sampler).IndexExtremum,
	"index/cast/lift":      (*Sampler).LiftedIndex,
	"index/cast/split":     func(s *Sampler) *ir.UOp { return s.Arena.Cast(s.LiftedIndex(), ir.Idx) },
	"order/commute":        (*Sampler).CommutativeNode,
}

// sample makes a node for a rule.
func sample(s *Sampler, rule *Rule) *ir.UOp {
	if rule.Go != nil {
		return samples[rule.String()](s)
	}
	list := rule.variants
	from := list[s.Rand.IntN(len(list))]
	return s.Instance(from, s.Type(AnyTypes), make(map[*Pattern]*ir.UOp))
}

// fullFirings is for how many firings of a rule all values of two bytes are
// tried; one byte always is.
const fullFirings = 5

// checkFiring compares a node with what a rule made of it.
func checkFiring(t reporter, effort Effort, s *Sampler, rule *Rule, before, after *ir.UOp, full bool) {
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
func measure(t reporter, rule *Rule, a *ir.Arena, before, after *ir.UOp) {
	of := rule.set.Measure.Of
	if of == nil {
		return
	}
	after, err := NewEngine(a, foldSet).Do(after)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if x, y := of(before), of(after); x <= y {
		t.Errorf("the measure (%s) goes from %d to %d:\n%s\n%s", rule.set.Measure.Text, x, y, show(before), show(after))
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
