package engine_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"tgc/engine"
	"tgc/internal/testkit"
	"tgc/ir/program"
	"tgc/pass"
	"tgc/target"
)

// Every pass from a plan to a finished program, run on text one after the other,
// makes the programs that a compilation makes.
func TestTextPassesMakeTheProgramsOfACompilation(t *testing.T) {
	for _, to := range []string{"ptx:sm_90", "llvm:x86-64-v3"} {
		desc := parsed(t, to)
		for _, entry := range append(testkit.Zoo(), testkit.Rounded()...) {
			if entry.Large {
				continue
			}
			c, err := entry.Build(1)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			control := &pass.Control{StopAfter: "choose-plans", Dump: func(_ pass.Info, _, form string) { text = form }}
			if _, err := c.Compile(t.Context(), desc, engine.Config{Control: control}); !errors.Is(err, pass.ErrStopped) {
				t.Fatalf("%s: %v", entry.Name, err)
			}
			for _, name := range rowsBetween(t, "choose-plans", "merge-launches") {
				if text, err = engine.RunPass(t.Context(), name, text, desc, engine.Config{}); err != nil {
					t.Fatalf("%s on %s: %s: %v", entry.Name, to, name, err)
				}
			}
			whole, err := c.Compile(t.Context(), desc, engine.Config{Control: &pass.Control{Without: map[string]bool{"merge-launches": true}}})
			if err != nil {
				t.Fatal(err)
			}
			comparePrograms(t, entry.Name+" on "+to, whole, text)
		}
	}
}

// rowsBetween lists the passes after one and before another.
func rowsBetween(t *testing.T, after, before string) (names []string) {
	t.Helper()
	rows := pass.Names(engine.Passes())
	on := false
	for _, name := range rows {
		if name == before {
			return names
		}
		if on {
			names = append(names, name)
		}
		on = on || name == after
	}
	t.Fatalf("no rows from %s to %s", after, before)
	return nil
}

// comparePrograms compares all lines but the one with the name.
func comparePrograms(t *testing.T, what string, c *engine.Compiled, text string) {
	t.Helper()
	made := make(map[string]string)
	for _, f := range txtar.Parse([]byte(text)).Files {
		made[f.Name] = string(f.Data)
	}
	for _, k := range c.Kernels {
		_, want, _ := strings.Cut(program.Print(k.Program), "\n")
		if _, got, _ := strings.Cut(made[k.Name], "\n"); got != want {
			t.Errorf("%s: kernel %s differs from the compilation's: %s", what, k.Name, firstDifference(want, got))
		}
	}
}

func parsed(t *testing.T, name string) *target.Desc {
	t.Helper()
	desc, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return desc
}
