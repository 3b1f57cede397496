package schedule

import (
	"slices"

	"tgc/schedule/state"
)

// ParseDecisions reads decisions, "RULE VALUE CHOICE", separated by semicolons or lines. A rule that
// takes none, or another choice, is an error.
func ParseDecisions(text string) (Decisions, error) {
	list, err := state.ParseDecisions(text, func(name string) (Rule, error) {
		rule, ok := findRule(name)
		if !ok {
			rule = Rule(name)
		}
		if choicesOf(rule) == nil {
			return "", unknownDecider(name)
		}
		return rule, nil
	})
	if err != nil {
		return Decisions{}, err
	}
	for _, d := range list.List() {
		if err := choicesOf(d.Rule).check(d); err != nil {
			return Decisions{}, err
		}
	}
	return list, nil
}

// Flips lists decisions that would change what records say, each once, in the order of the records: what was
// applied is declined, by the rule and by all of its group; what a limit or a price was against is applied, and
// numbers get larger and smaller. Some change nothing, since another rule does the same, or are not legal.
func Flips(records []Record) (list []Decision) {
	add := func(d Decision) {
		if !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	for _, r := range records {
		c := choicesOf(Rule(r.Pass))
		if r.At == "" || c == nil || r.Reason == state.Decided {
			continue
		}
		for _, choice := range c.others(r) {
			add(Decision{Rule: Rule(r.Pass), Value: r.At, Choice: choice})
			if c == deciders[placement] && choice == Decline {
				add(Decision{Rule: placement, Value: r.At, Choice: Decline})
			}
		}
	}
	return list
}
