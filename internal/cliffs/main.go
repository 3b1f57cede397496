package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"

	"tgc/internal/cudatools"
)

// options are the flags.
type options struct {
	only  string
	n     int
	seed  uint64
	ptxas bool
	brief bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "subjects that match this regular expression: SHAPE/TYPE/MODE/STEP/TARGET, of which STEP is b1 or p128, say")
	flag.IntVar(&o.n, "n", 0, "a sample of so many of them; 0: all")
	flag.Uint64Var(&o.seed, "seed", 1, "of the sample")
	flag.BoolVar(&o.ptxas, "ptxas", false, "assemble the kernels, and check spills: slow")
	flag.BoolVar(&o.brief, "brief", false, "print the table alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cliffs:", err)
		os.Exit(1)
	}
}

// run checks subjects and prints findings, then a table of them.
func (o *options) run(ctx context.Context) error {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(slices.Concat(subjects(), prompts()), func(s subject) bool { return !pattern.MatchString(s.String()) })
	if o.n > 0 {
		list = sample(list, o.n, o.seed)
	}
	c := &checker{}
	defer c.close()
	if o.ptxas {
		tools := cudatools.FromEnvironment()
		c.tools = &tools
	}
	table := newTable()
	for _, s := range list {
		found, err := c.check(ctx, s)
		if err != nil {
			return err
		}
		table.add(s, found)
		for _, f := range found {
			if !o.brief {
				fmt.Printf("%s %s %s: %s\n", f.check, f.subject, f.weights, f.detail)
			}
		}
	}
	_, err = os.Stdout.WriteString(table.String())
	return err
}

// table counts findings by what they have in common.
type table struct {
	subjects int
	rows     map[string]*row
}

// row is a group of findings; the worst is its example.
type row struct {
	name  string
	count int
	worst finding
}

func newTable() *table { return &table{rows: make(map[string]*row)} }

func (t *table) add(_ subject, found []finding) {
	t.subjects++
	for _, f := range found {
		name := fmt.Sprintf("%-8s %-12s %-6s %-4s %s", f.check, f.heuristic, f.subject.mode, f.subject.step(), f.subject.target)
		r := t.rows[name]
		if r == nil {
			r = &row{name: name}
			t.rows[name] = r
		}
		if r.count++; f.value >= r.worst.value {
			r.worst = f
		}
	}
}

// String prints the groups, the largest first, each with the command of its worst.
func (t *table) String() string {
	var list []*row
	for _, r := range t.rows {
		list = append(list, r)
	}
	slices.SortFunc(list, func(x, y *row) int {
		if x.count != y.count {
			return y.count - x.count
		}
		return strings.Compare(x.name, y.name)
	})
	var text strings.Builder
	fmt.Fprintf(&text, "\n%d compilations\n", t.subjects)
	for _, r := range list {
		fmt.Fprintf(&text, "%5d %s\n      %s: %s\n      %s\n", r.count, r.name, r.worst.weights, r.worst.detail, r.worst.subject.command())
	}
	return text.String()
}
