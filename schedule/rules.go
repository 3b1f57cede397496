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

// RuleInfos describes all rules, in the order of the table.
func RuleInfos() []RuleInfo {
	var list []RuleInfo
	for _, r := range rows {
		if r.rule != state.NoRule && r.Name == r.rule.String() {
			list = append(list, RuleInfo{r.Info, r.rule, r.class})
		}
	}
	return list
}

// withoutRows is opt less the rules whose every row is left out: other rules
// reckon with what is switched on.
func withoutRows(opt state.Options) state.Options {
	for _, rule := range state.Rules() {
		if !slices.ContainsFunc(tableRows, func(r row) bool { return r.rule == rule && !opt.Control.Skips(&r.Info) }) {
			opt.Rules = opt.Rules.Without(rule)
		}
	}
	return opt
}

// ParseRules reads a comma-separated list of names or keys; a leading '-' on one
// removes it from what the list has so far, "all" and "none" reset.
func ParseRules(text string, from state.RuleSet) (state.RuleSet, error) {
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		switch word {
		case "":
			continue
		case "all":
			from = state.AllRules
			continue
		case "none":
			from = state.NoRules
			continue
		}
		name, remove := strings.CutPrefix(word, "-")
		rule, ok := findRule(name)
		if !ok {
			return 0, fmt.Errorf("schedule: unknown rule %q, want one of %s", name, state.AllRules)
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
func findRule(name string) (state.Rule, bool) {
	for i := range tableRows {
		if r := &tableRows[i]; r.rule != state.NoRule && (r.Name == name || r.Key != "" && r.Key == name) {
			return r.rule, true
		}
	}
	return state.NoRule, false
}
