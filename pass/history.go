package pass

import "sync"

// History keeps the form before and after every pass that changed it, and says which
// pass made, moved or dropped a line. It watches a compilation as Control.OnChange.
type History struct {
	mu     sync.Mutex
	events []event
}

type event struct {
	row                    Info
	subject, before, after string
}

// Change is what one pass did to the lines that were asked about.
type Change struct {
	Row           Info
	Subject       string   // the kernel; empty where the form holds all of them
	Before, After int      // how many there are
	Gone, Made    []string // those that are not where they were; of a moved line, both
}

// Control asks for what is watched.
func (h *History) Control(c *Control) {
	c.Trace, c.OnChange = true, h.add
}

func (h *History) add(row Info, subject, before, after string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event{row, subject, before, after})
}

// Of lists the changes of the lines for which wanted holds, in the order in which the
// passes ran. Between two forms of different kinds, all lines of the second are made.
func (h *History) Of(wanted func(row Info, subject, line string) bool) (list []Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.events {
		e := &h.events[i]
		if e.row.From != e.row.To {
			e.before = ""
		}
		change := Change{Row: e.row, Subject: e.subject}
		isWanted := func(line string) bool { return wanted(e.row, e.subject, line) }
		choose := func(lines []string) (chosen []string) {
			for _, line := range lines {
				if isWanted(line) {
					chosen = append(chosen, line)
				}
			}
			return chosen
		}
		before, after := splitLines(e.before), splitLines(e.after)
		change.Before, change.After = len(choose(before)), len(choose(after))
		if change.Before+change.After == 0 {
			continue
		}
		gone, made := difference(before, after, isWanted, e.row.To != Program)
		if change.Gone, change.Made = choose(gone), choose(made); len(change.Gone)+len(change.Made) > 0 {
			list = append(list, change)
		}
	}
	return list
}

// What says in a word what happened to the lines.
func (c *Change) What() string {
	switch {
	case c.Row.From != c.Row.To, len(c.Gone) == 0:
		return "made"
	case len(c.Made) == 0:
		return "dropped"
	case sameLines(c.Gone, c.Made):
		return "moved"
	}
	return "changed"
}

func sameLines(a, b []string) bool {
	count := make(map[string]int)
	for _, line := range a {
		count[numbers.ReplaceAllString(line, "%")]++
	}
	for _, line := range b {
		count[numbers.ReplaceAllString(line, "%")]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
