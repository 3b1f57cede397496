package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tgc/runtime/hcq/word"
)

// newHCQ groups what looks at the words of a GPU's hardware queue.
func newHCQ() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "hcq",
		Short:   "Look at the words of a GPU's hardware queue",
		Long:    "Look at what is written for a GPU's front end, word by word. Nothing here needs a GPU.",
		Example: "  tgc hcq decode words.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("hcq: unknown command %q: want decode or check", args[0])
			}
			return usagef("hcq: want a command: decode or check")
		},
	}
	cmd.AddCommand(newHCQDecode(), newHCQCheck())
	return cmd
}

func newHCQDecode() *cobra.Command {
	var qmd bool
	cmd := &cobra.Command{
		Use:   "decode FILE",
		Short: "Name the words of a pushbuffer or of a launch descriptor",
		Long: "Read words in hexadecimal, a # beginning a comment, and print a line NAME = 0xVALUE for each\n" +
			"word that a pushbuffer sends, under the names of NVIDIA's class headers (C76F, C7C0, C7B5). With\n" +
			"--qmd the file is a launch descriptor, 64 words of a V03_00 or 96 of a V04_00, and each of its\n" +
			"fields gets a line.",
		Example: "  tgc hcq decode words.txt\n  tgc hcq decode --qmd descriptor.txt",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readInput(cmd, args[0])
			if err != nil {
				return err
			}
			words, err := word.Parse(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			lines, err := decodeWords(words, qmd)
			for _, line := range lines {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&qmd, "qmd", false, "the words are a launch descriptor")
	return cmd
}

func decodeWords(words []uint32, qmd bool) ([]word.Line, error) {
	if !qmd {
		return word.Decode(words)
	}
	for _, l := range []*word.Layout{word.QMD3(), word.QMD4()} {
		if len(words) == l.Words {
			return l.Decode(words)
		}
	}
	return nil, fmt.Errorf("%d words, want 64 of a QMD V03_00 or 96 of a V04_00", len(words))
}
