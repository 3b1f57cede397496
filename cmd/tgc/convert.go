package main

import (
	"github.com/spf13/cobra"

	"tgc/llm/huggingface"
)

func newConvert() *cobra.Command {
	var out, quant string
	cmd := &cobra.Command{
		Use:   "convert DIR -o FILE.gguf",
		Short: "Write a Hugging Face folder as a GGUF file",
		Long: "Write a folder of config.json, safetensors and tokenizer.json (or tokenizer.model) as a model\n" +
			"file. --quant packs its matrices in a mixture of types, by the names that llama.cpp has for them:\n" +
			huggingface.QuantNames() + ".\n" +
			"Or the name of one type for all matrices: mxfp4, nvfp4, iq3_xxs, iq2_s, iq2_xs, iq2_xxs, iq1_m,\n" +
			"iq1_s and those above. Without --quant the weights stay as they are.",
		Example: "  tgc convert ./SmolLM3-3B -o smollm3.gguf --quant q4_k_m\n  tgc convert ./Qwen3-0.6B -o qwen3.gguf",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usagef("convert: -o FILE.gguf is missing")
			}
			return huggingface.Convert(cmd.Context(), args[0], quant, out, progress(cmd, "writing "+out))
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write")
	cmd.Flags().StringVar(&quant, "quant", "", "mixture of types; the types of the folder if it is not given")
	return cmd
}
