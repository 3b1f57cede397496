package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tgc/runtime/hcq/check"
	"tgc/runtime/hcq/trace"
)

func newHCQCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Replay a trace of a Jetson's queue on the emulated machine",
		Long: "Replay what a runtime asked of a Jetson's kernel driver and stored for its GPU, on an emulated\n" +
			"machine. Descriptors, handles, subcontexts, tokens and characteristics are the trace's, all else\n" +
			"is computed; kernels do not run, their releases and copies do. For each difference, refusal and mistake a\n" +
			"line is printed: the line of the trace, kind, code and text. The status is 1 if there is one.",
		Example: "  tgc hcq check run.trace\n  tgc hcq check run.trace --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readInput(cmd, args[0])
			if err != nil {
				return err
			}
			events, err := trace.Parse(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			found := check.Trace(events)
			if asJSON {
				if found == nil {
					found = []check.Difference{}
				}
				if err := printJSON(cmd, found); err != nil {
					return err
				}
			} else {
				for _, d := range found {
					fmt.Fprintln(cmd.OutOrStdout(), d)
				}
			}
			if len(found) > 0 {
				return fmt.Errorf("%s: %d found in %d events", args[0], len(found), len(events))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}
