package main

import (
	"strings"

	"github.com/spf13/cobra"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/llm"
	"tgc/llm/story"
	"tgc/llm/synth"
	"tgc/nn"
	"tgc/pass"
	"tgc/runtime/devices"
	"tgc/target"
)

// `tgc completion bash|zsh|fish|powershell` prints a script for a shell, which asks tgc itself
// what may come next. Files are always among what an argument may be.

// flagValues are what flags of these names take, wherever they are.
var flagValues = map[string]func() []string{
	"device": func() []string { return literal(devices.Names()) },
	"target": func() []string {
		return append(literal(target.Names()), "ptx:sm_87", "ptx:sm_90a", "llvm:x86-64-v3", "llvm:x86-64-v4")
	},
	"mode":    nn.NumericNames,
	"kv":      llm.CacheTypes,
	"step":    func() []string { return []string{"decode", "prefill"} },
	"start":   func() []string { return []string{"heuristic", "scratch"} },
	"without": passNames, "dump-after": passNames, "stop-after": passNames,
}

// literal are those of a list of forms that have nothing to fill in.
func literal(forms string) (out []string) {
	for form := range strings.SplitSeq(forms, ", ") {
		form, _, _ = strings.Cut(form, "[")
		if strings.ToLower(form) == form {
			out = append(out, form)
		}
	}
	return out
}

func passNames() []string {
	return lists.Map(engine.TextPasses(), func(p pass.Info) string { return p.Name })
}

// complete tells shells what a command's arguments and flags may be: the first word of its usage
// after its name says whether models do.
func complete(cmd *cobra.Command) {
	for _, c := range append(cmd.Commands(), cmd) {
		_, arguments, _ := strings.Cut(c.Use, " ")
		arguments = strings.TrimPrefix(arguments, "[")
		switch {
		case strings.HasPrefix(arguments, "MODEL.gguf") || strings.HasPrefix(arguments, "SHAPE"):
			c.ValidArgsFunction = firstOf(modelNames)
		case strings.HasPrefix(arguments, "PASS"):
			c.ValidArgsFunction = firstOf(passNames)
		}
		for name, values := range flagValues {
			if c.Flags().Lookup(name) == nil {
				continue
			}
			// The error is that of a flag that is not there or has a function already.
			_ = c.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
				return listed(values(), begun), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
}

// modelNames are the shapes and the built-in model.
func modelNames() []string {
	return append(lists.Map(synth.Shapes(), func(s synth.Shape) string { return s.Name }), story.Name)
}

// firstOf completes the first argument by names, and by files; the others by files.
func firstOf(names func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return listed(names(), begun), cobra.ShellCompDirectiveDefault
	}
}

// listed are the names that go on where a text ends, the last of a list with commas.
func listed(names []string, begun string) (out []string) {
	before := begun[:strings.LastIndex(begun, ",")+1]
	for _, name := range names {
		if strings.HasPrefix(before+name, begun) {
			out = append(out, before+name)
		}
	}
	return out
}
