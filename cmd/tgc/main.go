package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tgc/search"
)

// Exit statuses. An interrupted job ends as a shell expects of SIGINT.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 128 + int(syscall.SIGINT)
)

func main() {
	search.MaybeChild(openForChild)
	collectRarely()
	os.Exit(execute(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// collectRarely lets the heap grow fivefold before a collection: compiling makes much
// garbage of some 50 MB at a time, and collecting it took a quarter of the processor's
// time. GOGC decides where it is set.
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// streams are where a command reads and prints.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// execute runs one command line and returns the exit status.
func execute(args []string, io streams) (status int) {
	ctx, stop := interruptible()
	defer stop()
	defer func() {
		if level := os.Getenv("TGC_DEBUG"); level != "" && level != "0" {
			return // let the runtime print the stack
		}
		if cause := recover(); cause != nil {
			fmt.Fprintln(io.err, "tgc: internal error: a bug in tgc; TGC_DEBUG=1 shows where. Please report it")
			status = exitFailed
		}
	}()
	started := false
	root := newRoot(io, &started)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		fmt.Fprintln(io.err, "tgc: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(io.err, paint(io.err, red, "tgc:")+" "+oneLine(err.Error()))
	var usage *usageError
	if !started || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// interruptible returns a context that the first SIGINT or SIGTERM ends; the
// second one ends the process.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // restores the default action of the signals
	}()
	return ctx, stop
}

// usageError is a fault of the command line itself.
type usageError struct{ text string }

// Error is the text alone.
func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// newRoot makes the command tree. started is set once a command line is found
// well-formed and its job begins.
func newRoot(io streams, started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "tgc",
		Short: "A kernel compiler that runs language models",
		Long: "tgc compiles a model's graph to a few fast kernels and runs them.\n\n" +
			"Results go to stdout, everything else to stderr. The exit status is 0 on success,\n" +
			"1 for a failed job, 2 for bad usage.",
		Example: "  tgc run model.gguf -p 'Once upon a time'\n" +
			"  tgc run -p 'Once upon a time'     # the built-in model\n" +
			"  tgc compile tiny --target llvm -o /tmp/kernels",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			_ = cmd.Usage() // only prints
			return usagef("no command given")
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.Version = version
	root.SetVersionTemplate(versionText())
	root.SetFlagErrorFunc(unknownFlag)
	helpWithEnvironment(root)
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	for _, make := range []func() *cobra.Command{
		newRun, newCompile, newOpt, newInspect, newTokenize, newBench, newTune, newViz, newSynth, newConvert, newDevices, newVersion, newChat, newHCQ, newCache, newMan,
	} {
		cmd := make()
		for _, c := range append(cmd.Commands(), cmd) {
			if c.Args != nil {
				c.Args = withUsage(c.Args)
			}
			job := c.RunE
			c.RunE = func(c *cobra.Command, args []string) error {
				*started = true
				return job(c, args)
			}
		}
		complete(cmd)
		root.AddCommand(cmd)
	}
	return root
}

// knownCommand refuses words that are no command, with those that were perhaps meant.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		text += ": is it " + strings.Join(meant, " or ") + "?"
	}
	return usagef("%s (tgc --help lists them)", text)
}

// messageLimit bounds an error message, in bytes: it may quote an untrusted
// file, and a terminal shows a few lines.
const messageLimit = 590

// oneLine makes a message safe to print: one line, no control characters, valid
// UTF-8, of bounded length.
func oneLine(message string) string {
	var b strings.Builder
	for i := 0; i < len(message) && b.Len() < messageLimit; {
		r, n := utf8.DecodeRuneInString(message[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, message[i])
		case r == '\n':
			b.WriteString("; ")
		case r == '\t':
			b.WriteByte(' ')
		case unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	if b.Len() >= messageLimit {
		b.WriteString("...")
	}
	return b.String()
}
