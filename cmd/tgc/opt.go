package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tgc/ir"
	"tgc/rewrite"
)

func newOpt() *cobra.Command {
	var list, asJSON bool
	cmd := &cobra.Command{
		Use:     "opt PASS[,PASS...] FILE.uop",
		Short:   "Run named passes on a graph in text form",
		Example: "  tgc opt --list\n  tgc opt simplify,verify-kernel kernel.uop",
		Args: func(cmd *cobra.Command, args []string) error {
			if list {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return listPasses(cmd, asJSON)
			}
			passes, err := findPasses(args[0])
			if err != nil {
				return err
			}
			return runPasses(cmd, passes, args[1])
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the passes")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --list: print JSON")
	return cmd
}

func listPasses(cmd *cobra.Command, asJSON bool) error {
	type row struct {
		Name string `json:"name"`
		Doc  string `json:"doc"`
	}
	var list []row
	rows := [][]string{{"PASS", "DOES"}}
	for _, p := range rewrite.Passes() {
		list = append(list, row{p.Name, p.Doc})
		rows = append(rows, []string{p.Name, p.Doc})
	}
	if asJSON {
		return printJSON(cmd, list)
	}
	return printTable(cmd.OutOrStdout(), rows)
}

// findPasses looks up the names of a list separated by commas.
func findPasses(names string) ([]rewrite.Pass, error) {
	var found []rewrite.Pass
	for name := range strings.SplitSeq(names, ",") {
		p, ok := passByName(strings.TrimSpace(name))
		if !ok {
			return nil, usagef("opt: there is no pass %q (tgc opt --list names them)", name)
		}
		found = append(found, p)
	}
	return found, nil
}

func passByName(name string) (rewrite.Pass, bool) {
	for _, p := range rewrite.Passes() {
		if p.Name == name {
			return p, true
		}
	}
	return rewrite.Pass{}, false
}

func runPasses(cmd *cobra.Command, passes []rewrite.Pass, file string) error {
	text, err := readInput(cmd, file)
	if err != nil {
		return err
	}
	a := ir.NewArena()
	root, err := ir.Parse(a, text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, p := range passes {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if root, err = p.Run(a, root); err != nil {
			return fmt.Errorf("%s: pass %s: %w", file, p.Name, err)
		}
	}
	return ir.Print(cmd.OutOrStdout(), root)
}
