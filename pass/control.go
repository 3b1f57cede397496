package pass

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrStopped is returned by Run after the row at which the user asked to stop.
var ErrStopped = errors.New("stopped after a pass, as asked")

// FormError says that a row left a form that breaks its contract: a fault of the
// compiler, found by Control.Verify.
type FormError struct {
	After string // the row
	Err   error
}

// Error names the row.
func (e *FormError) Error() string { return fmt.Sprintf("after %s: %v", e.After, e.Err) }

// Unwrap is what the verifier says.
func (e *FormError) Unwrap() error { return e.Err }

// Control is what the user of a compilation asked of its passes, and what it saw
// of them. A nil Control asks for nothing. It may be shared by goroutines.
type Control struct {
	Without   map[string]bool                               // rows left out, by name
	DumpAfter map[string]bool                               // rows after which the form is printed, by name
	StopAfter string                                        // a row after which nothing more runs
	Dump      func(row Info, subject, text string)          // gets the forms that are printed
	Verify    bool                                          // run the form's verifier after every row
	Trace     bool                                          // count what fires: compares texts, slow
	OnChange  func(row Info, subject, before, after string) // with Trace: told of every firing; may be nil
	Origins   bool                                          // forms say for which node of the graph a node was made, and it has one name in all of them
	OnRewrite func(row, subject string, r Rewrite)          // told of every rule of package rewrite that fires in a row; may be nil

	mu      sync.Mutex
	times   map[string]time.Duration
	firing  map[string]int
	running string
}

// Rewrite is a rule of package rewrite that fired: its full name, and the expression
// before and after.
type Rewrite struct{ Rule, Before, After string }

// Rewritten tells who wants to know of a rule that fired in the row that runs.
func (c *Control) Rewritten(subject string, r Rewrite) { c.OnRewrite(c.Running(), subject, r) }

// WatchesRewrites reports that somebody wants to be told.
func (c *Control) WatchesRewrites() bool { return c != nil && c.OnRewrite != nil }

// Child is a Control that asks for the same and counts times and firings of its
// own: one for each compilation. The child of nil asks for nothing.
func (c *Control) Child() *Control {
	if c == nil {
		return new(Control)
	}
	return &Control{
		Without: c.Without, DumpAfter: c.DumpAfter, StopAfter: c.StopAfter, Dump: c.Dump,
		Verify: c.Verify, Trace: c.Trace, OnChange: c.OnChange, Origins: c.Origins, OnRewrite: c.OnRewrite,
	}
}

// Plain reports that nothing is asked for but to run all rows.
func (c *Control) Plain() bool {
	return c == nil || len(c.Without)+len(c.DumpAfter) == 0 && c.StopAfter == "" && c.Dump == nil && !c.Verify && !c.Trace && !c.Origins && c.OnRewrite == nil
}

// Running names the row that was started last: after a panic, the one at fault.
func (c *Control) Running() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// Begin notes that a row starts: for rows whose runs Run cannot see one by one.
func (c *Control) Begin(name string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = name
}

// Time is how long the runs of a row took together.
type Time struct {
	Name string
	Time time.Duration
}

// Times lists the time of every row that ran, in the order of rows.
func (c *Control) Times(rows []Info) []Time {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Time
	for _, r := range rows {
		if t, ran := c.times[r.Name]; ran {
			list = append(list, Time{r.Name, t})
		}
	}
	return list
}

// Firings is how often each row changed its form, with Trace.
func (c *Control) Firings() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]int, len(c.firing))
	for name, n := range c.firing {
		out[name] = n
	}
	return out
}

// Watched reports that somebody wants to be told of every firing.
func (c *Control) Watched() bool { return c != nil && c.Trace && c.OnChange != nil }

// Skips reports that a row is left out.
func (c *Control) Skips(row *Info) bool { return c != nil && c.Without[row.Name] }

func (c *Control) spend(name string, t time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times == nil {
		c.times = make(map[string]time.Duration)
	}
	c.times[name] += t
}

// Fired notes that a row changed something: what Trace counts, for rows whose
// runs Run cannot see one by one.
func (c *Control) Fired(name string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.firing == nil {
		c.firing = make(map[string]int)
	}
	c.firing[name]++
}

// Run runs the rows of a table in order. subject names what the form belongs to
// (a kernel), for dumps. It returns ErrStopped after the row at which the user
// asked to stop, and the error of a row with the row's name before it.
func (t *Table[S]) Run(ctx context.Context, s S, subject string, c *Control) error {
	var text formText
	for i := 0; i < len(t.Rows); {
		end := t.groupEnd(i)
		var err error
		if end-i > 1 {
			err = t.runGroup(ctx, t.Rows[i:end], s, subject, c)
			text = formText{}
		} else {
			err = t.runRow(ctx, &t.Rows[i], s, subject, c, &text)
		}
		if err != nil {
			return err
		}
		i = end
	}
	return nil
}

// RunRow runs one row as Run does: unless it is left out, timed, verified and
// printed.
func (t *Table[S]) RunRow(ctx context.Context, row *Row[S], s S, subject string, c *Control) error {
	return t.runRow(ctx, row, s, subject, c, new(formText))
}

// formText is the text of a form after a row, which it still has before the next;
// not known before the first.
type formText struct {
	text  string
	known bool
}

func (t *Table[S]) runRow(ctx context.Context, row *Row[S], s S, subject string, c *Control, text *formText) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = ofRow(ctx, row.Name, subject)
	if c == nil {
		if err := row.Run(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", row.Name, err)
		}
		return nil
	}
	if !c.Skips(&row.Info) {
		if err := t.runControlled(ctx, row, s, subject, c, text); err != nil {
			return err
		}
	}
	return t.show(row, s, subject, c)
}

func (t *Table[S]) runControlled(ctx context.Context, row *Row[S], s S, subject string, c *Control, text *formText) error {
	trace := c.Trace && t.Text != nil
	var before string
	if trace && row.From == row.To {
		if !text.known {
			text.text = t.Text(s)
		}
		before = text.text
	}
	c.Begin(row.Name)
	start := time.Now()
	err := row.Run(ctx, s)
	c.spend(row.Name, time.Since(start))
	if err != nil {
		return fmt.Errorf("%s: %w", row.Name, err)
	}
	if trace {
		after := t.Text(s)
		*text = formText{after, true}
		if after != before {
			c.Fired(row.Name)
			if c.Watched() {
				c.OnChange(row.Info, subject, before, after)
			}
		}
	}
	if c.Verify && t.Verify != nil {
		if err := t.Verify(s); err != nil {
			return &FormError{After: row.Name, Err: err}
		}
	}
	return nil
}
