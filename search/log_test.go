package search

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/search/database"
)

// tuneLogged tunes two kernels and appends to a log.
func tuneLogged(t *testing.T, path string) {
	t.Helper()
	log, err := OpenLog(path, "interp")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	tuneWith(t, twoKernels(t), nil, lengthOf, func(o *TuneOptions) { o.Log = log })
}

func readLogFile(t *testing.T, path string) ([]byte, []*LoggedKernel) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := ReadLog(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return text, list
}

// A log has each kernel once with its text, a line for each candidate and one for each result; a
// second run appends, after what a killed one left unfinished.
func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tune.jsonl")
	tuneLogged(t, path)
	text, first := readLogFile(t, path)
	if len(first) != 2 {
		t.Fatalf("%d kernels, want 2", len(first))
	}
	desc := twoKernels(t).Compiled.Target
	for _, k := range first {
		ast, err := ir.Parse(ir.NewArena(), k.Text)
		if err != nil || database.KeyOf(ast, desc) != k.Key || k.Device != "interp" || k.Target != desc.Name {
			t.Errorf("%s: %v, key %s, device %s, target %s", k.Kernel, err, k.Key, k.Device, k.Target)
		}
		c := k.Candidates[0]
		if len(k.Candidates) < 10 || c.Plan != k.Heuristic || c.Status != Measured || c.Time == 0 || c.Share <= 0 || c.Kernel != k.Kernel {
			t.Errorf("%s: %d candidates, the first %+v", k.Kernel, len(k.Candidates), c)
		}
		if len(k.Results) != 1 || k.Results[0].PlanAfter != "" || k.Results[0].PlanBefore != k.Heuristic || k.Results[0].Note == "" {
			t.Errorf("%s: results %+v", k.Kernel, k.Results)
		}
	}
	cut := append(text, `{"record":"candidate","key":"`...)
	if err := os.WriteFile(path, cut, 0o644); err != nil {
		t.Fatal(err)
	}
	tuneLogged(t, path)
	text, second := readLogFile(t, path)
	if n := strings.Count(string(text), `"text":`); n != 2 || len(second) != 2 {
		t.Errorf("%d texts of %d kernels, want 2", n, len(second))
	}
	for i, k := range second {
		if len(k.Candidates) != 2*len(first[i].Candidates) || len(k.Results) != 2 {
			t.Errorf("%s: %d candidates and %d results, want %d and 2", k.Kernel, len(k.Candidates), len(k.Results), 2*len(first[i].Candidates))
		}
	}
}

// What is no log is refused and stays as it is; so does a log that another run has open.
func TestLogRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"not finished":      "some words",
		"words":             "some words\n",
		"pairs":             `{"shape":"tiny","kernel":"k","plan":"","time_us":1}` + "\n",
		"no kernel before":  `{"record":"candidate","key":"00"}` + "\n",
		"record of nothing": `{"record":"kernel","key":"00"}` + "\n" + `{"record":"other","key":"00"}` + "\n",
		"wrong type":        `{"record":"kernel","key":"00"}` + "\n" + `{"record":"candidate","key":"00","time_us":"1"}` + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLog(path, "interp"); !errors.Is(err, ErrLog) {
			t.Errorf("%s: %v, want an error that it is no log", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v: the file has changed", name, got, err)
		}
	}
	path := filepath.Join(dir, "new")
	log, err := OpenLog(path, "interp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(path, "interp"); err == nil {
		t.Error("two have a log open")
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if log, err = OpenLog(path, "interp"); err != nil {
		t.Error(err)
	}
	log.Close()
}

// A log that cannot be written ends the tune.
func TestLogFails(t *testing.T) {
	log, err := OpenLog(filepath.Join(t.TempDir(), "log"), "interp")
	if err != nil {
		t.Fatal(err)
	}
	log.Close() // as a full disk
	tester := func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return allAlike{}, nil }
	if _, err := Tune(t.Context(), twoKernels(t), TuneOptions{Search: DefaultOptions(), Budget: 1e10, Log: log, Testers: tester}); !errors.Is(err, errLogging) {
		t.Errorf("%v, want an error of the log", err)
	}
}
