package cudatools

import (
	"context"
	"regexp"
	"strconv"
	"strings"
)

// MachineLine is a line of machine code.
type MachineLine struct {
	Text string
	Line int // of the PTX of which it was made, from 1; 0: not known
}

// A mark between the lines of machine code: those after it were made of a line of PTX.
var lineMark = regexp.MustCompile(`^\s*//## File "\.nv_debug_ptx_txt[^"]*", line (\d+)`)

// Lines assembles PTX and lists its machine code, each line with that of the PTX.
func (t Tools) Lines(ctx context.Context, ptx, arch string) ([]MachineLine, error) {
	made, err := t.assemble(ctx, ptx, arch, "-lineinfo")
	if err != nil {
		return nil, err
	}
	text, err := t.list(ctx, made.Cubin, "--print-line-info-ptx")
	if err != nil {
		return nil, err
	}
	return readLines(text), nil
}

// readLines keeps the instructions and labels of a listing. What follows them (registers,
// relocations) is no code.
func readLines(text string) (list []MachineLine) {
	of := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		if mark := lineMark.FindStringSubmatch(line); mark != nil {
			of, _ = strconv.Atoi(mark[1]) // of digits only
			continue
		}
		switch {
		case instruction.MatchString(line):
			list = append(list, MachineLine{strings.Join(strings.Fields(line), " "), of})
		case strings.HasPrefix(line, ".L") || strings.HasSuffix(line, ":") && !strings.HasPrefix(line, ".text"):
			list = append(list, MachineLine{Text: line})
		}
	}
	return list
}
