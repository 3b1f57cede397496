package main

import (
	"strings"

	"github.com/spf13/cobra"

	"tgc/internal/lists"
	"tgc/llm/synth"
)

func newSynth() *cobra.Command {
	var out string
	var seed uint64
	cmd := &cobra.Command{
		Use:   "synth SHAPE -o FILE.gguf",
		Short: "Write a full-size model with valid random weights",
		Long: "Write a model file with the tensor names, shapes, types and metadata of a published\n" +
			"model and random weights. Shapes: " + shapeNames() + ",\nor a description such as\n" +
			"llama:d=512,layers=4,heads=8,kv=4,ff=1536,vocab=2048,quant=q4_k_m.\n\n" +
			"quant is a mixture of types as llama.cpp's quantiser writes it (without an importance\n" +
			"matrix), with its choice for rows that are no multiple of 256:\n" +
			strings.Join(synth.MixtureNames(), ", ") + ".\n" +
			"pure=1 is a mixture's most common type throughout, and so is the name of any other type,\n" +
			"such as q3_k or iq2_xs.",
		Example: "  tgc synth tiny -o tiny.gguf\n  tgc synth llama3.2:1b-q6_k -o /tmp/llama.gguf\n" +
			"  tgc synth qwen3:d=1024,layers=28,heads=16,kv=8,head=128,ff=3072,vocab=151936,quant=q3_k_m -o q.gguf",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			shape, err := synth.Lookup(args[0])
			if err != nil {
				return usagef("%v", err)
			}
			if out == "" {
				return usagef("synth: -o FILE.gguf is missing")
			}
			return synth.Write(cmd.Context(), shape, out, seed, progress(cmd, "writing "+shape.Name))
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "seed of the random weights")
	return cmd
}

func shapeNames() string {
	names := lists.Map(synth.Shapes(), func(s synth.Shape) string { return s.Name })
	return strings.Join(names, ", ")
}
