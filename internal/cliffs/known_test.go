package main

import (
	"fmt"
	"slices"
	"strings"

	"tgc/internal/lists"
)

// Known findings in text: a line "CHECK SHAPE" and under it, indented, a line for each
// finding: TYPE/MODE/STEP/TARGET and the matrices that the kernel reads.

// key is what a finding has in common with its line: no number that every change moves.
func (f *finding) key() string {
	return fmt.Sprintf("%s %s\n\t%s/%s/%s/%s %s", f.check, f.subject.name, f.subject.quant, f.subject.mode, f.subject.step(), f.subject.target, f.weights)
}

// formatKnown prints findings.
func formatKnown(list []finding) string {
	keys := lists.Map(list, func(f finding) string { return f.key() })
	slices.Sort(keys)
	var text strings.Builder
	last := ""
	for _, k := range slices.Compact(keys) {
		group, line, _ := strings.Cut(k, "\n")
		if group != last {
			fmt.Fprintln(&text, group)
		}
		fmt.Fprintln(&text, line)
		last = group
	}
	return text.String()
}

// parseKnown reads the keys of what formatKnown printed.
func parseKnown(text string) (keys []string, err error) {
	group := ""
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case line == "":
		case !strings.HasPrefix(line, "\t"):
			group = line
		case group == "":
			return nil, fmt.Errorf("line %d: a finding without a group", n+1)
		default:
			keys = append(keys, group+"\n"+line)
		}
	}
	return keys, nil
}
