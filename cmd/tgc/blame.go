package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tgc/engine"
	"tgc/pass"
	"tgc/render"
)

// blame says which passes made the lines that match a pattern: lines of the forms that
// passes print, and lines of source, by the instructions that they were made of.
type blame struct {
	pattern *regexp.Regexp
	history pass.History
	source  []sourceLine
	wanted  map[string]map[string]bool // kernel -> keys of instructions
	parts   map[string]string          // kernel of a merged launch -> the merged one
}

// sourceLine is a line of a kernel's source and the instruction that it was made of.
type sourceLine struct {
	Kernel      string `json:"kernel"`
	Line        string `json:"line"`
	Instruction string `json:"instruction"`
}

// blameChange is what --json prints of a pass.
type blameChange struct {
	Pass   string   `json:"pass"`
	From   string   `json:"from"`
	To     string   `json:"to"`
	Kernel string   `json:"kernel,omitempty"`
	What   string   `json:"what"`
	Before int      `json:"before"`
	After  int      `json:"after"`
	Gone   []string `json:"gone,omitempty"`
	Made   []string `json:"made,omitempty"`
}

func newBlame(pattern string, control *pass.Control) (*blame, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, usagef("--blame: %v", err)
	}
	b := &blame{pattern: re, wanted: make(map[string]map[string]bool), parts: make(map[string]string)}
	b.history.Control(control)
	return b, nil
}

// print prints what the passes did to the lines.
func (b *blame) print(cmd *cobra.Command, c *engine.Compiled, renderer *render.Renderer, asJSON bool) error {
	if err := b.readSource(c, renderer); err != nil {
		return err
	}
	changes := b.history.Of(b.matches)
	if len(changes)+len(b.source) == 0 {
		return fmt.Errorf("--blame %q: no form and no source has such a line", b.pattern)
	}
	if asJSON {
		list := []blameChange{}
		for _, h := range changes {
			list = append(list, blameChange{h.Row.Name, string(h.Row.From), string(h.Row.To), h.Subject, h.What(), h.Before, h.After, h.Gone, h.Made})
		}
		return printJSON(cmd, struct {
			Source  []sourceLine  `json:"source"`
			Changes []blameChange `json:"changes"`
		}{b.source, list})
	}
	if err := b.printSource(cmd); err != nil {
		return err
	}
	return printTable(cmd.OutOrStdout(), changeRows(changes))
}

// readSource finds the instructions of which matching lines of source were made.
func (b *blame) readSource(c *engine.Compiled, renderer *render.Renderer) error {
	for _, k := range c.Kernels {
		lines, err := renderer.Lines(k.Program)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		for _, part := range k.Parts {
			b.parts[part.Name] = k.Name
		}
		keys := make(map[string]bool)
		for _, line := range lines {
			if text := strings.TrimSpace(line.Text); line.Of != "" && b.pattern.MatchString(text) {
				b.source = append(b.source, sourceLine{k.Name, text, line.Of})
				keys[instructionKey(line.Of, len(k.Parts) > 0)] = true
			}
		}
		b.wanted[k.Name] = keys
	}
	return nil
}

var (
	resultName = regexp.MustCompile(`^%\d+:`)
	anyName    = regexp.MustCompile(`%\d+`)
)

// instructionKey is what stays of an instruction while passes move it: the name of its
// result, or all of it. Merging launches gives new names, so that of their instructions
// it is all but the names.
func instructionKey(line string, merged bool) string {
	line = strings.TrimSuffix(line, " {")
	if merged {
		return anyName.ReplaceAllString(line, "%")
	}
	if name := resultName.FindString(line); name != "" {
		return name
	}
	return line
}

// matches reports a line of a form that is asked about.
func (b *blame) matches(row pass.Info, subject, line string) bool {
	if b.pattern.MatchString(line) {
		return true
	}
	if row.To != pass.Program || subject == "" {
		return false
	}
	if merged, ok := b.parts[subject]; ok {
		return b.wanted[merged][instructionKey(line, true)]
	}
	return b.wanted[subject][instructionKey(line, false)]
}

// printSource prints the kinds of matching lines of source, each with one example.
func (b *blame) printSource(cmd *cobra.Command) error {
	if len(b.source) == 0 {
		return nil
	}
	rows := [][]string{{"LINES", "KERNEL", "SOURCE", "MADE OF"}}
	counts := make(map[string]int)
	var first []sourceLine
	for _, s := range b.source {
		kind := s.Kernel + " " + instructionKey(s.Instruction, true)
		if counts[kind]++; counts[kind] == 1 {
			first = append(first, s)
		}
	}
	for _, s := range first {
		n := counts[s.Kernel+" "+instructionKey(s.Instruction, true)]
		rows = append(rows, []string{fmt.Sprint(n), s.Kernel, shorten(s.Line), shorten(s.Instruction)})
	}
	if err := printTable(cmd.OutOrStdout(), rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout())
	return err
}

// changeRows is a row for each pass and what it did, over all kernels.
func changeRows(changes []pass.Change) [][]string {
	type key struct{ pass, what string }
	var order []key
	groups := make(map[key][]pass.Change)
	for _, h := range changes {
		k := key{h.Row.Name, h.What()}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], h)
	}
	at := make(map[string]int)
	for i, row := range engine.Passes() {
		at[row.Name] = i
	}
	slices.SortStableFunc(order, func(x, y key) int { return at[x.pass] - at[y.pass] })
	rows := [][]string{{"PASS", "FORM", "WHAT", "BEFORE", "AFTER", "KERNELS", "SUCH AS"}}
	for _, k := range order {
		before, after, kernels := 0, 0, make(map[string]bool)
		for _, h := range groups[k] {
			before, after = before+h.Before, after+h.After
			kernels[h.Subject] = true
		}
		one := groups[k][0]
		line := slices.Concat(one.Made, one.Gone)[0]
		rows = append(rows, []string{k.pass, string(one.Row.To), k.what, fmt.Sprint(before), fmt.Sprint(after), fmt.Sprint(len(kernels)), shorten(line)})
	}
	return rows
}

// shorten cuts a line for a table.
func shorten(line string) string {
	const most = 80
	if len(line) > most {
		return strings.ToValidUTF8(line[:most-2], "") + ".."
	}
	return line
}
