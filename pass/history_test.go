package pass_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/pass"
)

// A history tells moved lines from changed ones, and asks only for those that are wanted.
func TestHistory(t *testing.T) {
	var h pass.History
	var c pass.Control
	h.Control(&c)
	in := func(name string, form pass.Form) pass.Info { return pass.Info{Name: name, From: form, To: form} }
	write := pass.Info{Name: "write", From: pass.Shaped, To: pass.Program}
	c.OnChange(in("renumber", pass.Shaped), "k", "%0 = load\n%1 = add %0\n", "%1 = load\n%0 = sub\n%2 = add %1\n")
	c.OnChange(write, "k", "%1 = load\n", "%1:f32 = load %0\nwait\n%2:f32 = load %1\n")
	c.OnChange(in("hoist", pass.Program), "k", "%1:f32 = load %0\nwait\n%2:f32 = load %1\n", "%1:f32 = load %0\n%2:f32 = load %1\nwait\n")
	c.OnChange(in("mark", pass.Program), "k", "%1:f32 = load %0\n%2:f32 = load %1\nwait\n", "%1:f32 = load %0\n%2:f32 = load %1 cache\nwait\n")
	c.OnChange(in("drop", pass.Program), "k", "%1:f32 = load %0\n%2:f32 = load %1 cache\nwait\n", "%1:f32 = load %0\nwait\n")
	var got []string
	for _, change := range h.Of(func(_ pass.Info, _, line string) bool { return strings.Contains(line, "load") }) {
		got = append(got, change.Row.Name+" "+change.What()+" "+strings.Join(change.Made, ",")+" "+strings.Join(change.Gone, ","))
	}
	want := []string{
		"write made %1:f32 = load %0,%2:f32 = load %1 ",
		"hoist moved %2:f32 = load %1 %2:f32 = load %1",
		"mark changed %2:f32 = load %1 cache %2:f32 = load %1",
		"drop dropped  %2:f32 = load %1 cache",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
	if waits := h.Of(func(_ pass.Info, _, line string) bool { return line == "wait" }); len(waits) != 2 || waits[1].What() != "moved" {
		t.Errorf("waits: %+v", waits)
	}
}

// A pass that counts says what it found, with its name and what it looked at.
func TestNotes(t *testing.T) {
	count := pass.Row[*word]{
		Info: pass.Info{Name: "count", From: pass.Program, To: pass.Program, Analysis: true},
		Run: func(ctx context.Context, w *word) error {
			pass.Notef(ctx, "%d letters", len(w.text))
			return nil
		},
	}
	var got []string
	ctx := pass.WithNotes(t.Context(), func(row, subject, text string) { got = append(got, row, subject, text) })
	for _, c := range []*pass.Control{nil, {Verify: true}} {
		if err := table(count).Run(ctx, &word{text: "abc"}, "kernel", c); err != nil {
			t.Fatal(err)
		}
	}
	if err := table(count).Run(t.Context(), &word{}, "", nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"count", "kernel", "3 letters", "count", "kernel", "3 letters"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
