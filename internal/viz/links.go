package viz

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/render"
)

// Code is source or machine code.
type Code struct {
	Text int   `json:"text"` // -1: none
	Of   []int `json:"of"`   // for each line, that of the kernel's Program of which it was made; -1: not known
}

func noCode() Code { return Code{none, []int{}} }

// code adds source and machine code of the kernels that have them.
func (b *builder) code(ctx context.Context) error {
	machine := b.options.Machine
	if machine == nil {
		machine = b.renderer.Machine
	}
	for i, k := range b.sources {
		if b.Kernels[i].In != none {
			continue
		}
		made := b.linesOf(b.Kernels[i].Program)
		lines, err := b.renderer.Lines(k.Program)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		b.Kernels[i].Source = b.codeOf(lines, made)
		if machine == nil {
			continue
		}
		if lines, err = machine(ctx, k.Program); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		if len(lines) > 0 {
			b.Kernels[i].Machine = b.codeOf(lines, made)
		}
	}
	return nil
}

// printedLine is a line of a program: where, and for which node of the graph.
type printedLine struct{ at, origin int }

// linesOf finds the lines of a program's text by their instructions.
func (b *builder) linesOf(text int) map[string][]printedLine {
	found := make(map[string][]printedLine)
	for i, id := range b.texts.of[text] {
		line := b.texts.lines[id]
		instruction := strings.TrimSuffix(strings.TrimSpace(line.Text), " {")
		found[instruction] = append(found[instruction], printedLine{i, line.Origin})
	}
	return found
}

// withOrigins is a program's text in which an instruction without an origin has that of its
// operands: the last in the graph. Those that are not in of, if there is such a list, are as
// none: what is equal in two kernels is one node, made for the first.
func withOrigins(text string, of []int) string {
	var out strings.Builder
	origins := make(map[string]int) // by result
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		printed, origin := cutOrigin(line)
		if of != nil && !slices.Contains(of, origin) {
			origin = 0
		}
		result, operands, defines := strings.Cut(printed, " = ")
		if !defines {
			operands = printed
		}
		known := origin != 0
		for _, word := range strings.Fields(operands) {
			if !known {
				origin = max(origin, origins[word])
			}
		}
		if defines {
			name, _, _ := strings.Cut(strings.TrimSpace(result), ":")
			origins[name] = origin
		}
		out.WriteString(printed)
		if origin != 0 {
			out.WriteString(ir.OriginMark + strconv.Itoa(origin))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// cutOrigin takes the comment with the origin off a line that was printed.
func cutOrigin(printed string) (text string, origin int) {
	if i := strings.LastIndex(printed, ir.OriginMark); i >= 0 {
		if n, err := strconv.Atoi(printed[i+len(ir.OriginMark):]); err == nil && n > 0 {
			return printed[:i], n
		}
	}
	return printed, 0
}

// codeOf is code with its links. Of equal instructions, each is taken in turn.
func (b *builder) codeOf(lines []render.Line, made map[string][]printedLine) Code {
	next := make(map[string]int)
	before := ""
	c := Code{Of: []int{}}
	var ids []int32
	for _, l := range lines {
		text := strings.TrimRight(l.Text, " \t\r\n")
		of := printedLine{at: none}
		if places := made[l.Of]; l.Of != "" && len(places) > 0 {
			if l.Of != before {
				next[l.Of]++
			}
			of = places[(max(next[l.Of], 1)-1)%len(places)]
		}
		before = l.Of
		c.Of, ids = append(c.Of, of.at), append(ids, b.texts.lineOf(text, of.origin))
	}
	c.Text = b.texts.addLines(ids, none)
	return c
}

func splitLines(text string) []string {
	return lists.Filter(strings.Split(text, "\n"), func(line string) bool { return line != "" })
}
