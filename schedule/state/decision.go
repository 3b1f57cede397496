package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Decision says what a rule does with a value whatever the prices say. Values are told apart by
// what they compute and who reads them (Value.Key), so that a decision holds for all layers of a
// model, in every process, and for the same in another graph.
type Decision struct {
	Rule   Rule
	Value  string // 16 hexadecimal digits
	Choice Choice
}

// Choice is what a rule shall do: one of the two, or a number where the rule has one (chunks of
// split-grid).
type Choice int64

// The choices that every rule has that takes decisions.
const (
	Apply   Choice = -1 // although a limit or a price is against it; what is illegal stays as it is
	Decline Choice = 0
)

// String is "apply", "decline" or the number.
func (c Choice) String() string {
	switch c {
	case Apply:
		return "apply"
	case Decline:
		return "decline"
	}
	return strconv.FormatInt(int64(c), 10)
}

// ParseChoice reads what String wrote.
func ParseChoice(text string) (Choice, error) {
	switch text {
	case "apply":
		return Apply, nil
	case "decline":
		return Decline, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 2 || n > mostAmount || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("choice %.40q, want apply, decline or a number from 2 to %d", text, mostAmount)
	}
	return Choice(n), nil
}

const mostAmount = 1 << 16

// String is the rule, the value and the choice: "split-grid 9f3a64d1c0ffee12 8".
func (d Decision) String() string { return fmt.Sprintf("%s %s %s", d.Rule, d.Value, d.Choice) }

type decisionKey struct {
	rule  Rule
	value string
}

// Decisions are some of them, one for each rule and value.
type Decisions struct{ of map[decisionKey]Choice }

// With is a list with others; what both decide is as the later one says.
func (d Decisions) With(list ...Decision) Decisions {
	of := maps.Clone(d.of)
	if of == nil {
		of = make(map[decisionKey]Choice)
	}
	for _, x := range list {
		of[decisionKey{x.Rule, x.Value}] = x.Choice
	}
	return Decisions{of}
}

// List has all of them, sorted.
func (d Decisions) List() []Decision {
	var list []Decision
	for k, choice := range d.of {
		list = append(list, Decision{k.rule, k.value, choice})
	}
	slices.SortFunc(list, func(x, y Decision) int {
		return cmp.Or(cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Value, y.Value))
	})
	return list
}

// Has reports that a decision is one of them.
func (d Decisions) Has(x Decision) bool {
	choice, ok := d.of[decisionKey{x.Rule, x.Value}]
	return ok && choice == x.Choice
}

// Len is how many there are.
func (d Decisions) Len() int { return len(d.of) }

// loosened is by how much limits of a rule are wider where it is told to apply: decisions that are
// further from their limit are not worth a try.
const loosened = 4

// ParseDecisions reads decisions, separated by semicolons or lines. rule finds one by its name.
func ParseDecisions(text string, rule func(name string) (Rule, error)) (d Decisions, err error) {
	for n, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		if len(words) != 3 {
			return d, fmt.Errorf("decision %d: %.80q, want RULE VALUE CHOICE", n+1, part)
		}
		var x Decision
		if x.Rule, err = rule(words[0]); err != nil {
			return d, fmt.Errorf("decision %d: %w", n+1, err)
		}
		if x.Choice, err = ParseChoice(words[2]); err != nil {
			return d, fmt.Errorf("decision %d: %w", n+1, err)
		}
		if x.Value = words[1]; len(x.Value) != 16 || strings.Trim(x.Value, "0123456789abcdef") != "" {
			return d, fmt.Errorf("decision %d: value %.40q, want 16 hexadecimal digits", n+1, x.Value)
		}
		d = d.With(x)
	}
	return d, nil
}
