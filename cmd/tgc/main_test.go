package main

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	_ "tgc/internal/rarecollection"
	"tgc/runtime/devices"
	"tgc/search"
)

func TestMain(m *testing.M) {
	search.MaybeChild(openForChild)
	testscript.Main(m, map[string]func(){"tgc": main})
}

// The scripts run the command as users do. They use the built-in model and the
// interpreter, so that they need nothing; [cpu] is true where libLLVM is found.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("TGC_CACHE_DIR", env.WorkDir+"/.cache")
			env.Setenv("TGC_DB", env.WorkDir+"/.plans")
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "cpu":
			case "jetson":
				_, err := os.Stat("/dev/nvgpu/igpu0/ctrl")
				return err == nil, nil
			default:
				return false, errors.New("unknown condition " + name)
			}
			dev, _, err := devices.Open(t.Context(), "cpu", devices.Options{Threads: 1})
			if err != nil {
				return false, nil
			}
			return true, dev.Close()
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits,
			"size":  size,
		},
	})
}

// exits runs a command that must end with a status: exits 2 tgc frob. An error
// must be one short line without control characters.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
	lines := strings.Split(strings.TrimRight(ts.ReadFile("stderr"), "\n"), "\n")
	last := lines[len(lines)-1]
	if want != 0 && (last == "" || len(last) > 600 || strings.ContainsFunc(last, func(r rune) bool { return r < ' ' })) {
		ts.Fatalf("the last line on stderr is %q, want a short message", last)
	}
}

// size checks the bytes of a file: size 64 out.f32.
func size(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: size BYTES FILE")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := len(ts.ReadFile(args[1])); got != want {
		ts.Fatalf("%s has %d bytes, want %d", args[1], got, want)
	}
}

// Messages are one line, printable and bounded, whatever an error holds.
func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":             "plain",
		"two\nlines\tand\r": `two; lines and\u000d`,
		"bad \xff utf8":     `bad \xff utf8`,
		"\x1b[31mred":       `\u001b[31mred`,
		"héllo ✓":           "héllo ✓",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("oneLine(%q) is %q, want %q", in, got, want)
		}
	}
	if got := oneLine(strings.Repeat("\x00", 5000)); len(got) > 600 {
		t.Errorf("a message of %d bytes", len(got))
	}
}

// Every command explains itself with examples.
func TestHelp(t *testing.T) {
	var started bool
	root := newRoot(streams{}, &started)
	var names []string
	for _, cmd := range root.Commands() {
		names = append(names, cmd.Name())
		if cmd.Example == "" || cmd.Short == "" {
			t.Errorf("%s: help without example or description", cmd.Name())
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.Contains(line, "tgc "+cmd.Name()) {
				t.Errorf("%s: example %q does not run it", cmd.Name(), strings.TrimSpace(line))
			}
		}
	}
	want := []string{"bench", "cache", "chat", "compile", "convert", "devices", "hcq", "inspect", "man", "opt", "run", "synth", "tokenize", "tune", "version", "viz"}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("commands %v, want %v", names, want)
	}
}

// A misspelt flag is two letters at most from the one that was meant.
func TestDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{{"", ""}: 0, {"seed", "seed"}: 0, {"seed", "sed"}: 1, {"prompt", "promt"}: 1, {"seed", "esed"}: 2, {"", "abc"}: 3, {"kitten", "sitting"}: 3} {
		if got := distance(pair[0], pair[1]); got != want {
			t.Errorf("%q: %d, want %d", pair, got, want)
		}
	}
}

func TestWrapped(t *testing.T) {
	if got, want := wrapped("one two  three extraordinarily four", 9), []string{"one two", "three", "extraordinarily", "four"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
