package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tgc/engine"
)

// helpColumns is the width that lists of help are wrapped to.
const helpColumns = 80

// helpWithEnvironment makes the help of the root end with the environment variables, and
// that of an unknown command an error.
func helpWithEnvironment(root *cobra.Command) {
	usual := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		usual(cmd, args)
		if cmd == root {
			printEnvironment(cmd.OutOrStdout())
		}
	})
	root.SetHelpCommand(&cobra.Command{
		Use:               "help [command]",
		Short:             "Help about any command",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = knownCommand(root, rest)
			}
			if err != nil {
				return err
			}
			return cmd.Help()
		},
	})
}

// printEnvironment lists the variables that tgc reads.
func printEnvironment(w io.Writer) {
	fmt.Fprint(w, "\nEnvironment:\n")
	for _, o := range append(slices.Clone(engine.Options), engine.Option{Name: "NO_COLOR", Doc: "not empty: no colours on terminals"}) {
		name := o.Name
		if old := o.Old(); old != "" {
			name += " (or " + old + ", as it was called)"
		}
		fmt.Fprintf(w, "  %s\n", name)
		for _, line := range wrapped(o.Doc, helpColumns-6) {
			fmt.Fprintf(w, "      %s\n", line)
		}
	}
}

// wrapped cuts a text at spaces into lines of at most some columns, where it has spaces.
func wrapped(text string, columns int) (lines []string) {
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= columns {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// unknownFlag adds to the error of a flag that a command lacks those that were perhaps meant.
func unknownFlag(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	text := err.Error()
	if cmd.HasParent() {
		text = cmd.Name() + ": " + text
	}
	if !unknown {
		return usagef("%s (%s --help lists them)", text, cmd.CommandPath())
	}
	if meant := nearFlags(cmd.Flags(), name); len(meant) > 0 {
		return usagef("%s: is it %s?", text, strings.Join(meant, " or "))
	}
	return usagef("%s (%s --help lists them)", text, cmd.CommandPath())
}

// nearFlags are the flags whose names are at most two letters away, or begin with it.
func nearFlags(flags *pflag.FlagSet, name string) (near []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if distance(f.Name, name) <= 2 && distance(f.Name, name) < len(name) || len(name) > 2 && strings.HasPrefix(f.Name, name) {
			near = append(near, "--"+f.Name)
		}
	})
	return near
}

// distance is how many letters are to be put in, dropped or changed (Levenshtein 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// withUsage is a check of arguments whose error says how the command is used.
func withUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		return usagef("%s: %v; usage: %s", cmd.Name(), err, cmd.UseLine())
	}
}
