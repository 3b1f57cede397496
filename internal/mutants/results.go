package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// readResults reads results.txt: name, key, outcome, commit and what noticed, between
// tabs.
func readResults(path string) (map[string]result, error) {
	done := make(map[string]result)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		part := strings.Split(line, "\t")
		if len(part) != 5 {
			return nil, fmt.Errorf("results.txt: %q has not five parts", line)
		}
		done[part[0]] = result{name: part[0], key: part[1], outcome: part[2], commit: part[3], by: part[4]}
	}
	return done, nil
}

// writeResults writes them in the order of the faults.
func writeResults(path string, faults []*fault, done map[string]result) error {
	var b strings.Builder
	for _, f := range faults {
		if r, ok := done[f.name]; ok {
			fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\n", r.name, r.key, r.outcome, r.commit, strings.ReplaceAll(orDash(r.by), "\t", " "))
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// paper is docs/mutants.md.
func paper(faults []*fault, done map[string]result) string {
	var b strings.Builder
	counts := make(map[string]int)
	for _, f := range faults {
		switch r := done[f.name]; {
		case r.key != f.key():
		case r.outcome == survived && f.harmless != "":
			counts["harmless"]++
		default:
			counts[r.outcome]++
		}
	}
	fmt.Fprintf(&b, "# Faults that tests notice\n\n")
	fmt.Fprintf(&b, "Small faults planted in the compiler one at a time, and the first test that fails of each. Made by\n")
	fmt.Fprintf(&b, "`go run ./internal/mutants`, which plants them again; the last column is the commit at which it ran.\n\n")
	fmt.Fprintf(&b, "%d faults: %d noticed, %d survive for the reason given, %d without one; the others were not run.\n\n", len(faults), counts[killed], counts["harmless"], counts[survived])
	fmt.Fprintf(&b, "| fault | in | noticed by | at |\n|---|---|---|---|\n")
	for _, f := range faults {
		r, by := done[f.name], ""
		switch {
		case r.key != f.key():
			by = "not run"
		case r.outcome == killed:
			by = "`" + r.by + "`"
		case r.outcome == survived && f.harmless != "":
			by = "survives: " + f.harmless
		default:
			by = r.outcome
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.ReplaceAll(f.name, "-", " "), f.in, by, r.commit)
	}
	return b.String()
}

// orDash keeps the last part of a row from being empty.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
