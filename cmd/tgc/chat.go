package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tgc/engine"
	"tgc/llm"
	"tgc/llm/chat"
	"tgc/llm/chat/shell"
)

// chatFlags are the flags of chat.
type chatFlags struct {
	device     deviceFlags
	sampling   samplingFlags
	n          int
	context    int
	system     string
	renderFile string
	template   string
	json       bool
	stats      bool
	noHistory  bool
}

func newChat() *cobra.Command {
	var o chatFlags
	cmd := &cobra.Command{
		Use:   "chat MODEL.gguf|SHAPE",
		Short: "Chat with a model",
		Long: "Chat with a model through its own chat template. On a terminal lines can be edited,\n" +
			"and there is a history; Ctrl-C stops the answer, Ctrl-D leaves, /help lists commands.\n" +
			"From a pipe every line is a message. What the cache holds of the conversation is not\n" +
			"computed again; once the context is full the oldest messages are dropped, never the\n" +
			"system prompt.\n\n" +
			"--render prints the prompt that a template makes of a JSON object with \"messages\" and\n" +
			"any further variables (add_generation_prompt, tools, bos_token, date_string, ...).",
		Example: "  tgc chat model.gguf\n" +
			"  tgc chat model.gguf --system 'Answer in French.' --temp 0.6 --min-p 0.05\n" +
			"  echo 'What is a compiler?' | tgc chat model.gguf --json\n" +
			"  tgc chat model.gguf --render messages.json\n" +
			"  tgc chat --render messages.json --template chat.jinja",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			if o.renderFile == "" {
				return o.run(cmd, name)
			}
			if name == "" && o.template == "" {
				return usagef("chat: --render wants a model, whose template it fills, or --template FILE.jinja")
			}
			return o.render(cmd, name)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.system, "system", "", "system prompt: what the model is told before the conversation")
	f.IntVarP(&o.n, "n", "n", -1, "most tokens of an answer; -1 until the context is full")
	f.IntVar(&o.context, "ctx", 0, "positions in the cache, at most the model's (default: 4096)")
	f.Uint32Var(&o.sampling.Seed, "seed", 0, "seed of sampling: the same seed gives the same answers (default: another one each time)")
	o.sampling.register(f)
	f.StringVar(&o.template, "template", "", "use the chat template of this file, not the model's own")
	f.StringVar(&o.renderFile, "render", "", "print the prompt that the template makes of this JSON file (- for stdin), and stop")
	f.BoolVar(&o.stats, "stats", false, "tokens and speed after each answer")
	f.BoolVar(&o.json, "json", false, "print a JSON object a line for each answer; with --render, where each part of the text came from")
	f.BoolVar(&o.noHistory, "no-history", false, "neither read nor write the file of lines typed before")
	o.device.register(f)
	o.device.registerModes(f)
	return cmd
}

func (o *chatFlags) check(cmd *cobra.Command, name string) error {
	given := cmd.Flags().Changed
	switch {
	case name == "":
		return usagef("chat: want a model: tgc chat MODEL.gguf")
	case given("ctx") && o.context < 1:
		return usagef("chat: --ctx %d, want at least 1", o.context)
	case o.n < -1 || o.n == 0:
		return usagef("chat: -n %d, want 1 or more, or -1", o.n)
	}
	if !given("seed") {
		o.sampling.Seed = rand.Uint32()
	}
	if err := o.sampling.check("chat"); err != nil {
		return err
	}
	return o.device.check()
}

func (o *chatFlags) run(cmd *cobra.Command, name string) error {
	if err := o.check(cmd, name); err != nil {
		return err
	}
	person := o.person(cmd)
	defer person.giveBack()
	m, err := openModel(cmd.Context(), name, openFile)
	if err != nil {
		return err
	}
	defer m.Close()
	t, err := o.chatTemplate(m)
	if err != nil {
		return err
	}
	if err := o.sampling.checkModel(m); err != nil {
		return err
	}
	size, err := llm.ContextSize(m, o.context, 0, -1)
	if err != nil {
		return err
	}
	// What the first question takes with the template around it, about.
	first, err := t.Prompt(cmd.Context(), []chat.Message{{Role: chat.User, Content: "What is a compiler?"}}, nil)
	if err != nil {
		return err
	}
	dev, config, err := o.device.open(cmd)
	if err != nil {
		return err
	}
	defer dev.Close()
	config.Schedules = engine.OpenSchedules(config.CacheDir)
	defer config.Schedules.Close()
	if isTerminal(cmd.ErrOrStderr()) {
		note(cmd, "loading %s", m.Name)
	}
	ready := llm.Preparation{Prompt: min(len(first), size), Sampling: o.sampling.Sampling}
	s, err := llm.NewSession(cmd.Context(), m, dev, llm.SessionOptions{Context: size, Mode: o.device.mode.Numeric, Cache: o.device.kv.CacheType, Config: config, Prepare: &ready})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Prepare(cmd.Context(), ready.Prompt, ready.Sampling); err != nil {
		return err
	}
	c, err := chat.New(s, t, o.system, chat.Options{Context: size, Tokens: o.n, Sampling: o.sampling.Sampling, Stops: o.sampling.stops})
	if err != nil {
		return err
	}
	if folded, err := c.FoldSystem(cmd.Context()); err != nil {
		return err
	} else if folded && o.system != "" {
		note(cmd, "the model's template takes no system prompt: it goes before the first message")
	}
	if person != nil && !o.noHistory {
		if err := person.readHistory(historyFile(config.CacheDir)); err != nil {
			note(cmd, "the history of lines was not read: %v", err)
		}
	}
	return o.talk(cmd, c, m.Name, person)
}

// person is the terminal of somebody who types, nil where lines come from elsewhere. It is
// taken over before the model is loaded: what is typed meanwhile waits for the first prompt,
// Ctrl-D too, which a terminal that still made lines itself would have used up.
func (o *chatFlags) person(cmd *cobra.Command) *terminal {
	if o.json || !isTerminal(cmd.InOrStdin()) || !isTerminal(cmd.OutOrStdout()) {
		return nil
	}
	return newTerminal()
}

// chatTemplate is the template of --template, or else that of the model.
func (o *chatFlags) chatTemplate(m *llm.Model) (*chat.Template, error) {
	if m.Tokenizer == nil {
		return nil, fmt.Errorf("%s holds no vocabulary, so that there is nothing to chat in", m.Name)
	}
	t, err := o.readTemplate(m.File, m)
	if err != nil {
		return nil, err
	}
	t.Now = chat.Today
	return t, nil
}

// talk runs the dialogue, with a person at a terminal or, where that is nil, through pipes.
func (o *chatFlags) talk(cmd *cobra.Command, c *chat.Conversation, name string, person *terminal) error {
	sh := &shell.Shell{
		Conversation: c, Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(), JSON: o.json, Statistics: o.stats,
		Interactive: person != nil,
		Escape:      isTerminal(cmd.OutOrStdout()),
	}
	// From here on Ctrl-C means the answer, where a person types.
	ctx, stop := context.WithCancel(context.WithoutCancel(cmd.Context()))
	defer stop()
	signals := catchSignals(stop, sh.Interactive)
	defer signals.close()
	sh.Answering = signals.answering
	if !sh.Interactive {
		sh.Input = newPipe(cmd.InOrStdin())
		return sh.Run(ctx)
	}
	fmt.Fprintf(sh.Err, "%s: /help lists commands, Ctrl-C stops an answer, Ctrl-D leaves\n\n", oneLine(name))
	sh.Input = person
	err := sh.Run(ctx)
	if writeErr := person.writeHistory(); writeErr != nil {
		note(cmd, "the history was not written: %v", writeErr)
	}
	return err
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
