package kernel_test

import (
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/lower"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/target"
)

// The text of a kernel between two steps says all that the steps after it need:
// printed after any step, read into another arena and taken on from there, a kernel
// becomes the same program.
func TestShapedTextRoundTrip(t *testing.T) {
	for _, c := range planCases {
		for _, text := range c.plans {
			t.Run(c.name+"/"+text, func(t *testing.T) {
				b := newBuilder()
				throughText(t, b.Arena, c.build(b), text, avx512)
			})
		}
	}
	for _, c := range gpuCases {
		for _, text := range c.plans {
			t.Run("gpu/"+c.name+"/"+text, func(t *testing.T) {
				b := newBuilder()
				throughText(t, b.Arena, c.build(b), text, hopper(t))
			})
		}
	}
}

func throughText(t *testing.T, a *ir.Arena, sink *ir.UOp, planText string, desc *target.Desc) {
	t.Helper()
	chosen, err := plan.Parse(planText)
	if err != nil {
		t.Fatal(err)
	}
	st := shape.NewState(a, sink, chosen, desc)
	texts := []string{shape.Text(st)}
	for i := range shape.Passes.Rows {
		row := &shape.Passes.Rows[i]
		if err := row.Run(t.Context(), st); err != nil {
			t.Fatalf("%s: %v", row.Name, err)
		}
		if err := shape.Verify(st); err != nil {
			t.Fatalf("after %s: %v\n%s", row.Name, err, shape.Text(st))
		}
		texts = append(texts, shape.Text(st))
	}
	want := programOf(t, st)
	for i, text := range texts {
		if i > 0 && text == texts[i-1] {
			continue
		}
		st, err := shape.Parse(ir.NewArena(), text, desc)
		if err != nil {
			t.Fatalf("before step %d: %v\n%s", i, err, text)
		}
		if again := shape.Text(st); again != text {
			t.Fatalf("before step %d: printed\n%s\nread and printed\n%s", i, text, again)
		}
		for k := i; k < len(shape.Passes.Rows); k++ {
			if err := shape.Passes.Rows[k].Run(t.Context(), st); err != nil {
				t.Fatalf("from the text before step %d: %s: %v", i, shape.Passes.Rows[k].Name, err)
			}
		}
		if got := programOf(t, st); got != want {
			t.Fatalf("from the text before step %d (%s): %s", i, shape.Passes.Rows[min(i, len(shape.Passes.Rows)-1)].Name, firstDifference(want, got))
		}
	}
}

func programOf(t *testing.T, st *shape.State) string {
	t.Helper()
	p, err := lower.Lower(st.Kernel)
	if err != nil {
		t.Fatal(err)
	}
	return program.Print(p)
}
