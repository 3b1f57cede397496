package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	only := flag.String("only", "", "run the faults whose name or folder has this in it")
	again := flag.Bool("again", false, "run those that have a result, too")
	list := flag.Bool("list", false, "list the faults and their results, and run nothing")
	results := flag.String("results", "internal/mutants/results.txt", "where results are kept")
	write := flag.Bool("write", false, "write docs/mutants.md from the results, and run nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bad, err := run(ctx, *only, *results, *again, *list, *write)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if bad > 0 {
		fmt.Printf("%d faults survive without a reason, or cannot be planted\n", bad)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, path string, again, list, write bool) (bad int, err error) {
	root, err := moduleRoot()
	if err != nil {
		return 0, err
	}
	faults, err := parseFaults(faultsText)
	if err != nil {
		return 0, err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	done, err := readResults(path)
	if err != nil {
		return 0, err
	}
	if write {
		return 0, os.WriteFile(filepath.Join(root, "docs/mutants.md"), []byte(paper(faults, done)), 0o644)
	}
	commit, err := commitOf(root)
	if err != nil {
		return 0, err
	}
	for _, f := range faults {
		if !strings.Contains(f.name, only) && !strings.Contains(f.in, only) {
			continue
		}
		r, known := done[f.name]
		known = known && r.key == f.key()
		if !list && (!known || again || !fine(f, r)) {
			if r, err = try(ctx, root, f); err != nil {
				return bad, err
			}
			r.commit = commit
			if done, err = readResults(path); err != nil { // another run may have added some
				return bad, err
			}
			done[f.name] = r
			if err := writeResults(path, faults, done); err != nil {
				return bad, err
			}
			known = true
		}
		if !known {
			r = result{name: f.name, outcome: "not run"}
		}
		if known && !fine(f, r) {
			bad++
		}
		fmt.Printf("%-44s %-18s %s\n", f.name, r.outcome, r.by)
	}
	return bad, nil
}

// fine reports a fault that was noticed, or survives for a reason.
func fine(f *fault, r result) bool {
	return r.outcome == killed || r.outcome == survived && f.harmless != ""
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// commitOf names the commit that the tests run at.
func commitOf(root string) (string, error) {
	cmd := exec.Command("git", "rev-parse", "--short=9", "HEAD")
	cmd.Dir = root
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
