package schedule

import (
	"fmt"
	"strings"
)

// Record is one decision: a rule applied to a value, or declined for a reason.
type Record struct {
	Rule    Rule
	Value   string // the value decided on
	Applied bool
	Reason  string // a key that tests can pin
	Numbers []Number
}

// Number is one figure behind a decision.
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
	fmt.Fprintf(&b, "%-5s %-8s %s: %s", r.Rule, verb, r.Value, r.Reason)
	for _, n := range r.Numbers {
		fmt.Fprintf(&b, " %s=%d", n.Name, n.Value)
	}
	return b.String()
}

// record keeps a decision. Declined ones only with Options.Explain.
func (s *scheduler) record(rule Rule, v *value, applied bool, reason string, numbers ...Number) {
	if !applied && !s.opt.Explain {
		return
	}
	s.records = append(s.records, Record{Rule: rule, Value: v.label(), Applied: applied, Reason: reason, Numbers: numbers})
}

// label names a value in records: its number, its extents and what it writes.
func (v *value) label() string {
	var b strings.Builder
	fmt.Fprintf(&b, "v%d[", v.id)
	for i, r := range v.ranges {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(extentText(r.Src[0]))
	}
	b.WriteByte(']')
	if v.name != "" {
		b.WriteString(" " + v.name)
	}
	return b.String()
}
