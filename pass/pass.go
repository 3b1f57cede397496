package pass

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tgc/internal/lists"
)

// Form names a form of the pipeline.
type Form string

// The forms, in the order of the pipeline.
const (
	Tensor  Form = "tensor"  // tensor graph: UOps with shapes
	Values  Form = "values"  // values over ranges, not yet kernels
	Kernel  Form = "kernel"  // kernels: stores over ranges
	Shaped  Form = "shaped"  // one kernel whose plan is being applied
	Program Form = "program" // linear program
	Source  Form = "source"  // text for an assembler or compiler
)

// Info describes a row.
type Info struct {
	Name     string   // words with hyphens, unique in the whole table: "hoist-factors"
	Key      string   // the short name that records and switches also know ("R2"); may be empty
	From, To Form     // equal for most rows
	Group    string   // rows of one group run to a fixpoint together; may be empty
	Needs    []string // what must hold before: properties that earlier rows give
	Gives    []string // what holds afterwards
	Doc      string   // what it does, one line
	Why      string   // why it stands where it stands, or is there at all
	Analysis bool     // it changes nothing: what it finds it says by Notef
	Required bool     // the pipeline cannot do without it: it changes the form, or all that follows relies on it
}

// Row is a pass over the state S of a stage.
type Row[S any] struct {
	Info
	Run func(ctx context.Context, s S) error
}

// Order says that one row stands before another, and why.
type Order struct{ Before, After, Because string }

// Table is the rows of one stage in the order in which they run.
type Table[S any] struct {
	Stage  string
	Rows   []Row[S]
	Orders []Order
	// Text prints the form as it stands after a row; the text parses back. It is
	// asked for dumps and for what a row changed.
	Text func(s S) string
	// Verify checks the contract of the form as it stands after a row; nil: none.
	Verify func(s S) error
	// Fixpoint runs the named rows of one group until none of them changes the
	// form. Needed if rows have a Group.
	Fixpoint func(ctx context.Context, s S, names []string, c *Control) error
}

// NewTable checks a table and returns it. A broken table is a broken program:
// it panics when the program starts.
func NewTable[S any](t Table[S]) *Table[S] {
	if err := Check(t.Infos(), t.Orders); err != nil {
		panic(fmt.Sprintf("pass: table of %s: %v", t.Stage, err))
	}
	return &t
}

// Infos lists the descriptions of the rows.
func (t *Table[S]) Infos() []Info {
	return lists.Make(len(t.Rows), func(i int) Info { return t.Rows[i].Info })
}

// Row finds a row by its name or key.
func (t *Table[S]) Row(name string) (*Row[S], bool) {
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Name == name || r.Key != "" && r.Key == name {
			return r, true
		}
	}
	return nil, false
}

// Check reports what is wrong with a list of rows: a name twice, a form that
// does not follow from the one before, a property that is needed before it is
// given, an order that the list does not keep. A rule that runs twice has two
// names, and its key goes with one of them.
func Check(rows []Info, orders []Order) error {
	at := make(map[string]int)
	given := make(map[string]bool)
	for i, r := range rows {
		for _, name := range []string{r.Name, r.Key} {
			if name == r.Name && !wellNamed(name) {
				return fmt.Errorf("row %d: the name %q, want words of a-z and 0-9 with hyphens", i, name)
			}
			if _, twice := at[name]; twice {
				return fmt.Errorf("row %d: the name %q is there twice", i, name)
			}
			if name != "" {
				at[name] = i
			}
		}
		if i > 0 && rows[i-1].To != r.From {
			return fmt.Errorf("%s takes form %s, the row before it gives %s", r.Name, r.From, rows[i-1].To)
		}
		for _, property := range r.Needs {
			if !given[property] {
				return fmt.Errorf("%s needs %q, which no row before it gives", r.Name, property)
			}
		}
		for _, property := range r.Gives {
			given[property] = true
		}
	}
	for _, o := range orders {
		for _, name := range []string{o.Before, o.After} {
			if _, ok := at[name]; !ok {
				return fmt.Errorf("order %s before %s: there is no row %q", o.Before, o.After, name)
			}
		}
		if o.Because == "" {
			return fmt.Errorf("order %s before %s has no reason", o.Before, o.After)
		}
		if at[o.Before] >= at[o.After] {
			return fmt.Errorf("%s comes after %s, but must come before it: %s", o.Before, o.After, o.Because)
		}
	}
	return nil
}

// wellNamed reports words with hyphens.
func wellNamed(name string) bool {
	for word := range strings.SplitSeq(name, "-") {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

// Names lists the names of rows.
func Names(rows []Info) []string {
	return lists.Map(rows, func(r Info) string { return r.Name })
}

// Find returns the row of a name or key.
func Find(rows []Info, name string) (Info, bool) {
	i := slices.IndexFunc(rows, func(r Info) bool { return r.Name == name || r.Key != "" && r.Key == name })
	if i < 0 {
		return Info{}, false
	}
	return rows[i], true
}
