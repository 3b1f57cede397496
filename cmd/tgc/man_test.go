package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tgc/engine"
)

// The manual page has every command, flag and variable, and groff nothing to object to.
func TestManual(t *testing.T) {
	var started bool
	root := newRoot(streams{}, &started)
	text := manual(root)
	has := func(before, name string) {
		if !strings.Contains(text, before+escaped(name)) {
			t.Errorf("no %q in the page", before+name)
		}
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		has(".SS ", cmd.CommandPath())
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { has("", "--"+f.Name) })
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	for _, cmd := range root.Commands() {
		visit(cmd)
	}
	for _, o := range engine.Options {
		has(".B ", o.Name)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff to read it")
	}
	check := exec.Command(groff, "-man", "-ww", "-Tutf8", "-Kutf8", "-z")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}

// On a terminal the widest cells are cut, and no others.
func TestFitted(t *testing.T) {
	rows := [][]string{{"NAME", "PLAN", "US"}, {"short", strings.Repeat("é", 40), "1"}, {"a name of twenty two..", "p", "2"}, {}}
	got := fitted(rows, 40)
	want := [][]string{{"NAME", "PLAN", "US"}, {"short", strings.Repeat("é", 16) + "…", "1"}, {"a name of twenty…", "p", "2"}, {}}
	for i := range want {
		if strings.Join(got[i], "|") != strings.Join(want[i], "|") {
			t.Errorf("row %d: %q, want %q", i, got[i], want[i])
		}
	}
	if got := fitted(rows, 3)[1][1]; got != strings.Repeat("é", 7)+"…" {
		t.Errorf("where nothing fits: %q", got)
	}
	if got := fitted(rows, 200)[1][1]; got != rows[1][1] {
		t.Errorf("where all fits: %q", got)
	}
}
