package schedule_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/pass"
	"tgc/schedule"
)

// What a user asks of the passes holds for every row, also for those of the
// placement group.
func TestControl(t *testing.T) {
	sink, err := llamaTiny().build().Sink()
	if err != nil {
		t.Fatal(err)
	}
	run := func(c *pass.Control) (*schedule.Schedule, error) {
		opt := schedule.DefaultOptions()
		opt.Control, opt.Explain = c, true
		a := ir.NewArena()
		return schedule.Run(t.Context(), a, a.Import(sink), opt)
	}
	var dumped []string
	dump := func(row pass.Info, _, text string) {
		dumped = append(dumped, row.Name)
		if err := schedule.VerifyText(ir.NewArena(), text, schedule.DefaultOptions()); err != nil {
			t.Errorf("form after %s: %v", row.Name, err)
		}
	}

	c := &pass.Control{Trace: true, Verify: true, Dump: dump, DumpAfter: map[string]bool{"hoist-factors": true, "fuse-points": true, "write-kernels": true}}
	if _, err := run(c); err != nil {
		t.Fatal(err)
	}
	if want := []string{"hoist-factors", "fuse-points", "write-kernels"}; !slices.Equal(dumped, want) {
		t.Errorf("dumped after %v, want %v", dumped, want)
	}
	if n := len(c.Times(schedule.Passes())); n != len(schedule.Passes()) {
		t.Errorf("%d of %d rows have a time", n, len(schedule.Passes()))
	}
	for _, name := range []string{"hoist-factors", "fuse-points", "unify-loops"} {
		if c.Firings()[name] == 0 {
			t.Errorf("%s did not fire", name)
		}
	}

	for _, row := range schedule.Passes() {
		if _, err := run(&pass.Control{StopAfter: row.Name}); !errors.Is(err, pass.ErrStopped) {
			t.Errorf("stop after %s: got %v", row.Name, err)
		}
		if row.Required {
			continue
		}
		s, err := run(&pass.Control{Without: map[string]bool{row.Name: true}, Verify: true})
		if err != nil {
			t.Errorf("without %s: %v", row.Name, err)
			continue
		}
		for _, r := range s.Records {
			if r.Pass == row.Name {
				t.Errorf("without %s: %s", row.Name, r)
			}
		}
	}
}

// A rule that has two rows is switched off by its name or key, one row alone by
// the name of the row.
func TestRowsOfOneRule(t *testing.T) {
	sink, err := llamaTiny().build().Sink()
	if err != nil {
		t.Fatal(err)
	}
	opt := schedule.DefaultOptions()
	if opt.Off, err = schedule.ParseRules("R2", opt.Off); err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Run(t.Context(), ir.NewArena(), sink, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Records {
		if strings.HasPrefix(r.Pass, "hoist-") {
			t.Errorf("with hoist-factors off: %s", r)
		}
	}
}
