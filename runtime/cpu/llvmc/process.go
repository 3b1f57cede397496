package llvmc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"tgc/internal/childprocess"
)

// child is one compiler process, used by one goroutine at a time.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr headBuffer
}

// startTimeout bounds the start of a child: 18 ms with libLLVM 19 in the page
// cache, 100 ms without,
// most of it loading the library.
const startTimeout = 30 * time.Second

// startChild starts a child and waits for its hello.
func startChild(ctx context.Context, s settings) (*child, hello, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("the compiler child did not start within %v: %w", startTimeout, context.DeadlineExceeded))
	defer cancel()
	exe, err := childprocess.Executable()
	if err != nil {
		return nil, hello{}, err
	}
	c := &child{cmd: exec.Command(exe)}
	// A dying child should report LLVM's message, not its goroutines.
	c.cmd.Env = append(os.Environ(), childEnv+"=1", "GOTRACEBACK=none")
	c.cmd.Stderr = &c.stderr
	childprocess.Detach(c.cmd) // a chat ends an answer by Ctrl-C and compiles again
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, hello{}, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, hello{}, err
	}
	c.out = bufio.NewReaderSize(out, 1<<16)
	if err := c.cmd.Start(); err != nil {
		return nil, hello{}, fmt.Errorf("start the compiler child: %w", err)
	}
	var greeting hello
	err = c.converse(ctx, func() error {
		return errors.Join(writeJSON(c.in, s), readJSON(c.out, &greeting))
	})
	switch {
	case err != nil:
		return nil, hello{}, err
	case greeting.Error != "":
		c.stop()
		if greeting.NoLLVM {
			text := strings.TrimPrefix(greeting.Error, ErrNoLLVM.Error()+": ")
			return nil, hello{}, fmt.Errorf("%w: %s", ErrNoLLVM, text)
		}
		return nil, hello{}, errors.New(greeting.Error)
	}
	return c, greeting, nil
}

// ask sends a request and returns the reply, status byte first. After an
// error the child is dead.
func (c *child) ask(ctx context.Context, ir []byte) (reply []byte, err error) {
	err = c.converse(ctx, func() error {
		if err := writeFrame(c.in, ir); err != nil {
			return err
		}
		if reply, err = readFrame(c.out); err == nil && len(reply) == 0 {
			err = errors.New("empty reply")
		}
		return err
	})
	return reply, err
}

// converse runs one exchange with the child and kills it if the context ends
// first. On failure the child is killed and reaped, and the error tells how
// it ended and what it said.
func (c *child) converse(ctx context.Context, exchange func() error) error {
	if err := ctx.Err(); err != nil {
		c.stop()
		return context.Cause(ctx)
	}
	stopKill := context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() }) // it may have ended by itself
	err := exchange()
	killed := !stopKill()
	if err == nil && !killed {
		return nil
	}
	ended := c.reap()
	if killed {
		return fmt.Errorf("compiler child killed: %w", context.Cause(ctx))
	}
	return fmt.Errorf("compiler child died (%s): %w%s", ended, err, c.stderr.quote())
}

// stop ends a child that is idle or useless.
func (c *child) stop() { c.reap() }

// reap closes the pipe, kills the child and waits; it tells how it ended.
func (c *child) reap() string {
	_ = c.in.Close() // the process is going away either way
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
		case <-time.After(time.Second):
			_ = c.cmd.Process.Kill() // it did not end on end of file
		}
	}()
	err := c.cmd.Wait()
	close(ended)
	if err != nil {
		return err.Error()
	}
	return c.cmd.ProcessState.String()
}

// headBuffer keeps the first bytes written to it: LLVM's message comes
// first, stack dumps after.
type headBuffer struct {
	mu   sync.Mutex
	text []byte
}

// headSize is the number of bytes of a child's standard error worth keeping.
const headSize = 4096

func (b *headBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p[:min(len(p), headSize-len(b.text))]...)
	return len(p), nil
}

// quote is what the child said, for an error message: everything before
// the dumps of LLVM's and Go's own crash handlers.
func (b *headBuffer) quote() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := string(b.text)
	for _, dump := range []string{"PLEASE submit a bug report", "Stack dump:", "SIGABRT: abort", "SIGSEGV: ", "fatal error: "} {
		if before, _, found := strings.Cut(text, dump); found && strings.TrimSpace(before) != "" {
			text = before
		}
	}
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return ": " + text
}
