package pass

import (
	"context"
	"fmt"
	"time"
)

// Spend adds to the time of a row: for rows whose runs Run cannot see one by one.
func (c *Control) Spend(name string, t time.Duration) {
	if c != nil {
		c.spend(name, t)
	}
}

// groupEnd is the index after the last row of the group that starts at row i, or
// i+1 for a row of no group.
func (t *Table[S]) groupEnd(i int) int {
	end := i + 1
	if group := t.Rows[i].Group; group != "" && t.Fixpoint != nil {
		for end < len(t.Rows) && t.Rows[end].Group == group {
			end++
		}
	}
	return end
}

// runGroup runs rows of one group to their fixpoint. A dump, a stop or the
// verifier after one of them comes after the fixpoint. Which rows fired, and how
// long each took, Fixpoint tells c.
func (t *Table[S]) runGroup(ctx context.Context, rows []Row[S], s S, subject string, c *Control) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var names []string
	for i := range rows {
		if !c.Skips(&rows[i].Info) {
			names = append(names, rows[i].Name)
		}
	}
	if err := t.Fixpoint(ctx, s, names, c); err != nil {
		return fmt.Errorf("%s: %w", rows[0].Group, err)
	}
	if c == nil {
		return nil
	}
	if c.Verify && t.Verify != nil {
		if err := t.Verify(s); err != nil {
			return fmt.Errorf("after %s: %w", rows[0].Group, err)
		}
	}
	for i := range rows {
		if err := t.show(&rows[i], s, subject, c); err != nil {
			return err
		}
	}
	return nil
}

// show prints the form after a row if the user asked for it, and returns
// ErrStopped after the row at which the user asked to stop.
func (t *Table[S]) show(row *Row[S], s S, subject string, c *Control) error {
	if c.Dump != nil && (c.DumpAfter[row.Name] || c.StopAfter == row.Name) && t.Text != nil {
		c.Dump(row.Info, subject, t.Text(s))
	}
	if c.StopAfter == row.Name {
		return ErrStopped
	}
	return nil
}
