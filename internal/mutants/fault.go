package main

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"tgc/internal/lists"
)

//go:embed faults.txt
var faultsText string

// fault is a row of faults.txt.
type fault struct {
	name     string
	in       string // folder below the module's root, or a file
	old, new []string
	tests    [][]string // arguments of go test, one list a run
	harmless string     // why it may survive; "" if it may not
}

// parseFaults reads faults.txt.
func parseFaults(text string) ([]*fault, error) {
	var faults []*fault
	var f *fault
	names := make(map[string]bool)
	for i, line := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		if f == nil && word != "fault" && line != "" && word != "#" {
			return nil, fmt.Errorf("faults.txt:%d: %q before the first fault", i+1, line)
		}
		switch word {
		case "", "#":
		case "fault":
			if names[rest] || rest == "" {
				return nil, fmt.Errorf("faults.txt:%d: name %q: empty, or there twice", i+1, rest)
			}
			names[rest] = true
			f = &fault{name: rest}
			faults = append(faults, f)
		case "in":
			f.in = rest
		case "-":
			f.old = append(f.old, rest)
		case "+":
			f.new = append(f.new, rest)
		case "test":
			f.tests = append(f.tests, strings.Fields(rest))
		case "harmless":
			f.harmless = strings.TrimSpace(f.harmless + " " + rest)
		default:
			return nil, fmt.Errorf("faults.txt:%d: %q is no field", i+1, word)
		}
	}
	for _, f := range faults {
		if f.in == "" || len(f.old) == 0 || len(f.new) == 0 || len(f.tests) == 0 {
			return nil, fmt.Errorf("fault %s lacks one of: in, -, +, test", f.name)
		}
	}
	return faults, nil
}

// key changes with what is planted, not with the tests or the reason.
func (f *fault) key() string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%q %q", f.old, f.new)
	return fmt.Sprintf("%08x", h.Sum32())
}

// plant finds the one file that has the text, and returns its path and its contents
// with the fault.
func (f *fault) plant(root string) (path, changed string, err error) {
	lines := lists.Map(f.old, func(line string) string { return regexp.QuoteMeta(strings.TrimLeft(line, " \t")) })
	text, err := regexp.Compile(strings.Join(lines, "\n[ \t]*"))
	if err != nil {
		return "", "", err
	}
	found := 0
	err = filepath.WalkDir(filepath.Join(root, f.in), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return err
		}
		source, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if at := text.FindAllIndex(source, -1); len(at) > 0 {
			found += len(at)
			path = p
			changed = string(source[:at[0][0]]) + strings.Join(f.new, "\n") + string(source[at[0][1]:])
		}
		return nil
	})
	if err == nil && found != 1 {
		err = fmt.Errorf("the text is %d times in %s, want once", found, f.in)
	}
	if err != nil {
		return "", "", fmt.Errorf("fault %s: %w", f.name, err)
	}
	return path, changed, nil
}
