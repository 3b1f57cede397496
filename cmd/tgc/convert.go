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
		Long: "Write a folder of config.json, safetensors and tokenizer.json as a model file. --quant packs\n" +
			"its matrices in a mixture of types, by the names that llama.cpp has for them:\n" +
			huggingface.QuantNames() + ".\n" +
			"Types that tgc only reads are replaced by the next larger one that it packs\n" +
			"(Q4_0, Q5_0, Q8_0, Q4_K, Q5_K, Q6_K, F16, BF16, F32). Without --quant the weights stay as they are.",
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
