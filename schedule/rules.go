package schedule

import (
	"fmt"
	"strings"
)

// Rule is a rule that Options.Rules switches: a row of the table of passes, or
// two of them.
type Rule uint8

// The rules. Their order is that of the table of passes.
const (
	noRule        Rule = iota // of a row that Options.Rules does not switch
	SliceSplit                // R0s
	Forward                   // R0f
	OneHit                    // R1h
	Hoist                     // R2
	Distribute                // R2m
	GroupSplit                // R3
	Digits                    // R2d
	IntConstant               // R2c
	OffsetApart               // R2o
	IntegerSum                // R3i
	GroupSum                  // R2g
	Cascade                   // R5
	Chan                      // CHAN
	JoinProj                  // R5p
	PointFusion               // R1p
	Inline                    // R1
	Broadcast                 // R4i
	TileEpilogue              // R6
	StagePrologue             // R6p
	Update                    // update
	Unify                     // R4
	MultiStore                // join
	Par                       // R7
	GridSplit                 // R8
	SumPieces                 // R8k
	NarrowStore               // narrow
	Flatten                   // flat
	numRules
)

// Rules lists all rules.
func Rules() []Rule {
	var all []Rule
	for r := noRule + 1; r < numRules; r++ {
		all = append(all, r)
	}
	return all
}

// Class says what a rule does to float rounding.
type Class byte

// The rounding classes.
const (
	Exact       Class = 'X' // bit-exact
	Reassociate Class = 'A' // re-associates floats
	DropBits    Class = 'D' // drops precision
)

// RuleInfo is one row of the rule table.
type RuleInfo struct {
	Name  string // words: the name of its row in the table of passes
	Key   string // the short name, which switches know too
	Class Class
	Doc   string
}

// ruleTable has the row of every rule, from the table of passes.
var ruleTable [numRules]RuleInfo

// Info returns the rule's row.
func (r Rule) Info() *RuleInfo { return &ruleTable[r] }

// String returns the rule's name and, if it has one, its key: hoist-factors (R2).
func (r Rule) String() string {
	if row := r.Info(); row.Key != "" {
		return row.Name + " (" + row.Key + ")"
	}
	return r.Info().Name
}

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
			names = append(names, r.Info().Name)
		}
	}
	return strings.Join(names, ",")
}

// ParseRules reads a comma-separated list of names or keys; a leading '-' on one
// removes it from what the list has so far, "all" and "none" reset.
func ParseRules(text string, from RuleSet) (RuleSet, error) {
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		switch word {
		case "":
			continue
		case "all":
			from = AllRules
			continue
		case "none":
			from = NoRules
			continue
		}
		name, remove := strings.CutPrefix(word, "-")
		rule, ok := findRule(name)
		if !ok {
			return 0, fmt.Errorf("schedule: unknown rule %q, want one of %s", name, AllRules)
		}
		if remove {
			from = from.Without(rule)
		} else {
			from = from.With(rule)
		}
	}
	return from, nil
}

// findRule finds a rule by its name or key. The second of two rows of a rule
// names it too.
func findRule(name string) (Rule, bool) {
	for i := range rows {
		if r := &rows[i]; r.rule != noRule && (r.Name == name || r.Key != "" && r.Key == name) {
			return r.rule, true
		}
	}
	return noRule, false
}
