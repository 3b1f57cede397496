package state

import (
	"maps"
	"slices"
	"strings"

	"tgc/internal/lists"
)

// Rule names a switch of the table of passes: the row that has this name, and the rows
// that go with it.
type Rule string

// Rules that other code than their rows asks about. The table of passes must have them:
// that is checked when the program starts.
var (
	ForwardStores     = asked("forward-stores")
	GroupContractions = asked("group-contractions")
	FuseMoments       = asked("fuse-moments")
	StagePrologues    = asked("stage-prologues")
	StoreNarrow       = asked("store-narrow")
	OrderLevels       = asked("order-levels")
	UnifyLoops        = asked("unify-loops")
	UnrollPairs       = asked("unroll-pairs")
	CollapseLoops     = asked("collapse-loops")
	CollapseAxes      = asked("collapse-axes")
	CutLoops          = asked("cut-loops")
)

// Asked lists the rules that code asks about.
var Asked []Rule

func asked(name Rule) Rule {
	Asked = append(Asked, name)
	return name
}

// RuleSet is a set of rules: in Options.Off and engine's Config, those that are
// switched off. It is not changed once made.
type RuleSet map[Rule]bool

// Has reports membership.
func (s RuleSet) Has(r Rule) bool { return s[r] }

// With adds rules.
func (s RuleSet) With(rules ...Rule) RuleSet {
	set := make(RuleSet, len(s)+len(rules))
	maps.Copy(set, s)
	for _, r := range rules {
		set[r] = true
	}
	return set
}

// Without removes rules.
func (s RuleSet) Without(rules ...Rule) RuleSet {
	set := maps.Clone(s)
	for _, r := range rules {
		delete(set, r)
	}
	return set
}

// List has the members in alphabetical order.
func (s RuleSet) List() []Rule { return slices.Sorted(maps.Keys(s)) }

// String lists the names of the members.
func (s RuleSet) String() string {
	names := lists.Map(s.List(), func(r Rule) string { return string(r) })
	return strings.Join(names, ",")
}
