package ir

import (
	"strings"
	"testing"
)

// A node that takes another's place keeps its origin, one that a rule or a pass makes for a
// node has that, and any other the last of its sources'.
func TestOrigins(t *testing.T) {
	a := NewArena()
	x := a.Make(OpBuffer, F32, BufferArg{ID: 1}, a.Index(4))
	y := a.Make(OpBuffer, F32, BufferArg{ID: 2}, a.Index(4))
	sum := a.Add(x, y)
	root := a.Unary(OpNeg, sum)
	a.Trace(root)
	for _, c := range []struct {
		what string
		node *UOp
		from *UOp
	}{
		{"a node of the graph", sum, sum},
		{"one with other sources", a.With(root, []*UOp{x}), root},
		{"one of several", a.Mul(x, sum), sum},
		{"a constant", a.Const(F32, 2), nil},
		{"what a visitor makes", a.Rebuild(root, func(u *UOp, src []*UOp) *UOp {
			if u == sum {
				return a.Sub(x, y)
			}
			return nil
		}).Src[0], sum},
		{"a loop", a.Range(7, a.Index(3)), nil},
	} {
		want := 0
		if c.from != nil {
			want = int(c.from.number)
		}
		if got := a.Origin(c.node); got != want {
			t.Errorf("%s has the origin %d, want %d", c.what, got, want)
		}
	}
	own := a.OriginsUnder(root)
	a.Became(x, sum)
	if a.Origin(sum) != int(x.number) || own.Of(sum) != int(sum.number) {
		t.Errorf("the sum became x: origin %d, before %d", a.Origin(sum), own.Of(sum))
	}
	a.TakeOrigins(own)
	if a.Origin(sum) != int(sum.number) || a.Origin(root) != int(root.number) {
		t.Errorf("origins that were taken again: %d and %d", a.Origin(sum), a.Origin(root))
	}
	NewArena().TakeOrigins(NewArena().OriginsUnder(root)) // not traced: nothing
	before := a.MakeFor(root)
	made := a.Mul(x, x)
	a.MakeAgainFor(before)
	if after := a.Mul(y, y); a.Origin(made) != int(root.number) || a.Origin(after) != int(y.number) {
		t.Errorf("made for the root: origin %d; made afterwards: %d", a.Origin(made), a.Origin(after))
	}
}

// Of a traced arena a node has one name in all texts, which are read back as they were.
func TestTracedText(t *testing.T) {
	a := NewArena()
	x := a.Make(OpBuffer, F32, BufferArg{ID: 1}, a.Index(4))
	root := a.Unary(OpNeg, a.Unary(OpNeg, x))
	plain := Text(root)
	if got := a.Text(root); got != plain {
		t.Errorf("without a trace\n%swant\n%s", got, plain)
	}
	a.Trace(root)
	whole, part := a.Text(root), a.Text(root.Src[0])
	if !strings.HasPrefix(whole, part) || strings.Count(whole, OriginMark) != 3 {
		t.Errorf("a part of\n%sis\n%s", whole, part)
	}
	b := NewArena()
	back, err := Parse(b, whole)
	if err != nil || Text(back) != plain {
		t.Errorf("%v: read back as\n%s", err, Text(back))
	}
}
