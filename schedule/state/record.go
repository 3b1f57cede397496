package state

import (
	"fmt"
	"slices"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
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

// Record keeps a decision of the pass that runs. Declined ones only with
// Options.Explain.
func (s *State) Record(v *Value, applied bool, reason string, numbers ...Number) {
	if !applied && !s.Opt.Explain {
		return
	}
	s.Records = append(s.Records, Record{Pass: s.Pass.Name, Key: s.Pass.Key, Value: s.describe(v), At: v.Key, Applied: applied, Reason: reason, Numbers: numbers, value: v.ID})
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

// describe is a value's label and what it computes: its outermost reduces with
// their extents, and the packed formats that it decodes.
func (s *State) describe(v *Value) string {
	if !s.Opt.Explain {
		return v.Label()
	}
	var parts, formats []string
	if s.Height(v.Body) == 0 {
		parts = append(parts, "map")
	}
	for _, u := range ir.Toposort(v.Body) {
		switch u.Op {
		case ir.OpReduce:
			name := "tuple"
			if op := u.Arg.(ir.ReduceArg).Op; op != ir.OpInvalid {
				name = op.String()
			}
			parts = lists.Union(parts, name+":"+expr.ExtentText(u.ReduceRange().Src[0]))
		case ir.OpField:
			formats = lists.Union(formats, u.Arg.(ir.FieldArg).Format)
		}
	}
	return v.Label() + " (" + strings.Join(append(parts, formats...), " ") + ")"
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
