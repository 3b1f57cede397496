package schedule

import (
	"fmt"
	"slices"
	"strings"

	"tgc/pass"
	"tgc/schedule/state"
)

// Class says what a rule does to float rounding.
type Class byte

// The rounding classes.
const (
	Exact       Class = 'X' // bit-exact
	Reassociate Class = 'A' // re-associates floats
	DropBits    Class = 'D' // drops precision
)

// RuleInfo describes a rule: its first row in the table of passes.
type RuleInfo struct {
	pass.Info
	Rule  state.Rule
	Class Class
}

// checkSwitches reports a switch that no row has, and a rule without a class.
func checkSwitches() error {
	all := AllRules()
	for i := range tableRows {
		if r := &tableRows[i]; r.rule() != "" && (!all.Has(r.rule()) || r.class == 0) {
			return fmt.Errorf("%s: switch %q, class %q", r.Name, r.rule(), r.class)
		}
	}
	return unknown(all, state.Asked...)
}

// unknown reports a rule that is not one of all.
func unknown(all state.RuleSet, rules ...state.Rule) error {
	for _, r := range rules {
		if !all.Has(r) {
			return fmt.Errorf("unknown rule %q, want one of %s", r, all)
		}
	}
	return nil
}

// RuleInfos describes all rules, in the order of the table.
func RuleInfos() []RuleInfo {
	var list []RuleInfo
	for i := range tableRows {
		if r := &tableRows[i]; r.rule() == state.Rule(r.Name) {
			list = append(list, RuleInfo{r.Info, r.rule(), r.class})
		}
	}
	return list
}

// Rules lists all rules, in the order of the table.
func Rules() (list []Rule) {
	for _, r := range RuleInfos() {
		list = append(list, r.Rule)
	}
	return list
}

// AllRules has every rule. With all of them off, every value is a kernel of its own.
func AllRules() RuleSet { return RuleSet(nil).With(Rules()...) }

// withoutRows is opt with those rules off whose every row is left out: other rules
// reckon with what is switched on.
func withoutRows(opt state.Options) (state.Options, error) {
	if err := unknown(AllRules(), opt.Off.List()...); err != nil {
		return opt, fmt.Errorf("schedule: %w", err)
	}
	for _, rule := range Rules() {
		if !slices.ContainsFunc(tableRows, func(r row) bool { return r.rule() == rule && !opt.Control.Skips(&r.Info) }) {
			opt.Off = opt.Off.With(rule)
		}
	}
	return opt, nil
}

// ParseRules reads a comma-separated list of names or keys; a leading '-' on one
// removes it from what the list has so far, "all" and "none" reset.
func ParseRules(text string, from state.RuleSet) (state.RuleSet, error) {
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		switch word {
		case "":
			continue
		case "all":
			from = AllRules()
			continue
		case "none":
			from = nil
			continue
		}
		name, remove := strings.CutPrefix(word, "-")
		rule, ok := findRule(name)
		if !ok {
			return nil, fmt.Errorf("schedule: unknown rule %q, want one of %s", name, AllRules())
		}
		if remove {
			from = from.Without(rule)
		} else {
			from = from.With(rule)
		}
	}
	return from, nil
}

// findRule finds the rule of a row by the row's name or key.
func findRule(name string) (state.Rule, bool) {
	for i := range tableRows {
		if r := &tableRows[i]; r.rule() != "" && (r.Name == name || r.Key != "" && r.Key == name) {
			return r.rule(), true
		}
	}
	return "", false
}

// row is a pass of this stage.
type row struct {
	pass.Info
	with  state.Rule                            // another row's switch, which is this one's too; empty: it has its own (see rule)
	class Class                                 // what it does to float rounding
	run   func(*state.State)                    // the pass; a row of a group has try instead
	try   func(*state.State, *state.Value) bool // tries the rule on one value; true: it changed the state
}

// tableRows are rows, for passes that ask for them.
var tableRows []row

// rule is the switch of a row in Options.Off: the row's own, unless it goes with
// another's or cannot be left out.
func (r *row) rule() state.Rule {
	if r.with == "" && !r.Required {
		return state.Rule(r.Name)
	}
	return r.with
}
