package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tgc/internal/atomicfile"
	"tgc/llm"
	"tgc/llm/story"
)

// runFlags are the flags of run.
type runFlags struct {
	device    deviceFlags
	prompt    string
	tokens    string
	n         int
	context   int
	sampling  llm.Sampling
	logits    string
	splitAt   int
	ignoreEOS bool
	perGraph  int
	chat      bool
	json      bool
}

func newRun() *cobra.Command {
	var o runFlags
	cmd := &cobra.Command{
		Use:   "run [MODEL.gguf|SHAPE]",
		Short: "Generate text",
		Long: "Generate text after a prompt; tokens stream as they come. Without a model the built-in\n" +
			"\"stories\" runs: a small one, trained by tgc, that writes short simple stories.",
		Example: "  tgc run model.gguf -p 'Once upon a time' -n 64\n" +
			"  tgc run model.gguf -p 'Once upon a time' --temp 0 --json\n" +
			"  tgc run model.gguf --tokens 1,2,3 -n 8 --temp 0 --logits out.f32\n" +
			"  tgc run -p 'Once upon a time'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := story.Name
			if len(args) == 1 {
				name = args[0]
			}
			return o.run(cmd, name)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.prompt, "prompt", "p", "", "text to go on from")
	f.StringVar(&o.tokens, "tokens", "", "prompt as token ids, 1,2,3, instead of text")
	f.IntVarP(&o.n, "n", "n", 128, "most tokens to generate; -1 until the context is full")
	f.Float64Var(&o.sampling.Temperature, "temp", 0.8, "temperature; 0 always takes the likeliest token")
	f.IntVar(&o.sampling.TopK, "top-k", 40, "sample from the K likeliest tokens; 0 from all")
	f.Float64Var(&o.sampling.TopP, "top-p", 0.95, "sample from the likeliest tokens of this probability together")
	f.Uint32Var(&o.sampling.Seed, "seed", 0, "seed of sampling: the same seed gives the same text")
	f.IntVar(&o.context, "ctx", 0, "positions in the cache, at most the model's (default: what is needed; with -n -1 at least 4096)")
	f.StringVar(&o.logits, "logits", "", "also write raw float32 logits to this file, [positions, vocabulary]")
	f.IntVar(&o.splitAt, "split-at", 0, "feed the prompt in two parts, this many tokens first")
	f.BoolVar(&o.ignoreEOS, "ignore-eos", false, "go on after an end-of-text token")
	f.IntVar(&o.perGraph, "tokens-per-graph", 0, "on a GPU, tokens that one launch of the host generates; 0 chooses")
	f.BoolVar(&o.chat, "chat", false, "put the prompt into the model's chat template")
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end, nothing before")
	o.device.register(f)
	o.device.registerModes(f)
	return cmd
}

// check finds what is wrong without opening anything.
func (o *runFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case given("prompt") && given("tokens"):
		return usagef("run: -p and --tokens exclude each other")
	case given("tokens") && o.tokens == "":
		return usagef("run: --tokens names no token, want numbers such as 1,2,3")
	case given("ctx") && o.context < 1:
		return usagef("run: --ctx %d, want at least 1", o.context)
	case o.n < -1:
		return usagef("run: -n %d, want -1 or more", o.n)
	case o.perGraph < 0:
		return usagef("run: --tokens-per-graph %d, want 1 or more, or 0", o.perGraph)
	case o.splitAt < 0:
		return usagef("run: --split-at %d, want 0 or more", o.splitAt)
	case o.chat:
		return fmt.Errorf("--chat: this version renders no chat templates; give the whole prompt with -p")
	}
	if err := o.sampling.Check(); err != nil {
		return usagef("run: %v", err)
	}
	return o.device.check()
}

func (o *runFlags) run(cmd *cobra.Command, name string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	m, err := openModel(ctx, name, openFile)
	if err != nil {
		return err
	}
	defer m.Close()
	prompt, err := o.promptTokens(m)
	if err != nil {
		return err
	}
	size, err := llm.ContextSize(m, o.context, len(prompt), o.n)
	if err != nil {
		return err
	}
	file, err := createLogits(o.logits)
	if err != nil {
		return err
	}
	defer file.Abort()
	dev, config, err := o.device.open(cmd)
	if err != nil {
		return err
	}
	defer dev.Close()
	s, err := llm.NewSession(ctx, m, dev, llm.SessionOptions{Context: size, All: o.logits != "", PerGraph: o.perGraph, Mode: o.device.mode.Numeric, Config: config,
		Prepare: &llm.Preparation{Prompt: len(prompt), Sampling: o.sampling}})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Prepare(ctx, len(prompt), o.sampling); err != nil {
		return err
	}
	p := &printer{out: cmd.OutOrStdout(), quiet: o.json, model: m}
	request := llm.Request{
		Prompt: prompt, Tokens: o.n, Sampling: o.sampling, IgnoreEOS: o.ignoreEOS, SplitAt: o.splitAt, Token: p.token,
	}
	if o.logits != "" {
		request.Logits = func(rows []float32) error { return llm.WriteFloats(file, rows) }
	}
	result, err := s.Generate(ctx, request)
	if endErr := p.end(); err == nil {
		err = endErr
	}
	if err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return err
	}
	return o.report(cmd, m, dev.Name(), prompt, result)
}

// promptTokens returns the prompt's ids. Without any, the text is empty: what a
// model puts before a text is the prompt.
func (o *runFlags) promptTokens(m *llm.Model) ([]int32, error) {
	if o.tokens != "" {
		ids, err := llm.ParseTokens(o.tokens, m.Config.Vocabulary)
		if err == nil && len(ids) == 0 {
			err = usagef("run: --tokens names no token, want numbers such as 1,2,3")
		}
		return ids, err
	}
	if m.Tokenizer == nil {
		return nil, fmt.Errorf("%s holds no vocabulary: give the prompt as ids with --tokens 1,2,3", m.Name)
	}
	ids, err := m.Tokenizer.Encode(o.prompt, true, true)
	if err == nil && len(ids) == 0 {
		err = usagef("run: the prompt is empty: give one with -p TEXT or --tokens 1,2,3")
	}
	return ids, err
}

// createLogits starts the file of logits; without a name there is none, and the
// nil file's methods do nothing.
func createLogits(name string) (*logitsFile, error) {
	if name == "" {
		return nil, nil
	}
	f, err := atomicfile.Create(name)
	if err != nil {
		return nil, fmt.Errorf("--logits: %w", err)
	}
	return &logitsFile{f}, nil
}

// logitsFile is an optional atomicfile.File.
type logitsFile struct{ *atomicfile.File }

// Abort throws the file away unless it is committed.
func (f *logitsFile) Abort() {
	if f != nil {
		f.File.Abort()
	}
}

// Commit gives the file its name.
func (f *logitsFile) Commit() error {
	if f == nil {
		return nil
	}
	return f.File.Commit()
}

// printer prints tokens as they come: text, or ids where there is no
// vocabulary.
type printer struct {
	out    io.Writer
	quiet  bool
	model  *llm.Model
	next   func(id int32) string
	flush  func() string
	last   string
	tokens int
}

func (p *printer) token(id int32) error {
	if p.quiet {
		return nil
	}
	if p.next == nil {
		p.start()
	}
	p.tokens++
	return p.print(p.next(id))
}

func (p *printer) start() {
	if p.model.Tokenizer != nil {
		s := p.model.Tokenizer.NewStream(false)
		p.next, p.flush = s.Next, s.Flush
		return
	}
	p.next = func(id int32) string {
		if p.tokens == 1 {
			return fmt.Sprint(id)
		}
		return fmt.Sprint(" ", id)
	}
	p.flush = func() string { return "" }
}

func (p *printer) print(text string) error {
	if text == "" {
		return nil
	}
	p.last = text
	_, err := io.WriteString(p.out, text)
	return err
}

// end completes the text and its last line.
func (p *printer) end() error {
	if p.next == nil {
		return nil
	}
	if err := p.print(p.flush()); err != nil || p.last == "" || p.last[len(p.last)-1] == '\n' {
		return err
	}
	_, err := io.WriteString(p.out, "\n")
	return err
}

// runReport is what run --json prints.
type runReport struct {
	PromptTokens []int32 `json:"prompt_tokens"`
	Tokens       []int32 `json:"tokens"`
	Text         string  `json:"text"`
	Prefill      float64 `json:"prefill_tok_s"`
	Decode       float64 `json:"decode_tok_s"`
	Device       string  `json:"device"`
	Mode         string  `json:"mode"`
}

func (o *runFlags) report(cmd *cobra.Command, m *llm.Model, device string, prompt []int32, r *llm.Result) error {
	report := runReport{
		PromptTokens: prompt, Tokens: append([]int32{}, r.Tokens...),
		Prefill: perSecond(r.PrefillTokens, r.Prefill), Decode: perSecond(r.DecodeTokens, r.Decode),
		Device: device, Mode: o.device.mode.String(),
	}
	if m.Tokenizer != nil {
		report.Text = string(m.Tokenizer.Decode(r.Tokens, false))
	}
	if o.json {
		return printJSON(cmd, report)
	}
	if file, ok := cmd.ErrOrStderr().(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		note(cmd, "prompt %d tokens at %.4g tok/s, %d generated at %.4g tok/s (%s)",
			len(prompt), report.Prefill, len(r.Tokens), report.Decode, (r.Prefill + r.Decode).Round(time.Millisecond))
	}
	return nil
}
