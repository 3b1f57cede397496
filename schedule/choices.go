package schedule

import (
	"fmt"
	"slices"
	"strings"

	"tgc/schedule/state"
)

// choices are what may be decided of a rule.
type choices struct {
	apply  bool // it may be told to apply
	amount bool // it has a number
	text   string
	others func(r Record) []Choice // than what a record says
}

// deciders are the rules that take decisions, by the group or the name of their rows. The name of the
// group is that of all of its rules: a value of which it declines is stored.
var deciders = map[string]*choices{
	placement:            {apply: true, text: "apply: its limits are four times as wide, and prices are not asked; decline: the value stays as it is", others: otherPlacement},
	string(WeightLayout): {amount: true, text: "a number: rows of packed weights of up to so many bits are interleaved at load; decline: they lie as in the file"},
	"split-grid":         {amount: true, text: "a number: so many chunks; decline: the reduce stays whole", others: otherSplits},
	"order-levels": {text: "decline: the kernel that stores the value starts after the others of its level, alone", others: func(r Record) []Choice {
		if r.Applied {
			return []Choice{Decline}
		}
		return nil
	}},
}

// WeightLayout decides how the packed weights of a model lie in the memory of a CPU. It is no rule of the
// schedule: who loads the weights asks for it, since all steps share them.
const WeightLayout Rule = "weight-layout"

// choicesOf are those of a rule; nil: it takes no decisions.
func choicesOf(rule Rule) *choices {
	if c := deciders[string(rule)]; c != nil {
		return c
	}
	i := slices.IndexFunc(tableRows, func(r row) bool { return r.Name == string(rule) })
	if i < 0 {
		return nil
	}
	return deciders[tableRows[i].Group]
}

// Deciders describes the rules that take decisions: names, and what may be decided.
func Deciders() (names, texts []string) {
	for i := range tableRows {
		if c := choicesOf(Rule(tableRows[i].Name)); c != nil {
			names, texts = append(names, tableRows[i].Name), append(texts, c.text)
		}
	}
	return append(names, placement), append(texts, "decline: no rule of the group takes the value, which is stored")
}

func unknownDecider(name string) error {
	names, _ := Deciders()
	names = append(names, string(WeightLayout))
	return fmt.Errorf("rule %.40q, want one of %s", name, strings.Join(names, ", "))
}

// check refuses a choice that the rule does not have.
func (c *choices) check(d Decision) error {
	if d.Choice == Apply && (!c.apply || d.Rule == placement) || d.Choice > 1 && !c.amount {
		return fmt.Errorf("decision %q: %s takes %s", d, d.Rule, c.text)
	}
	return nil
}

// otherPlacement turns a decision of a placement rule round. Declined ones without a number are not
// for a limit: the rule does not fit.
func otherPlacement(r Record) []Choice {
	switch {
	case r.Applied:
		return []Choice{Decline}
	case len(r.Numbers) > 0:
		return []Choice{Apply}
	}
	return nil
}

// otherSplits are other numbers of chunks; of a whole reduce, some.
func otherSplits(r Record) (list []Choice) {
	extent, splits := number(r, "extent"), number(r, "splits")
	add := func(n int64) {
		if n >= 2 && n <= extent/2 && n != splits && !slices.Contains(list, Choice(n)) {
			list = append(list, Choice(n))
		}
	}
	if !r.Applied {
		for n := int64(4); n <= 32; n *= 2 {
			add(n)
		}
		return list
	}
	for _, n := range []int64{splits / 2, splits * 2, splits / 4, splits * 4} {
		add(n)
	}
	return append(list, state.Decline)
}

// number is one of a record's; 0 if it has no such.
func number(r Record, name string) int64 {
	for _, n := range r.Numbers {
		if n.Name == name {
			return n.Value
		}
	}
	return 0
}
