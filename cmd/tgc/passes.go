package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tgc/engine"
	"tgc/pass"
)

// passFlags are the flags by which a user looks into a compilation.
type passFlags struct {
	without, dumpAfter []string
	stopAfter          string
}

func (o *passFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&o.without, "without", nil, "passes to leave out, separated by commas (tgc opt --list names them)")
	f.StringSliceVar(&o.dumpAfter, "dump-after", nil, "passes after which the form is printed")
	f.StringVar(&o.stopAfter, "stop-after", "", "a pass to stop after; the form after it is printed")
}

// control is what the flags ask of a compilation, whose forms go to w.
func (o *passFlags) control(w io.Writer) (*pass.Control, error) {
	c := &pass.Control{Without: make(map[string]bool), DumpAfter: make(map[string]bool)}
	for _, name := range o.without {
		row, err := findPass("--without", name)
		if err != nil {
			return nil, err
		}
		if row.Required {
			return nil, usagef("--without %s: the compiler cannot do without this pass: %s", name, row.Why)
		}
		c.Without[row.Name] = true
	}
	for _, name := range o.dumpAfter {
		row, err := findPass("--dump-after", name)
		if err != nil {
			return nil, err
		}
		c.DumpAfter[row.Name] = true
	}
	if o.stopAfter != "" {
		row, err := findPass("--stop-after", o.stopAfter)
		if err != nil {
			return nil, err
		}
		c.StopAfter = row.Name
	}
	c.Dump = func(row pass.Info, subject, text string) { printForm(w, row, subject, text) }
	return c, nil
}

func findPass(flag, name string) (pass.Info, error) {
	row, ok := pass.Find(engine.Passes(), strings.TrimSpace(name))
	if !ok {
		return row, usagef("%s: there is no pass %q (tgc opt --list names them)", flag, name)
	}
	return row, nil
}

// printNotes has what passes say about a form printed on stderr.
func printNotes(cmd *cobra.Command) context.Context {
	return pass.WithNotes(cmd.Context(), func(row, subject, text string) {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), strings.TrimSpace(row+" "+subject)+": "+text)
	})
}

// printForm prints a form after a pass as a part of a txtar archive, which
// `tgc opt` reads: several kernels make several parts.
func printForm(w io.Writer, row pass.Info, subject, text string) {
	name := row.Name
	if subject != "" {
		name = subject + " after " + name
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, _ = fmt.Fprintf(w, "-- %s --\n%s", name, text)
}
