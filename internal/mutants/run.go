package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// What came of a fault.
const (
	killed    = "killed"
	survived  = "survived"
	noCompile = "does not compile"
	noText    = "does not apply"
)

// result is a row of results.txt.
type result struct {
	name, key, outcome string
	by                 string // test, or package where it has no name
	commit             string
}

// limit is the longest that one test run may take: a fault that makes a loop endless
// is noticed, too.
const limit = 4 * time.Minute

// try plants a fault and runs its tests until one fails.
func try(ctx context.Context, root string, f *fault) (result, error) {
	r := result{name: f.name, key: f.key(), outcome: survived}
	path, changed, err := f.plant(root)
	if err != nil {
		r.outcome, r.by = noText, err.Error()
		return r, nil
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	source, overlay := filepath.Join(dir, filepath.Base(path)), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: source}})
	if err != nil {
		return r, err
	}
	if err := errors.Join(os.WriteFile(source, []byte(changed), 0o644), os.WriteFile(overlay, list, 0o644)); err != nil {
		return r, err
	}
	for _, args := range f.tests {
		if r.outcome, r.by, err = test(ctx, root, overlay, args); err != nil || r.outcome != survived {
			return r, err
		}
	}
	return r, nil
}

// test runs go test over a changed file, and reports what became of the fault.
func test(ctx context.Context, root, overlay string, args []string) (outcome, by string, err error) {
	all := append([]string{"test", "-overlay", overlay, "-failfast", "-timeout", limit.String()}, args...)
	cmd := exec.CommandContext(ctx, "go", all...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", "", context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return "", "", err
	}
	outcome, by = judge(string(out), err != nil)
	return outcome, by, nil
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	timedOut   = regexp.MustCompile(`(?m)^\s+(Test\S+) \(\d+`)
	failedPkg  = regexp.MustCompile(`(?m)^FAIL\s+(\S+)`)
)

// judge reads the output of go test.
func judge(out string, failed bool) (outcome, by string) {
	switch {
	case !failed:
		return survived, ""
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"), strings.Contains(out, "no required module"):
		lines := strings.SplitN(out, "\n", 3)
		return noCompile, lines[min(1, len(lines)-1)]
	}
	by = "a fault without a name"
	if m := failedPkg.FindStringSubmatch(out); m != nil {
		by = m[1]
	}
	if strings.Contains(out, "panic: test timed out") {
		if m := timedOut.FindStringSubmatch(out); m != nil {
			by = m[1]
		}
		return killed, by + " (endless)"
	}
	if tests := failedTest.FindAllStringSubmatch(out, -1); len(tests) > 0 {
		by = tests[0][1]
	}
	return killed, by
}
