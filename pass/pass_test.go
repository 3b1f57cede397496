package pass_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tgc/pass"
)

// word is a form for tests: a text that passes change.
type word struct{ text string }

func appending(name, suffix string) pass.Row[*word] {
	return pass.Row[*word]{
		Info: pass.Info{Name: name, From: pass.Kernel, To: pass.Kernel},
		Run:  func(_ context.Context, w *word) error { w.text += suffix; return nil },
	}
}

func table(rows ...pass.Row[*word]) *pass.Table[*word] {
	return pass.NewTable(pass.Table[*word]{
		Stage: "test", Rows: rows,
		Text: func(w *word) string { return w.text },
		Verify: func(w *word) error {
			if strings.Contains(w.text, "x") {
				return errors.New("an x")
			}
			return nil
		},
	})
}

func TestRunInOrder(t *testing.T) {
	rows := table(appending("a", "1"), appending("b", "2"), appending("c", ""))
	var dumps []string
	c := &pass.Control{
		Trace: true, DumpAfter: map[string]bool{"b": true},
		Dump: func(row pass.Info, subject, text string) { dumps = append(dumps, row.Name+" "+subject+" "+text) },
	}
	w := new(word)
	if err := rows.Run(t.Context(), w, "k", c); err != nil {
		t.Fatal(err)
	}
	if w.text != "12" || !slices.Equal(dumps, []string{"b k 12"}) {
		t.Errorf("text %q, dumps %q", w.text, dumps)
	}
	if got := fmt.Sprint(c.Firings()); got != "map[a:1 b:1]" {
		t.Errorf("firings %s", got)
	}
	if times := c.Times(rows.Infos()); len(times) != 3 || times[2].Name != "c" {
		t.Errorf("times %v", times)
	}
}

// What a row left is what the next one finds: its text is made once.
func TestTracePrintsOnce(t *testing.T) {
	rows, printed := table(appending("a", "1"), appending("b", ""), appending("c", "3")), 0
	rows.Text = func(w *word) string { printed++; return w.text }
	c := &pass.Control{Trace: true}
	if err := rows.Run(t.Context(), new(word), "", c); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Firings()); got != "map[a:1 c:1]" || printed != 4 {
		t.Errorf("firings %s, %d texts of 3 rows", got, printed)
	}
}

func TestRunWithoutAndStop(t *testing.T) {
	rows := table(appending("a", "1"), appending("b", "2"), appending("c", "3"))
	w := new(word)
	err := rows.Run(t.Context(), w, "", &pass.Control{Without: map[string]bool{"a": true}, StopAfter: "b"})
	if !errors.Is(err, pass.ErrStopped) || w.text != "2" {
		t.Errorf("text %q, error %v", w.text, err)
	}
}

func TestRunVerifies(t *testing.T) {
	rows := table(appending("a", "1"), appending("b", "x"))
	if err := rows.Run(t.Context(), new(word), "", nil); err != nil {
		t.Errorf("without Verify: %v", err)
	}
	err := rows.Run(t.Context(), new(word), "", &pass.Control{Verify: true})
	if err == nil || err.Error() != "after b: an x" {
		t.Errorf("got %v, want the row and what is wrong", err)
	}
}

func TestCheck(t *testing.T) {
	row := func(name string, from, to pass.Form, needs, gives string) pass.Info {
		i := pass.Info{Name: name, From: from, To: to}
		if needs != "" {
			i.Needs = []string{needs}
		}
		if gives != "" {
			i.Gives = []string{gives}
		}
		return i
	}
	a := row("a", pass.Tensor, pass.Kernel, "", "split")
	b := row("b", pass.Kernel, pass.Kernel, "split", "")
	for _, c := range []struct {
		name   string
		rows   []pass.Info
		orders []pass.Order
		want   string
	}{
		{"good", []pass.Info{a, b}, []pass.Order{{"a", "b", "split first"}}, ""},
		{"twice", []pass.Info{b, b}, nil, "needs"},
		{"same name", []pass.Info{a, row("a", pass.Kernel, pass.Kernel, "", "")}, nil, "there twice"},
		{"no word", []pass.Info{row("splitAxes-axes", pass.Kernel, pass.Kernel, "", "")}, nil, "want words"},
		{"form", []pass.Info{b, a}, nil, "needs"},
		{"form between", []pass.Info{a, row("c", pass.Program, pass.Program, "", "")}, nil, "takes form program"},
		{"order", []pass.Info{a, b}, []pass.Order{{"b", "a", "because"}}, "must come before"},
		{"reason", []pass.Info{a, b}, []pass.Order{{"a", "b", ""}}, "no reason"},
		{"unknown", []pass.Info{a, b}, []pass.Order{{"a", "z", "because"}}, "no row"},
	} {
		err := pass.Check(c.rows, c.orders)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
