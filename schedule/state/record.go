package state

import (
	"fmt"
	"slices"
	"strings"

	"tgc/schedule/expr"
)

// Record is one decision: a pass changed a value, or did not for a reason.
type Record struct {
	Pass    string // the row of the table of passes that decided
	Key     string // its short name, if it has one
	Value   string // the value decided on
	At      string // its key (State.NameValues), with Options.Explain
	Applied bool
	Reason  string // a key that tests can pin
	Numbers []Number

	value int // number of the value
}

// Decided is the reason where a decision said so (Options.Decisions).
const Decided = "decided"

// Number is one figure of a decision.
type Number struct {
	Name  string
	Value int64
}

// String prints a record on one line.
func (r Record) String() string {
	verb := "declined"
	if r.Applied {
		verb = "applied"
	}
	var b strings.Builder
	name := r.Pass
	if r.Key != "" {
		name += " (" + r.Key + ")"
	}
	fmt.Fprintf(&b, "%-24s %-8s %s: %s", name, verb, r.Value, r.Reason)
	for _, n := range r.Numbers {
		fmt.Fprintf(&b, " %s=%d", n.Name, n.Value)
	}
	return b.String()
}

// SettledRecords puts the decisions on a value together and keeps, of those that
// a rule declined again and again, the last.
func SettledRecords(records []Record) []Record {
	type key struct {
		pass  string
		value int
	}
	last := make(map[key]int)
	for i, r := range records {
		last[key{r.Pass, r.value}] = i
	}
	var out []Record
	for i, r := range records {
		if r.Applied || last[key{r.Pass, r.value}] == i {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(x, y Record) int { return x.value - y.value })
	return out
}

// Label names a value in records: its number, its extents and what it writes.
func (v *Value) Label() string {
	var b strings.Builder
	fmt.Fprintf(&b, "v%d[", v.ID)
	for i, r := range v.Ranges {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(expr.ExtentText(r.Src[0]))
	}
	b.WriteByte(']')
	if v.Name != "" {
		b.WriteString(" " + v.Name)
	}
	return b.String()
}
