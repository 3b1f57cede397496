package llvmc

import (
	"context"
	"regexp"
	"strconv"
	"strings"
)

// AssemblyLine is a line of machine code.
type AssemblyLine struct {
	Text string
	Line int // of the IR text of which it was made, from 1; 0: not known
}

// Assemble compiles one module to assembler text, with the line of the IR for each of its
// lines. The compiler must have been started with Options.Assembly, which numbers the
// instructions of the IR before the passes run and changes no code.
func (c *Compiler) Assemble(ctx context.Context, irText []byte) ([]AssemblyLine, error) {
	text, err := c.Compile(ctx, irText)
	if err != nil {
		return nil, err
	}
	return readAssembly(string(text), instructionLines(string(irText))), nil
}

// numberInstructions is the pass that gives the instructions of a module the numbers from 1
// as their lines.
const numberInstructions = "debugify"

// instructionLines are the lines of IR text, from 1, on which the instructions stand.
func instructionLines(irText string) (lines []int) {
	number := 0
	inside := false // a function
	for line := range strings.Lines(irText) {
		number++
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "define "):
			inside = true
		case strings.HasPrefix(line, "}"):
			inside = false
		case !inside || text == "" || text[0] == ';' || line[0] != '\t' && line[0] != ' ':
		default:
			lines = append(lines, number)
		}
	}
	return lines
}

// What assembler text says of the lines that follow: .loc FILE LINE COLUMN.
var location = regexp.MustCompile(`^\s*\.loc\s+\d+\s+(\d+)\b`)

// readAssembly keeps instructions and the labels of blocks.
func readAssembly(text string, irLines []int) (list []AssemblyLine) {
	of := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if strings.HasPrefix(line, "\t.section\t.debug_") { // what follows is no code
			break
		}
		if at := location.FindStringSubmatch(line); at != nil {
			n, _ := strconv.Atoi(at[1]) // of digits only
			of = 0
			if 0 < n && n <= len(irLines) {
				of = irLines[n-1]
			}
			continue
		}
		switch {
		case strings.HasPrefix(line, ".LBB"), line != "" && line[0] != '\t' && line[0] != '.' && strings.Contains(line, ":"):
			list = append(list, AssemblyLine{Text: line})
		case strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "\t.") && !strings.HasPrefix(line, "\t#"):
			list = append(list, AssemblyLine{line, of})
		}
	}
	return list
}
