package schedule

import (
	"slices"
	"testing"
)

// The tables of the phases obey every order pair: some place of the one rule
// stands before some place of the other (R2 stands twice).
func TestOrderPairs(t *testing.T) {
	order := []Rule{SliceSplit, Forward}
	for _, step := range algebraSteps {
		order = append(order, step.rule)
	}
	for _, row := range placementRules {
		order = append(order, row.rule)
	}
	order = append(order, GridSplit, SumPieces, NarrowStore, Update, Par, MultiStore, Flatten, Unify) // emission: updates, launches, joins, loops
	for r := range numRules {
		if !slices.Contains(order, r) {
			t.Errorf("%s has no place", r)
		}
	}
	for _, p := range orderPairs {
		last := len(order) - 1 - slices.Index(reversed(order), p.After)
		if slices.Index(order, p.Before) >= last {
			t.Errorf("%s does not stand before %s", p.Before, p.After)
		}
	}
}

func reversed(list []Rule) []Rule {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}
