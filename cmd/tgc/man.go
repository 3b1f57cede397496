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

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Print the manual page, tgc(1)",
		Long: "Print the manual page, tgc(1), made of what --help says of every command. Pages are\n" +
			"found in folders man1 of $MANPATH and /usr/local/share/man.",
		Example: "  tgc man | man -l -\n  tgc man > ~/.local/share/man/man1/tgc.1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), manual(cmd.Root()))
			return err
		},
	}
}

// manual is the page in the language of man(7).
func manual(root *cobra.Command) string {
	m := &page{}
	m.printf(".TH TGC 1 \"\" \"tgc %s\" \"User commands\"\n", version)
	m.section("NAME")
	m.text("tgc - " + strings.ToLower(root.Short[:1]) + root.Short[1:])
	m.section("SYNOPSIS")
	m.printf(".B tgc\n.I command\n[arguments] [flags]\n")
	m.section("DESCRIPTION")
	m.text(root.Long)
	m.section("COMMANDS")
	for _, cmd := range root.Commands() {
		m.command(cmd)
	}
	m.section("ENVIRONMENT")
	for _, o := range engine.Options {
		m.item(o.Name, o.Doc)
		if old := o.Old(); old != "" {
			m.text("Where it is not set, " + old + ", as it was called, is read.")
		}
	}
	m.item("NO_COLOR", "not empty: no colours on terminals")
	m.section("EXIT STATUS")
	m.item("0", "success")
	m.item("1", "the job failed")
	m.item("2", "the command line is wrong")
	m.item("130", "interrupted")
	return m.String()
}

// page is a text in the language of man(7).
type page struct{ strings.Builder }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *page) section(name string) { p.printf(".SH %s\n", name) }

// escaped is a text in which nothing is an instruction.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

func (p *page) text(text string) {
	for line := range strings.Lines(text) {
		p.printf("%s\n", escaped(strings.TrimSpace(line)))
	}
}

// literally is a text whose lines and spaces stay.
func (p *page) literally(text string) {
	p.printf(".nf\n")
	for line := range strings.Lines(text) {
		p.printf("%s\n", escaped(strings.TrimRight(line, "\n")))
	}
	p.printf(".fi\n")
}

func (p *page) item(name, doc string) {
	p.printf(".TP\n.B %s\n", escaped(name))
	p.text(doc)
}

// command describes a command with its flags and examples, and those below it.
func (p *page) command(cmd *cobra.Command) {
	if !cmd.IsAvailableCommand() {
		return
	}
	p.printf(".SS %s\n", escaped(cmd.CommandPath()))
	p.literally(cmd.UseLine())
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	p.printf(".PP\n")
	p.literally(long)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if !slices.Contains([]string{"", "0", "false", "[]"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		p.item(strings.TrimSpace(name+" "+kind), usage)
	})
	if cmd.Example != "" {
		p.printf(".PP\n")
		p.literally(cmd.Example)
	}
	for _, below := range cmd.Commands() {
		p.command(below)
	}
}
