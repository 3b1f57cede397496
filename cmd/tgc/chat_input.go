package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/peterh/liner"
	"golang.org/x/term"

	"tgc/llm/chat/shell"
)

// terminal reads lines that a person types: edited, with a history.
type terminal struct {
	state   *liner.State // nil where nothing can be edited
	plain   *pipe        // lines of such a terminal
	history string       // file; "" for none
}

// historyName is the file of lines typed before, in the cache's folder.
const historyName = "chat_history"

// historyFile is the path of the history, "" where there is no folder for it.
func historyFile(cacheDir string) string {
	if cacheDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		cacheDir = filepath.Join(dir, "tgc")
	}
	return filepath.Join(cacheDir, historyName)
}

// newTerminal takes the terminal over; giveBack gives it back. One that cannot move its
// cursor, or does not know how wide it is, makes lines itself: it has one mode from the
// beginning, as going from one to the other loses keys.
func newTerminal() *terminal {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width < leastWidth || !liner.TerminalSupported() {
		return &terminal{plain: newPipe(os.Stdin)}
	}
	t := &terminal{state: liner.NewLiner()}
	t.state.SetCtrlCAborts(true)
	t.state.SetMultiLineMode(true) // lines longer than the screen are wrapped
	t.state.SetCompleter(func(line string) (list []string) {
		for _, name := range shell.Names() {
			if strings.HasPrefix(name, line) && line != "" {
				list = append(list, name)
			}
		}
		return list
	})
	return t
}

// leastWidth is the columns that editing a line takes: a prompt and liner's ten.
const leastWidth = 12

// readHistory reads lines of before from a file, "" for none, which writeHistory writes.
func (t *terminal) readHistory(history string) error {
	if t.state == nil || history == "" {
		return nil
	}
	t.history = history
	f, err := os.Open(history)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	_, err = t.state.ReadHistory(f)
	return err
}

// Line reads a line.
func (t *terminal) Line(prompt string) (string, error) {
	if t.state == nil {
		fmt.Print(prompt)
		return t.plain.Line(prompt)
	}
	line, err := t.state.Prompt(prompt)
	if errors.Is(err, liner.ErrPromptAborted) {
		return "", shell.ErrAborted
	}
	if err == nil && strings.TrimSpace(line) != "" {
		t.state.AppendHistory(line)
	}
	return line, err
}

// giveBack leaves the terminal as it was.
func (t *terminal) giveBack() {
	if t != nil && t.state != nil {
		_ = t.state.Close() // never fails
	}
}

// writeHistory replaces the file at once, so that another session reads all of it.
func (t *terminal) writeHistory() error {
	if t.history == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(t.history), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(t.history), "."+historyName+".*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = t.state.WriteHistory(f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), t.history)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// pipe reads lines of any length up to inputLimit.
type pipe struct{ reader *bufio.Reader }

func newPipe(r io.Reader) *pipe { return &pipe{bufio.NewReader(r)} }

// Line reads a line; there is nobody to prompt.
func (p *pipe) Line(string) (string, error) {
	var b strings.Builder
	for {
		part, err := p.reader.ReadSlice('\n')
		b.Write(part)
		switch {
		case b.Len() > inputLimit:
			return "", fmt.Errorf("a line of more than %d bytes, which is the most that is read", inputLimit)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && b.Len() > 0, err == nil:
			return strings.TrimRight(b.String(), "\r\n"), nil
		}
		return "", err
	}
}

// signals decides what Ctrl-C means where a person types: the end of the answer. At a
// prompt the terminal hands it over as a key, so that one that comes between is late for
// an answer and means nothing. From a pipe, it is the end of the program.
type signals struct {
	mutex  sync.Mutex
	answer context.CancelFunc // of the answer that comes; nil between
	times  int                // Ctrl-C in this answer
	caught chan os.Signal
	done   chan struct{}
}

// patience is how often Ctrl-C is pressed in an answer that does not end before the
// program is ended.
const patience = 3

// catchSignals takes over SIGINT and SIGTERM; stop ends the program's job.
func catchSignals(stop context.CancelFunc, interactive bool) *signals {
	s := &signals{caught: make(chan os.Signal, 4), done: make(chan struct{})}
	signal.Notify(s.caught, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for {
			select {
			case <-s.done:
				return
			case sig := <-s.caught:
				if !interactive || sig != syscall.SIGINT || s.stopAnswer() {
					stop()
				}
			}
		}
	}()
	return s
}

// stopAnswer ends an answer, if there is one, and tells whether that is in vain.
func (s *signals) stopAnswer() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.answer == nil {
		return false
	}
	s.answer()
	s.times++
	return s.times >= patience
}

// answering is the context of an answer.
func (s *signals) answering(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancel(ctx)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answer, s.times = cancel, 0
	return own, func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.answer = nil
		cancel()
	}
}

func (s *signals) close() {
	signal.Stop(s.caught)
	close(s.done)
}
