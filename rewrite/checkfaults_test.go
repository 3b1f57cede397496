package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"tgc/ir"
)

// recorder takes the place of testing.T.
type recorder struct{ text strings.Builder }

func (r *recorder) Errorf(format string, args ...any) { fmt.Fprintf(&r.text, format+"\n", args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }
func (r *recorder) Failed() bool                      { return r.text.Len() > 0 }

// Wrong rules must be found out.
func TestFaultsAreFound(t *testing.T) {
	x, y := Any("x", Floats), Any("y", Floats)
	i, c := Any("i", Ints), Const("c", Ints)
	nodes := Measure{Text: "nodes", Of: func(u *ir.UOp) int { return len(ir.Toposort(u)) }}
	never := Guard{Text: "never", Holds: func(*Match) bool { return false }}
	add := func(p, q *Pattern) *Pattern { return Op(ir.OpAdd, p, q) }
	sub := func(p, q *Pattern) *Pattern { return Op(ir.OpSub, p, q) }
	for _, fault := range []struct {
		want string
		rule Rule
	}{
		{"becomes", Rule{Name: "plus-zero", Doc: "wrong at -0", From: add(x, Literal(0)), To: x}},
		{"becomes", Rule{Name: "sub-self", Doc: "wrong at infinity", From: sub(x, x), To: Literal(0)}},
		{"becomes", Rule{Name: "cancel", Doc: "wrong by rounding", From: sub(add(x, y), y), To: x}},
		{"becomes", Rule{Name: "shift", Doc: "wrong where the shift loses bits", From: Op(ir.OpShr, Op(ir.OpShl, i, c), c), To: i}},
		{"measure", Rule{Name: "grow", Doc: "longer", From: sub(x, y), To: add(x, Op(ir.OpNeg, y))}},
		{"fired 0 times", Rule{Name: "dead", Doc: "never fires", From: add(x, y), When: []Guard{never}, To: x}},
	} {
		set := NewSet("faulty", "", nodes, fault.rule)
		var r recorder
		checkRule(&r, Effort{Firings: 100, Tries: 5000, Inputs: 12}, set.Rules[0])
		if !strings.Contains(r.text.String(), fault.want) {
			t.Errorf("%s: got %q, want a report with %q", fault.rule.Name, r.text.String(), fault.want)
		}
	}
}
