package render

import (
	"context"
	"errors"
	"strings"

	"tgc/internal/cudatools"
	"tgc/internal/lists"
)

// Line is a line of source or machine code.
type Line struct {
	Text string
	Of   string // the instruction of the program of which it was made, as program.PrintInstr prints it; empty: none
}

// commentMarks begin the comments of annotated source.
var commentMarks = []string{"// ", "; "}

// splitAnnotated reads annotated source: its lines, of which a comment is one, and what
// each is made of.
func splitAnnotated(text string) []Line {
	var lines []Line
	instruction := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "}") { // the end of the function
			instruction = ""
		}
		if comment, ok := cutComment(line); ok {
			instruction = comment
			lines = append(lines, Line{Text: line})
			continue
		}
		lines = append(lines, Line{line, instruction})
	}
	return lines
}

// IsComment reports a line that is a comment and nothing else.
func (l Line) IsComment() bool {
	_, ok := cutComment(l.Text)
	return ok
}

func cutComment(line string) (string, bool) {
	for _, mark := range commentMarks {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
			return text, true
		}
	}
	return "", false
}

// machineLines assembles annotated PTX and lists its machine code: none where the installed
// tools do not know the architecture.
func machineLines(ctx context.Context, tools cudatools.Tools, arch, source string) ([]Line, error) {
	code, err := tools.Lines(ctx, source, arch)
	if errors.Is(err, cudatools.ErrArchitecture) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	from := splitAnnotated(source)
	return lists.Map(code, func(m cudatools.MachineLine) Line {
		line := Line{Text: m.Text}
		if 0 < m.Line && m.Line <= len(from) {
			line.Of = from[m.Line-1].Of
		}
		return line
	}), nil
}
