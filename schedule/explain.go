package schedule

import (
	"fmt"
	"slices"
	"strings"

	"tgc/ir"
)

// Record is one decision: a rule applied to a value, or declined for a reason.
type Record struct {
	Rule    Rule
	Value   string // the value decided on
	Applied bool
	Reason  string // a key that tests can pin
	Numbers []Number

	value int // number of the value
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
	fmt.Fprintf(&b, "%-24s %-8s %s: %s", r.Rule, verb, r.Value, r.Reason)
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
	s.records = append(s.records, Record{Rule: rule, Value: s.describe(v), Applied: applied, Reason: reason, Numbers: numbers, value: v.id})
}

// settledRecords puts the decisions on a value together and keeps, of those that
// a rule declined again and again, the last.
func settledRecords(records []Record) []Record {
	type key struct {
		rule  Rule
		value int
	}
	last := make(map[key]int)
	for i, r := range records {
		last[key{r.Rule, r.value}] = i
	}
	var out []Record
	for i, r := range records {
		if r.Applied || last[key{r.Rule, r.value}] == i {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(x, y Record) int { return x.value - y.value })
	return out
}

// describe is a value's label and what it computes: its outermost reduces with
// their extents, and the packed formats that it decodes.
func (s *scheduler) describe(v *value) string {
	if !s.opt.Explain {
		return v.label()
	}
	var parts, formats []string
	add := func(list *[]string, part string) {
		if !slices.Contains(*list, part) {
			*list = append(*list, part)
		}
	}
	if s.height(v.body) == 0 {
		parts = append(parts, "map")
	}
	for _, u := range ir.Toposort(v.body) {
		switch u.Op {
		case ir.OpReduce:
			name := "tuple"
			if op := u.Arg.(ir.ReduceArg).Op; op != ir.OpInvalid {
				name = op.String()
			}
			add(&parts, name+":"+extentText(u.ReduceRange().Src[0]))
		case ir.OpField:
			add(&formats, u.Arg.(ir.FieldArg).Format)
		}
	}
	return v.label() + " (" + strings.Join(append(parts, formats...), " ") + ")"
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
