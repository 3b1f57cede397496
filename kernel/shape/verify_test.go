package shape_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/kernel/shape"
	"tgc/target"
)

// ragged is the sum of x[37] + 1 with a plan that rounds up.
const ragged = `# plan: UPCAST s0 4
%0 = range idx [0] 37
%1 = param f32 [0] 37
%2 = load f32 %1 %0
%3 = add f32 %2 1:f32
%4 = param f32 [1] 37
%5 = store void [1] %4 %3 %0 %0
%6 = sink void %5
`

func interpreter(t *testing.T) *target.Desc {
	t.Helper()
	desc, err := target.Parse("interp")
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

// upTo is the text of the kernel after a step.
func upTo(t *testing.T, text, last string) string {
	t.Helper()
	for _, row := range shape.Passes.Rows {
		var err error
		if text, err = shape.RunPass(t.Context(), ir.NewArena(), row.Name, text, interpreter(t)); err != nil {
			t.Fatal(err)
		}
		if row.Name == last {
			break
		}
	}
	return text
}

// What breaks the form between two steps is found, and said.
func TestVerify(t *testing.T) {
	good := upTo(t, ragged, "order-ranges")
	for _, c := range []struct{ old, to, want string }{
		{"# gate 0 ", "# no gate ", "without a gate"},
		{" grid 0 1", " none 0 1", "expected a role"},
		{"# range %1 ", "# a range %1 ", "no role"},
		{"4 grid, ", "2 grid, ", "overlap"},
		{"next 3", "next 1", "the next new one is 1"},
		{"unroll tile", "lane tile", "in the split lane"},
		{"# gate 0 ", "# gate 7 ", "no store 7"},
		{"axis s0 store %0", "axis s0 store %99", "expected a node"},
	} {
		if !strings.Contains(good, c.old) {
			t.Fatalf("the text has no %q:\n%s", c.old, good)
		}
		_, err := shape.Parse(ir.NewArena(), strings.Replace(good, c.old, c.to, 1), interpreter(t))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %q", c.to, c.old, err, c.want)
		}
	}
}

// A step runs alone on a text, in its place.
func TestRunPass(t *testing.T) {
	if _, err := shape.RunPass(t.Context(), ir.NewArena(), "split-stores", ragged, interpreter(t)); err == nil {
		t.Error("split-stores ran before the plan was read")
	}
	shaped := upTo(t, ragged, "read-plan")
	if _, err := shape.RunPass(t.Context(), ir.NewArena(), "read-plan", shaped, interpreter(t)); err == nil {
		t.Error("the plan was read twice")
	}
	out, err := shape.RunPass(t.Context(), ir.NewArena(), "split-stores", shaped, interpreter(t))
	if err != nil || !strings.Contains(out, "# gate 0") {
		t.Errorf("split-stores: %v\n%s", err, out)
	}
}

// No text makes the parser panic.
func FuzzParse(f *testing.F) {
	desc, err := target.Parse("interp")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ragged)
	text := ragged
	for _, row := range shape.Passes.Rows {
		if text, err = shape.RunPass(f.Context(), ir.NewArena(), row.Name, text, desc); err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		st, err := shape.Parse(ir.NewArena(), text, desc)
		if err != nil {
			return
		}
		again := shape.Text(st)
		if _, err := shape.Parse(ir.NewArena(), again, desc); err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
	})
}
