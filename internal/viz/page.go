package viz

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/ir/program"
	"tgc/pass"
	"tgc/render"
	"tgc/rewrite"
	"tgc/schedule"
)

// Page is the data of a page. Numbers that name something are places in its lists; -1 is
// nothing.
type Page struct {
	Title   string      `json:"title"`
	About   [][2]string `json:"about"` // name and value: target, step ..
	Lines   []Line      `json:"lines"`
	Texts   []Text      `json:"texts"`
	Passes  []Pass      `json:"passes"` // that changed something
	Rules   []Rule      `json:"rules"`  // that fired
	Steps   []Step      `json:"steps"`  // in the order in which they ran
	Kernels []Kernel    `json:"kernels"`
	Graph   int         `json:"graph"` // the first form
	As      map[int]int `json:"as"`    // nodes of the graph that have another's place in forms of kernels
	// Decisions are those of the schedule, for and against.
	Decisions []Decision `json:"decisions"`

	texts *texts
}

// Pass is a row of the compiler's table of passes.
type Pass struct {
	Name  string `json:"name"`
	Key   string `json:"key"`
	From  string `json:"from"`
	To    string `json:"to"`
	Group string `json:"group"`
	Doc   string `json:"doc"`
	Why   string `json:"why"`
}

// Rule is a rule of package rewrite in its own words.
type Rule struct {
	Name string   `json:"name"`
	Doc  string   `json:"doc"`
	From string   `json:"from"` // empty: the rule is Go code
	To   string   `json:"to"`
	When []string `json:"when"`
}

// Step is one change of a form by a pass.
type Step struct {
	Pass     int       `json:"pass"`
	Kernel   int       `json:"kernel"` // -1: the form holds all kernels
	Before   int       `json:"before"` // text; -1: one of another form
	After    int       `json:"after"`  // text
	Rewrites []Rewrite `json:"rewrites"`
}

// Rewrite is what a rule did in a step, and how often.
type Rewrite struct {
	Rule   int    `json:"rule"`
	Before string `json:"before"`
	After  string `json:"after"`
	Times  int    `json:"times"`
}

// Decision is one of the schedule's records.
type Decision struct {
	Pass    string `json:"pass"`
	Value   string `json:"value"`
	Applied bool   `json:"applied"`
	Reason  string `json:"reason"`
	Numbers string `json:"numbers"`
}

// Options say what Build needs beside the compilation.
type Options struct {
	Title  string
	About  [][2]string
	Kernel string // the page shows this kernel alone; empty: all
	// Machine lists machine code; nil: the renderer's, if it has it.
	Machine func(ctx context.Context, p *program.Program) ([]render.Line, error)
	Times   map[string]Time // by kernel; may be nil
}

// Build makes a page of what w has seen of a compilation.
func Build(ctx context.Context, w *Watch, c *engine.Compiled, m *engine.Manifest, r *render.Renderer, opt Options) (*Page, error) {
	p := &Page{Title: opt.Title, About: append([][2]string{}, opt.About...), Graph: none, texts: newTexts(),
		Passes: []Pass{}, Rules: []Rule{}, Steps: []Step{}, Decisions: []Decision{}}
	b := &builder{Page: p, watch: w, compiled: c, manifest: m, renderer: r, options: opt,
		numbers: make(map[string]int), taken: make(map[int]int), passes: make(map[string]int), rules: make(map[string]int)}
	if err := b.kernels(ctx); err != nil {
		return nil, err
	}
	b.steps()
	b.decisions()
	if err := b.code(ctx); err != nil {
		return nil, err
	}
	p.Lines, p.Texts = p.texts.lines, p.texts.list
	return p, nil
}

type builder struct {
	*Page
	watch    *Watch
	compiled *engine.Compiled
	manifest *engine.Manifest
	renderer *render.Renderer
	options  Options
	numbers  map[string]int // of kernels, by name
	taken    map[int]int    // texts that were watched
	passes   map[string]int
	rules    map[string]int
	sources  []*engine.Kernel // by number
}

// wants reports a kernel that the page shows.
func (b *builder) wants(k *engine.Kernel) bool {
	return b.options.Kernel == "" || k.Name == b.options.Kernel ||
		slices.ContainsFunc(k.Parts, func(part *engine.Kernel) bool { return part.Name == b.options.Kernel })
}

// steps lists what passes changed.
func (b *builder) steps() {
	b.Graph = b.text(b.watch.graph)
	for i := range b.watch.changes {
		c := &b.watch.changes[i]
		kernel := none
		if c.subject != "" {
			number, shown := b.numbers[c.subject]
			if !shown {
				continue
			}
			kernel = number
		}
		b.Steps = append(b.Steps, Step{Pass: b.pass(c.row), Kernel: kernel, Before: b.text(c.before), After: b.text(c.after), Rewrites: b.rewrites(c.rewrites)})
	}
	archive := b.watch.archive[formOf{form: string(pass.Kernel)}]
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if number, ok := b.numbers[f.Name]; ok {
			b.Kernels[number].Form = b.texts.add(string(f.Data), none)
		}
	}
}

// text takes over a text that was watched, and those of which it is an edit.
func (b *builder) text(watched int) int {
	if watched == none {
		return none
	}
	if at, ok := b.taken[watched]; ok {
		return at
	}
	from := b.watch.texts
	base := b.text(from.list[watched].Base)
	lines := lists.Map(from.of[watched], func(id int32) int32 { return b.texts.lineOf(from.lines[id].Text, from.lines[id].Origin) })
	b.taken[watched] = b.texts.addLines(lines, base)
	return b.taken[watched]
}

func (b *builder) pass(row pass.Info) int {
	if at, ok := b.passes[row.Name]; ok {
		return at
	}
	b.Passes = append(b.Passes, Pass{row.Name, row.Key, string(row.From), string(row.To), row.Group, row.Doc, row.Why})
	b.passes[row.Name] = len(b.Passes) - 1
	return b.passes[row.Name]
}

// rewrites counts equal firings once.
func (b *builder) rewrites(fired []pass.Rewrite) []Rewrite {
	list := []Rewrite{}
	at := make(map[pass.Rewrite]int)
	for _, r := range fired {
		if i, ok := at[r]; ok {
			list[i].Times++
			continue
		}
		at[r] = len(list)
		list = append(list, Rewrite{b.rule(r.Rule), strings.TrimSpace(r.Before), strings.TrimSpace(r.After), 1})
	}
	return list
}

// rule finds a rule by its full name.
func (b *builder) rule(name string) int {
	if at, ok := b.rules[name]; ok {
		return at
	}
	rule := Rule{Name: name, When: []string{}}
	for _, set := range rewrite.Sets() {
		for _, r := range set.Rules {
			if r.String() != name {
				continue
			}
			rule.Doc = r.Doc
			if r.From != nil {
				rule.From, rule.To = r.From.String(), r.To.String()
			}
			for _, g := range r.When {
				rule.When = append(rule.When, g.Text)
			}
		}
	}
	b.Rules = append(b.Rules, rule)
	b.rules[name] = len(b.Rules) - 1
	return b.rules[name]
}

// decisions lists the schedule's records.
func (b *builder) decisions() {
	for _, r := range b.compiled.Schedule.Records {
		numbers := lists.Map(r.Numbers, func(n schedule.Number) string { return fmt.Sprintf("%s=%d", n.Name, n.Value) })
		b.Decisions = append(b.Decisions, Decision{r.Pass, r.Value, r.Applied, r.Reason, strings.Join(numbers, " ")})
	}
}
