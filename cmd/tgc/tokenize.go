package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tgc/llm"
	"tgc/llm/tokenizer"
)

func newTokenize() *cobra.Command {
	var file string
	var noSpecial, decode, asJSON bool
	cmd := &cobra.Command{
		Use:   "tokenize MODEL.gguf",
		Short: "Turn text into token ids, or back",
		Long: "Read text from stdin or --file and print its token ids on one line. Special tokens\n" +
			"in the text are recognised, and BOS is added where the model says so, unless\n" +
			"--no-special. --decode reads ids and prints their text, byte for byte.",
		Example: "  echo -n 'Hello' | tgc tokenize model.gguf\n" +
			"  tgc tokenize model.gguf --file prompt.txt --no-special\n" +
			"  echo 1 15043 | tgc tokenize model.gguf --decode",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, closeModel, err := openTokenizer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer closeModel()
			text, err := readInput(cmd, file)
			if err != nil {
				return err
			}
			if decode {
				return printDecoded(cmd, t, text, !noSpecial, asJSON)
			}
			return printTokens(cmd, t, text, !noSpecial, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "file", "", "read from this file, not from stdin")
	f.BoolVar(&noSpecial, "no-special", false, "take special tokens as text and add no BOS; with --decode, leave them out")
	f.BoolVar(&decode, "decode", false, "read ids, print text")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func printTokens(cmd *cobra.Command, t *tokenizer.Tokenizer, text string, special, asJSON bool) error {
	ids, err := t.Encode(text, special, special)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(cmd, map[string][]int32{"tokens": append([]int32{}, ids...)})
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), idText(ids))
	return err
}

func printDecoded(cmd *cobra.Command, t *tokenizer.Tokenizer, text string, special, asJSON bool) error {
	ids, err := llm.ParseTokens(text, t.VocabSize())
	if err != nil {
		return err
	}
	decoded := t.Decode(ids, special)
	if asJSON {
		return printJSON(cmd, map[string]string{"text": string(decoded)})
	}
	_, err = cmd.OutOrStdout().Write(decoded)
	return err
}

func idText(ids []int32) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(int(id)))
	}
	return b.String()
}
