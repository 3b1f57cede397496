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
	SplitSlices
	ForwardStores
	EliminateOneHot
	HoistFactors
	DistributeTerms
	SplitGroups
	DistributeDigits
	DistributeOffsets
	SeparateOffsets
	SumIntegers
	ShareGroupSums
	FuseSoftmax
	FuseMoments
	JoinProjections
	FusePoints
	InlinePointwise
	BroadcastReduces
	FuseTileEpilogues
	StagePrologues
	FuseUpdates
	UnifyLoops
	JoinStores
	OrderLevels
	SplitGrid
	SplitSums
	StoreNarrow
	CollapseLoops
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
	SplitSlices:       "split-slices",
	ForwardStores:     "forward-stores",
	EliminateOneHot:   "eliminate-one-hot",
	HoistFactors:      "hoist-factors",
	DistributeTerms:   "distribute-terms",
	SplitGroups:       "split-groups",
	DistributeDigits:  "distribute-digits",
	DistributeOffsets: "distribute-offsets",
	SeparateOffsets:   "separate-offsets",
	SumIntegers:       "sum-integers",
	ShareGroupSums:    "share-group-sums",
	FuseSoftmax:       "fuse-softmax",
	FuseMoments:       "fuse-moments",
	JoinProjections:   "join-projections",
	FusePoints:        "fuse-points",
	InlinePointwise:   "inline-pointwise",
	BroadcastReduces:  "broadcast-reduces",
	FuseTileEpilogues: "fuse-tile-epilogues",
	StagePrologues:    "stage-prologues",
	FuseUpdates:       "fuse-updates",
	UnifyLoops:        "unify-loops",
	JoinStores:        "join-stores",
	OrderLevels:       "order-levels",
	SplitGrid:         "split-grid",
	SplitSums:         "split-sums",
	StoreNarrow:       "store-narrow",
	CollapseLoops:     "collapse-loops",
}

// String returns the rule's name, that of its first row.
func (r Rule) String() string { return ruleNames[r] }

// RuleSet is a set of rules.
type RuleSet uint64

// AllRules has every rule; NoRules gives rangeify only: every value its own kernel.
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
