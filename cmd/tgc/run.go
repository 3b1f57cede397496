package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tgc/engine"
	"tgc/internal/atomicfile"
	"tgc/llm"
	"tgc/llm/chat"
	"tgc/llm/chat/shell"
	"tgc/llm/story"
)

// runFlags are the flags of run.
type runFlags struct {
	device    deviceFlags
	trace     string
	prompt    string
	file      string
	system    string
	tokens    string
	n         int
	context   int
	sampling  samplingFlags
	template  string
	verbose   bool
	logits    string
	splitAt   int
	ignoreEOS bool
	perGraph  int
	chat      bool
	json      bool
	drawn     bool // the seed is not the user's
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
			"  tgc run model.gguf -f prompt.txt --stop END --repeat-penalty 1.1\n" +
			"  tgc run model.gguf --chat --system 'Be brief.' -p 'What is a compiler?'\n" +
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
	f.StringVarP(&o.prompt, "prompt", "p", "", "text to go on from; - reads it from stdin")
	f.StringVarP(&o.file, "file", "f", "", "read the prompt from this file (- for stdin); a newline at its end is dropped")
	f.StringVar(&o.tokens, "tokens", "", "prompt as token ids, 1,2,3, instead of text")
	f.IntVarP(&o.n, "n", "n", 128, "most tokens to generate; -1 until the context is full")
	o.sampling.register(f)
	f.Uint32Var(&o.sampling.Seed, "seed", 0, "seed of sampling: the same seed gives the same text (default: another one each time, which is printed)")
	f.IntVar(&o.context, "ctx", 0, "positions in the cache, at most the model's (default: what is needed; with -n -1 at least 4096)")
	f.StringVar(&o.logits, "logits", "", "also write raw float32 logits to this file, [positions, vocabulary]")
	f.IntVar(&o.splitAt, "split-at", 0, "feed the prompt in two parts, this many tokens first")
	f.BoolVar(&o.ignoreEOS, "ignore-eos", false, "go on after an end-of-text token")
	f.IntVar(&o.perGraph, "tokens-per-graph", 0, "on a GPU, tokens that one launch of the host generates; 0 chooses")
	f.BoolVar(&o.chat, "chat", false, "put the prompt into the model's chat template")
	f.StringVar(&o.system, "system", "", "with --chat, the system prompt")
	f.StringVar(&o.template, "template", "", "with --chat, use the chat template of this file")
	f.BoolVar(&o.verbose, "verbose-prompt", false, "print the prompt's tokens on stderr")
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end, nothing before")
	f.StringVar(&o.trace, "trace", "", "write what the queue of tegra or tegra:emu is given to this file: see tgc hcq check")
	o.device.register(f)
	o.device.registerModes(f)
	return cmd
}

// check finds what is wrong without opening anything.
func (o *runFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case given("prompt") && given("tokens"), given("prompt") && given("file"), given("file") && given("tokens"):
		return usagef("run: of -p, -f and --tokens only one can be the prompt")
	case given("chat") && !given("prompt") && !given("file"):
		return usagef("run: --chat wants a message: -p TEXT, -f FILE, or -p - for stdin")
	case (given("system") || given("template")) && !o.chat:
		return usagef("run: --system and --template are for --chat")
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
	}
	if err := o.sampling.check("run"); err != nil {
		return err
	}
	if !given("seed") && o.sampling.Temperature > 0 {
		o.sampling.Seed, o.drawn = rand.Uint32(), true
	}
	return o.device.check()
}

func (o *runFlags) run(cmd *cobra.Command, name string) (err error) {
	if err := o.check(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	loaded := working(cmd, "opening "+name)
	defer func() { loaded() }()
	m, err := openModel(ctx, name, openFile)
	loaded()
	if err != nil {
		return err
	}
	defer m.Close()
	if err := o.sampling.checkModel(m); err != nil {
		return err
	}
	prompt, err := o.promptTokens(cmd, m)
	if err != nil {
		return err
	}
	if o.verbose {
		verbosePrompt(cmd, m, prompt)
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
	endTrace, err := o.openTrace()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endTrace()) }() // after the device is closed, also of a run that failed
	dev, config, err := o.device.open(cmd)
	if err != nil {
		return err
	}
	defer dev.Close()
	config.Schedules = engine.OpenSchedules(config.CacheDir)
	defer config.Schedules.Close()
	if o.drawn {
		note(cmd, "seed: %d", o.sampling.Seed)
	}
	loaded = working(cmd, "loading and compiling "+m.Name)
	s, err := llm.NewSession(ctx, m, dev, llm.SessionOptions{Context: size, All: o.logits != "", PerGraph: o.perGraph, Mode: o.device.mode.Numeric, Cache: o.device.kv.CacheType, Config: config,
		Prepare: &llm.Preparation{Prompt: len(prompt), Sampling: o.sampling.Sampling}})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Prepare(ctx, len(prompt), o.sampling.Sampling); err != nil {
		return err
	}
	loaded()
	p, err := newPrinter(cmd.OutOrStdout(), o.json, m, o.sampling.stops)
	if err != nil {
		return err
	}
	p.begin = working(cmd, fmt.Sprintf("reading the prompt of %d tokens", len(prompt)))
	defer p.begin()
	request := llm.Request{
		Prompt: prompt, Tokens: o.n, Sampling: o.sampling.Sampling, IgnoreEOS: o.ignoreEOS, SplitAt: o.splitAt, Token: p.token,
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
	return o.report(cmd, p, dev.Name(), prompt, result)
}

// openTrace makes the file of --trace; end completes it.
func (o *runFlags) openTrace() (end func() error, err error) {
	if o.trace == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(o.trace)
	if err != nil {
		return nil, err
	}
	to := bufio.NewWriter(file)
	o.device.trace = to
	return func() error { return errors.Join(to.Flush(), file.Close()) }, nil
}

// promptTokens returns the prompt's ids. Without any, the text is empty: what a
// model puts before a text is the prompt.
func (o *runFlags) promptTokens(cmd *cobra.Command, m *llm.Model) ([]int32, error) {
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
	text, err := o.promptText(cmd)
	if err != nil {
		return nil, err
	}
	if o.chat {
		return o.chatTokens(cmd, m, text)
	}
	ids, err := m.Tokenizer.Encode(text, true, true)
	if err == nil && len(ids) == 0 {
		err = usagef("run: the prompt is empty: give one with -p TEXT or --tokens 1,2,3")
	}
	return ids, err
}

// promptText is the prompt of -p, of a file or of stdin.
func (o *runFlags) promptText(cmd *cobra.Command) (string, error) {
	if o.file == "" && o.prompt != "-" {
		return o.prompt, nil
	}
	text, err := readInput(cmd, o.file)
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), err
}

// chatTokens is a message in the model's chat template.
func (o *runFlags) chatTokens(cmd *cobra.Command, m *llm.Model, text string) ([]int32, error) {
	t, err := (&chatFlags{template: o.template}).chatTemplate(m)
	if err != nil {
		return nil, fmt.Errorf("--chat: %w", err)
	}
	messages := []chat.Message{{Role: chat.User, Content: text}}
	if o.system != "" {
		messages = []chat.Message{{Role: chat.System, Content: o.system}, messages[0]}
	}
	return t.Prompt(cmd.Context(), messages, nil)
}

// verbosePrompt lists the prompt's tokens, as llama.cpp does.
func verbosePrompt(cmd *cobra.Command, m *llm.Model, prompt []int32) {
	note(cmd, "prompt of %d tokens:", len(prompt))
	for _, id := range prompt {
		text := ""
		if m.Tokenizer != nil {
			text = strconv.Quote(string(m.Tokenizer.Piece(id)))
		}
		note(cmd, "%6d %s", id, text)
	}
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

// printer turns tokens into text as they come (ids where there is no vocabulary), looks
// for stops in it, and prints it.
type printer struct {
	out    io.Writer
	quiet  bool
	escape bool // the text goes to a terminal
	next   func(id int32) string
	flush  func() string
	stops  *llm.StopMatcher
	text   strings.Builder
	tokens int
	// stopped: a text of --stop came.
	stopped bool
	begin   func() // is called before anything is printed
	// vocabulary: tokens have a text.
	vocabulary bool
}

func newPrinter(out io.Writer, quiet bool, m *llm.Model, stops []string) (*printer, error) {
	matcher, err := llm.NewStopMatcher(stops)
	p := &printer{out: out, quiet: quiet, escape: isTerminal(out), stops: matcher}
	if m.Tokenizer != nil {
		s := m.Tokenizer.NewStream(false)
		p.next, p.flush, p.vocabulary = s.Next, s.Flush, true
		return p, err
	}
	p.next = func(id int32) string {
		if p.tokens == 1 {
			return fmt.Sprint(id)
		}
		return fmt.Sprint(" ", id)
	}
	p.flush = func() string { return "" }
	return p, err
}

func (p *printer) token(id int32) error {
	p.begin()
	p.tokens++
	text, stopped := p.stops.Next(p.next(id))
	if err := p.print(text); err != nil {
		return err
	}
	if stopped {
		p.stopped = true
		return llm.ErrStop
	}
	return nil
}

func (p *printer) print(text string) error {
	p.text.WriteString(text)
	if p.quiet || text == "" {
		return nil
	}
	if p.escape {
		text = shell.Printable(text)
	}
	_, err := io.WriteString(p.out, text)
	return err
}

// end completes the text and its last line.
func (p *printer) end() error {
	p.begin()
	text, _ := p.stops.Next(p.flush())
	if err := errors.Join(p.print(text), p.print(p.stops.Flush())); err != nil {
		return err
	}
	if all := p.text.String(); p.quiet || all == "" || strings.HasSuffix(all, "\n") {
		return nil
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
	Seed         uint32  `json:"seed"`
	// Reason is why it ended: "stop" at an end of text or a --stop, else "length".
	Reason string `json:"finish_reason"`
}

func (o *runFlags) report(cmd *cobra.Command, p *printer, device string, prompt []int32, r *llm.Result) error {
	report := runReport{
		PromptTokens: prompt, Tokens: append([]int32{}, r.Tokens...),
		Prefill: perSecond(r.PrefillTokens, r.Prefill), Decode: perSecond(r.DecodeTokens, r.Decode),
		Device: device, Mode: o.device.mode.String(), Seed: o.sampling.Seed, Reason: "length",
	}
	if r.Ended {
		report.Reason = "stop"
	}
	if p.vocabulary {
		report.Text = p.text.String()
	}
	if o.json {
		return printJSON(cmd, report)
	}
	if file, ok := cmd.ErrOrStderr().(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		note(cmd, "prompt %d tokens at %.1f tok/s, %d generated at %.1f tok/s (%s); ended: %s",
			len(prompt), report.Prefill, len(r.Tokens), report.Decode, (r.Prefill + r.Decode).Round(time.Millisecond), o.ended(p, r))
	}
	return nil
}

// ended says why a text ended.
func (o *runFlags) ended(p *printer, r *llm.Result) string {
	switch {
	case p.stopped:
		return "a text of --stop"
	case r.Ended:
		return "the model's end of text"
	case o.n >= 0 && len(r.Tokens) >= o.n:
		return fmt.Sprintf("%d tokens (-n)", o.n)
	}
	return "the context is full (--ctx)"
}
