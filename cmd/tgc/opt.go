package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tgc/engine"
	"tgc/pass"
)

// optFlags are the flags of opt.
type optFlags struct {
	list, json bool
	target     string
}

func newOpt() *cobra.Command {
	var o optFlags
	cmd := &cobra.Command{
		Use:   "opt PASS[,PASS...] FILE",
		Short: "Run named passes on a form in text",
		Long: "Run passes one after the other on a graph, values, a kernel or a program in text form, as\n" +
			"`tgc compile --dump-after PASS` prints it, and print the form after them. A txtar archive\n" +
			"with several parts gives one with a part for each. For values, for example, begin with\n" +
			"`tgc compile tiny --target ptx:sm_90 --stop-after rangeify > values.txt`.",
		Example: "  tgc opt --list\n  tgc opt simplify,verify-kernel kernel.uop\n" +
			"  tgc opt hoist-factors values.txt --target ptx:sm_90",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return o.listPasses(cmd)
			}
			return o.run(cmd, args[0], args[1])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.list, "list", false, "list the passes: name, form before, form after, what it does")
	f.BoolVar(&o.json, "json", false, "with --list: print JSON")
	f.StringVar(&o.target, "target", "llvm", "the target for which passes decide")
	return cmd
}

// passRow is a pass in the list that --json prints.
type passRow struct {
	Name     string   `json:"name"`
	Key      string   `json:"key,omitempty"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Needs    []string `json:"needs,omitempty"`
	Gives    []string `json:"gives,omitempty"`
	Required bool     `json:"required"`
	Doc      string   `json:"doc"`
	Why      string   `json:"why,omitempty"`
}

func (o *optFlags) listPasses(cmd *cobra.Command) error {
	var list []passRow
	var rows [][]string
	for _, p := range engine.TextPasses() {
		list = append(list, passRow{p.Name, p.Key, string(p.From), string(p.To), p.Needs, p.Gives, p.Required, p.Doc, p.Why})
		rows = append(rows, []string{p.Name, string(p.From), string(p.To), p.Doc})
	}
	if o.json {
		return printJSON(cmd, list)
	}
	return printTable(cmd.OutOrStdout(), rows)
}

func (o *optFlags) run(cmd *cobra.Command, names, file string) error {
	var found []pass.Info
	for name := range strings.SplitSeq(names, ",") {
		p, ok := pass.Find(engine.TextPasses(), strings.TrimSpace(name))
		if !ok {
			return usagef("opt: there is no pass %q (tgc opt --list names them)", name)
		}
		found = append(found, p)
	}
	desc, _, err := findTarget(o.target)
	if err != nil {
		return err
	}
	config, err := engine.ReadConfig()
	if err != nil {
		return usagef("%v", err)
	}
	form, err := readInput(cmd, file)
	if err != nil {
		return err
	}
	ctx := printNotes(cmd)
	for _, p := range found {
		if form, err = engine.RunPass(ctx, p.Name, form, desc, config); err != nil {
			return fmt.Errorf("%s: pass %s: %w", file, p.Name, err)
		}
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), form)
	return err
}
