package viz

import (
	"sync"

	"tgc/pass"
)

// Watch notes what the passes of a compilation do: each change of a form, and each rule of
// package rewrite that fired meanwhile.
type Watch struct {
	mu      sync.Mutex
	texts   *texts
	graph   int               // the first form
	last    map[formOf]int    // the last text of a form
	changes []change          // in the order of time
	fired   []pass.Rewrite    // since the row that runs began
	row     formOf            // which that is: the row's name in place of a form
	archive map[formOf]string // the last form of several kernels
}

// formOf is a form of a kernel; of all of them where subject is empty.
type formOf struct{ form, subject string }

// change is one change of a form.
type change struct {
	row           pass.Info
	subject       string
	before, after int // texts; before is none where the form was another one
	rewrites      []pass.Rewrite
}

// NewWatch makes a Watch that has seen nothing.
func NewWatch() *Watch {
	return &Watch{texts: newTexts(), graph: none, last: make(map[formOf]int), archive: make(map[formOf]string)}
}

// Control asks a compilation for what is noted.
func (w *Watch) Control(c *pass.Control) {
	c.Trace, c.Origins, c.OnChange, c.OnRewrite = true, true, w.changed, w.rewritten
	c.DumpAfter, c.Dump = map[string]bool{firstPass: true}, w.dumped
}

// firstPass is the pass after which the graph is as its user made it.
const firstPass = "verify-graph"

func (w *Watch) dumped(_ pass.Info, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.graph = w.texts.add(text, none)
	w.last[formOf{string(pass.Tensor), ""}] = w.graph
}

func (w *Watch) changed(row pass.Info, subject, before, after string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := change{row: row, subject: subject, before: none}
	if row.From == row.To {
		c.before = w.keep(row.From, subject, before)
	}
	c.after = w.keep(row.To, subject, after)
	if w.row == (formOf{row.Name, subject}) {
		c.rewrites = w.fired
	}
	w.changes = append(w.changes, c)
	w.row, w.fired = formOf{}, nil
}

// keep keeps a form as what differs from the one before of its kind.
func (w *Watch) keep(form pass.Form, subject, text string) int {
	of := formOf{string(form), subject}
	base, ok := w.last[of]
	if !ok {
		base = none
	}
	if form == pass.Kernel {
		w.archive[of] = text
	}
	if form == pass.Program {
		text = withOrigins(text, nil)
	}
	w.last[of] = w.texts.add(text, base)
	return w.last[of]
}

func (w *Watch) rewritten(row, subject string, r pass.Rewrite) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := (formOf{row, subject}); w.row != at {
		w.row, w.fired = at, nil
	}
	w.fired = append(w.fired, r)
}
