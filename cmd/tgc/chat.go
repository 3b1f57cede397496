package main

import (
	"github.com/spf13/cobra"
)

// chatFlags are the flags of chat.
type chatFlags struct {
	renderFile string
	template   string
	json       bool
}

func newChat() *cobra.Command {
	var o chatFlags
	cmd := &cobra.Command{
		Use:   "chat [MODEL.gguf|SHAPE]",
		Short: "Print the prompt that a chat template makes",
		Long: "With --render, print the prompt that the model's chat template, or that of --template,\n" +
			"makes of a JSON object with \"messages\" and any further variables\n" +
			"(add_generation_prompt, tools, bos_token, date_string, ...).",
		Example: "  tgc chat model.gguf --render messages.json\n" +
			"  tgc chat --render messages.json --template chat.jinja",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			if o.renderFile == "" || name == "" && o.template == "" {
				return usagef("chat: want --render FILE.json and a model or --template FILE.jinja")
			}
			return o.render(cmd, name)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.renderFile, "render", "", "print the prompt that the template makes of this JSON file (- for stdin), and stop")
	f.StringVar(&o.template, "template", "", "use the chat template of this file, not the model's own")
	f.BoolVar(&o.json, "json", false, "print a JSON object, with where each part of the text came from")
	return cmd
}
