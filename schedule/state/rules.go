package state

import (
	"strings"
)

// Rule is a rule that Options.Rules switches: a row of the table of passes, or
// two of them.
type Rule uint8

// The rules. Their order is that of the table of passes.
const (
	NoRule Rule = iota // of a row that Options.Rules does not switch
	SliceSplit
	Forward
	OneHit
	Hoist
	Distribute
	GroupSplit
	Digits
	IntConstant
	OffsetApart
	IntegerSum
	GroupSum
	Cascade
	Chan
	JoinProj
	PointFusion
	Inline
	Broadcast
	TileEpilogue
	StagePrologue
	Update
	Unify
	MultiStore
	Par
	GridSplit
	SumPieces
	NarrowStore
	Flatten
	numRules
)

// Rules lists all rules.
func Rules() []Rule {
	var all []Rule
	for r := NoRule + 1; r < numRules; r++ {
		all = append(all, r)
	}
	return all
}

// ruleNames are the names of the rules' first rows in the table of passes.
var ruleNames = [numRules]string{
	SliceSplit:    "split-slices",
	Forward:       "forward-stores",
	OneHit:        "eliminate-one-hot",
	Hoist:         "hoist-factors",
	Distribute:    "distribute-terms",
	GroupSplit:    "split-groups",
	Digits:        "distribute-digits",
	IntConstant:   "distribute-offsets",
	OffsetApart:   "separate-offsets",
	IntegerSum:    "sum-integers",
	GroupSum:      "share-group-sums",
	Cascade:       "fuse-softmax",
	Chan:          "fuse-moments",
	JoinProj:      "join-projections",
	PointFusion:   "fuse-points",
	Inline:        "inline-pointwise",
	Broadcast:     "broadcast-reduces",
	TileEpilogue:  "fuse-tile-epilogues",
	StagePrologue: "stage-prologues",
	Update:        "fuse-updates",
	Unify:         "unify-loops",
	MultiStore:    "join-stores",
	Par:           "order-levels",
	GridSplit:     "split-grid",
	SumPieces:     "split-sums",
	NarrowStore:   "store-narrow",
	Flatten:       "collapse-loops",
}

// String returns the rule's name, that of its first row.
func (r Rule) String() string { return ruleNames[r] }

// RuleSet is a set of rules.
type RuleSet uint64

// AllRules has every rule; NoRules gives R0 only: every value its own kernel.
const (
	NoRules  RuleSet = 0
	AllRules RuleSet = 1<<numRules - 2
)

// Has reports membership.
func (s RuleSet) Has(r Rule) bool { return s>>r&1 == 1 }

// With adds rules.
func (s RuleSet) With(rules ...Rule) RuleSet {
	for _, r := range rules {
		s |= 1 << r
	}
	return s
}

// Without removes rules.
func (s RuleSet) Without(rules ...Rule) RuleSet {
	for _, r := range rules {
		s &^= 1 << r
	}
	return s
}

// String lists the names of the members.
func (s RuleSet) String() string {
	var names []string
	for _, r := range Rules() {
		if s.Has(r) {
			names = append(names, r.String())
		}
	}
	return strings.Join(names, ",")
}
