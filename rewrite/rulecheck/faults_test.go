package rulecheck

import (
	"fmt"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/rewrite"
)

// recorder takes the place of testing.T.
type recorder struct{ text strings.Builder }

func (r *recorder) Errorf(format string, args ...any) { fmt.Fprintf(&r.text, format+"\n", args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }
func (r *recorder) Failed() bool                      { return r.text.Len() > 0 }

// Wrong rules must be found out.
func TestFaultsAreFound(t *testing.T) {
	x, y := rewrite.Any("x", rewrite.Floats), rewrite.Any("y", rewrite.Floats)
	i, c := rewrite.Any("i", rewrite.Ints), rewrite.Const("c", rewrite.Ints)
	nodes := rewrite.Measure{Text: "nodes", Of: func(u *ir.UOp) int { return len(ir.Toposort(u)) }}
	never := rewrite.Guard{Text: "never", Holds: func(*rewrite.Match) bool { return false }}
	add := func(p, q *rewrite.Pattern) *rewrite.Pattern { return rewrite.Op(ir.OpAdd, p, q) }
	sub := func(p, q *rewrite.Pattern) *rewrite.Pattern { return rewrite.Op(ir.OpSub, p, q) }
	for _, fault := range []struct {
		want string
		rule rewrite.Rule
	}{
		{"becomes", rewrite.Rule{Name: "plus-zero", Doc: "wrong at -0", From: add(x, rewrite.Literal(0)), To: x}},
		{"becomes", rewrite.Rule{Name: "sub-self", Doc: "wrong at infinity", From: sub(x, x), To: rewrite.Literal(0)}},
		{"becomes", rewrite.Rule{Name: "cancel", Doc: "wrong by rounding", From: sub(add(x, y), y), To: x}},
		{"becomes", rewrite.Rule{Name: "shift", Doc: "wrong where the shift loses bits", From: rewrite.Op(ir.OpShr, rewrite.Op(ir.OpShl, i, c), c), To: i}},
		{"measure", rewrite.Rule{Name: "grow", Doc: "longer", From: sub(x, y), To: add(x, rewrite.Op(ir.OpNeg, y))}},
		{"fired 0 times", rewrite.Rule{Name: "dead", Doc: "never fires", From: add(x, y), When: []rewrite.Guard{never}, To: x}},
	} {
		set := rewrite.NewSet("faulty", "", nodes, fault.rule)
		var r recorder
		checkRule(&r, Effort{Firings: 100, Tries: 5000, Inputs: 12}, set.Rules[0])
		if !strings.Contains(r.text.String(), fault.want) {
			t.Errorf("%s: got %q, want a report with %q", fault.rule.Name, r.text.String(), fault.want)
		}
	}
}
