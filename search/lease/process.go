package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"tgc/internal/childprocess"
)

// Program is the name of the broker.
const Program = "tgc-queue"

// ErrNoProgram is wrapped by the error of Find.
var ErrNoProgram = errors.New("no program " + Program)

// Find finds the broker beside the running program, or in PATH.
func Find() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), Program)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(Program)
	if err != nil {
		return "", fmt.Errorf("%w beside tgc or in PATH: in tgc's source, go build -C cmd/%s -o FOLDER/ . makes it", ErrNoProgram, Program)
	}
	return path, nil
}

// process is the broker on this side.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	events  chan Event // closed when it is gone

	mu  sync.Mutex
	out *json.Encoder
}

// endTime is how long the broker may take to write what it has, once nothing is asked any more.
const endTime = 10 * time.Second

func start(program string, first Request) (*process, error) {
	p := &process{command: exec.Command(program), events: make(chan Event)}
	p.command.Stderr = os.Stderr
	childprocess.Detach(p.command) // Ctrl-C is for tgc
	p.command.WaitDelay = endTime
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	p.in, p.out = in, json.NewEncoder(in)
	go childprocess.Answers(out, p.events)
	if err := p.ask(first); err != nil {
		p.end(p.drain)
		return nil, err
	}
	return p, nil
}

// ask sends a request, from any goroutine.
func (p *process) ask(r Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.out.Encode(r); err != nil {
		return fmt.Errorf("%s: %w", Program, err)
	}
	return nil
}

// end lets the broker end by itself, and waits for it. silent returns when it says nothing more.
func (p *process) end(silent func()) {
	_ = p.in.Close() // it may be gone already
	late := time.AfterFunc(endTime, func() { _ = p.command.Process.Kill() })
	defer late.Stop()
	silent()
	_ = p.command.Wait() // how it ended was said before
}

// drain leaves out what it still says.
func (p *process) drain() {
	for range p.events {
	}
}
