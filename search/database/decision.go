package database

import (
	"crypto/sha256"
	"fmt"
	"time"

	"tgc/kernel/plan"
	"tgc/schedule"
	"tgc/target"
)

// NewDecision is an entry for a decision on a target, now.
func NewDecision(x schedule.Decision, desc *target.Desc) Entry {
	sum := sha256.Sum256([]byte(fmt.Sprintln(schedule.Version(), BoardOf(desc), x.Rule, x.Value)))
	return Entry{
		Key: Key(fmt.Sprintf("%x", sum[:16])), Kernel: string(x.Rule), Target: BoardOf(desc), Opts: plan.Version(),
		Source: schedule.Version(), Decision: x.String(), Date: time.Now().UTC().Truncate(time.Second),
	}
}

// checkDecision refuses what no search writes.
func (e *Entry) checkDecision() error {
	list, err := schedule.ParseDecisions(e.Decision)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case !e.Key.ok() || list.Len() != 1 || e.Plan != "":
		return fmt.Errorf("%w: key %.40q of a decision", ErrCorrupt, e.Key)
	case e.Source != schedule.Version():
		return fmt.Errorf("%w of this version: its rules are %.40q, these %q", ErrCorrupt, e.Source, schedule.Version())
	}
	return nil
}

// Decisions are those for a target; of entries that are not proven or keep what the price says, none.
// The errors say which files are not believed.
func (d *DB) Decisions(desc *target.Desc) (list schedule.Decisions, bad []error) {
	for _, path := range d.files(decisions) {
		e, err := read(path)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if e.Target != BoardOf(desc) || e.Unproven || e.Kept {
			continue
		}
		one, err := schedule.ParseDecisions(e.Decision)
		if x := one.List(); err == nil && NewDecision(x[0], desc).Key == e.Key {
			list = list.With(x...)
		} else {
			bad = append(bad, fmt.Errorf("%s: %w: its key is another decision's", path, ErrCorrupt))
		}
	}
	return list, bad
}
