package search

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tgc/internal/childprocess"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/runtime"
)

// A kernel that hangs a GPU or reads where nothing is takes its process with it, and lowering
// cannot be stopped. So a bench can run in a child: the running program itself, started again
// with an environment variable set. Parent and child speak JSON over the child's standard input
// and output, an object a line: a Spec, then requests; the child answers each, and says before
// a candidate runs that it does, so that the parent knows whose fault a death is.

// childEnv marks a child.
const childEnv = "TGC_SEARCH_CHILD"

// Spec is what a child is for.
type Spec struct {
	Device   string       `json:"device"` // as Opener knows it
	Threads  int          `json:"threads,omitempty"`
	CacheDir string       `json:"cache_dir,omitempty"`
	Kernel   string       `json:"kernel"` // text of its canonical form
	Options  BenchOptions `json:"options"`
}

// Opener opens the device of a child.
type Opener func(ctx context.Context, spec *Spec) (runtime.Device, error)

// request asks a child to try plans, to compare them in some rounds, or what it expects of them; or to stop what it does.
type request struct {
	Plans  []string `json:"plans,omitempty"`
	Rounds int      `json:"rounds,omitempty"`
	Expect bool     `json:"expect,omitempty"`
	Stop   bool     `json:"stop,omitempty"`
}

// reply is one of: ready, a candidate that runs now or has run, the answer to a request, an error.
type reply struct {
	Ready    bool          `json:"ready,omitempty"`
	Took     time.Duration `json:"took,omitempty"` // to check and time the heuristic's plan
	Running  string        `json:"running,omitempty"`
	Ran      *Outcome      `json:"ran,omitempty"`
	Done     bool          `json:"done,omitempty"`
	Outcomes []Outcome     `json:"outcomes,omitempty"`
	Times    [][]float64   `json:"times,omitempty"`
	Stuck    bool          `json:"stuck,omitempty"` // something was given up that still goes on
	Error    string        `json:"error,omitempty"`
}

// maybeChildCalled is set once the program has shown that its main is safe to run as a child.
var maybeChildCalled atomic.Bool

// MaybeChild turns the process into a child if it was started as one, and then does not return.
// A program that uses StartChild calls it before anything else in main (or TestMain).
func MaybeChild(open Opener) {
	maybeChildCalled.Store(true)
	if os.Getenv(childEnv) == "" {
		return
	}
	os.Unsetenv(childEnv) // children of its own are of another kind
	if err := serve(open); err != nil {
		fmt.Fprintln(os.Stderr, "search child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve is the life of a child.
func serve(open Opener) error {
	replies, err := childprocess.ClaimStdout()
	if err != nil {
		return err
	}
	out := json.NewEncoder(replies)
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	var spec Spec
	if err := in.Decode(&spec); err != nil {
		return err
	}
	ctx := context.Background()
	b, err := benchOf(ctx, open, &spec)
	if err != nil {
		return out.Encode(reply{Error: err.Error()})
	}
	b.report = func(o Outcome) { // a parent that is gone ends the next read
		if o.Status == running {
			_ = out.Encode(reply{Running: o.Plan})
			return
		}
		_ = out.Encode(reply{Ran: &o})
	}
	if err := out.Encode(reply{Ready: true, Took: b.took}); err != nil {
		return err
	}
	list, stops := requests(in)
	for request := range list {
		if err := out.Encode(b.answerUntil(ctx, request, stops)); err != nil {
			return err
		}
	}
	return nil
}

// requests are read while candidates run, so that a child whose parent has died does too. Those to stop are
// passed on by themselves, before the request that follows.
func requests(in *json.Decoder) (list <-chan request, stops <-chan struct{}) {
	asked, stop := make(chan request), make(chan struct{}, 1)
	go func() {
		for {
			var r request
			switch err := in.Decode(&r); {
			case err != nil:
				os.Exit(0)
			case !r.Stop:
				asked <- r
			case len(stop) == 0:
				stop <- struct{}{}
			}
		}
	}()
	return asked, stop
}

// answerUntil is the answer to a request, or what of it there is when it is to stop.
func (b *Bench) answerUntil(ctx context.Context, r request, stops <-chan struct{}) reply {
	select {
	case <-stops: // of a request that was answered meanwhile
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stops:
			cancel()
		case <-ctx.Done():
		}
	}()
	return b.answer(ctx, r)
}

func benchOf(ctx context.Context, open Opener, spec *Spec) (*Bench, error) {
	dev, err := open(ctx, spec)
	if err != nil {
		return nil, err
	}
	ast, err := ir.Parse(ir.NewArena(), spec.Kernel)
	if err != nil {
		return nil, err
	}
	return NewBench(ctx, dev, ast, spec.Options)
}

func (b *Bench) answer(ctx context.Context, r request) (a reply) {
	plans, err := parseAll(r.Plans)
	switch {
	case err != nil:
	case r.Rounds > 0:
		a.Times, err = b.Compare(ctx, plans, r.Rounds)
	case r.Expect:
		a.Outcomes, err = b.Expect(ctx, plans)
	default:
		a.Outcomes, err = b.Try(ctx, plans)
	}
	if err != nil && ctx.Err() == nil {
		return reply{Error: err.Error()}
	}
	a.Done, a.Stuck = true, b.lost || b.stuck.Load()
	return a
}

func parseAll(texts []string) (plans []plan.Plan, err error) {
	for _, text := range texts {
		p, err := plan.Parse(text)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// Child is a Tester whose candidates run in another process. One that dies or hangs is started
// again, without the candidate at fault.
type Child struct {
	spec    Spec
	process *process
	ran     map[string]Outcome // those that a child reported, or that ended one
	run     time.Duration      // what a candidate may take to be checked and timed
	memory  int64              // what the process has once its bench is made
	Restart int                // how often a child was started again
}

// process is one life of a child.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	replies chan reply // closed when the child is gone
	log     *tail
}

// StartChild starts a child and waits for its bench: the error is that of NewBench.
func StartChild(ctx context.Context, spec Spec) (*Child, error) {
	if !maybeChildCalled.Load() {
		return nil, errors.New("search: the program does not call search.MaybeChild first in main")
	}
	c := &Child{spec: spec, ran: make(map[string]Outcome)}
	return c, c.start(ctx)
}

// startLimit is how long a device and the reference values of a kernel may take.
const startLimit = 5 * time.Minute

// A candidate that runs for so many times as long as the heuristic's plan, and for so long at
// least, hangs.
const (
	slowest  = 20
	leastRun = 3 * time.Second
)

func (c *Child) start(ctx context.Context) error {
	self, err := childprocess.Executable()
	if err != nil {
		return err
	}
	p := &process{command: exec.Command(self), replies: make(chan reply), log: &tail{}}
	p.command.Env = append(os.Environ(), childEnv+"=1")
	p.command.Stderr = p.log
	childprocess.Detach(p.command)
	p.command.WaitDelay = time.Second // a compiler that it has started may hold its standard error
	in, err := p.command.StdinPipe()
	if err != nil {
		return err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("search: start a child: %w", err)
	}
	p.in = in
	go childprocess.Answers(out, p.replies)
	c.process = p
	if err := json.NewEncoder(in).Encode(c.spec); err != nil {
		c.end()
		return fmt.Errorf("search: child: %w", err)
	}
	r, _, err := c.wait(ctx, startLimit)
	c.run = min(max(slowest*r.Took, leastRun), c.spec.Options.Limits.Run)
	c.memory = childprocess.Memory(p.command.Process.Pid)
	if err == nil && !r.Ready {
		err = errors.New("no answer")
	}
	if err != nil {
		c.end()
		return fmt.Errorf("search: child: %w", err)
	}
	return nil
}

// errDied is the end of a child, or its silence.
var errDied = errors.New("the process died")

// wait waits for a reply that is no report of a candidate, for at most so long between replies;
// running is the plan of a candidate that runs.
func (c *Child) wait(ctx context.Context, limit time.Duration) (r reply, running string, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	look := time.NewTicker(memoryTime)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return r, running, context.Cause(ctx)
		case <-look.C:
			if err := c.tooMuch(); err != nil {
				return r, running, err
			}
		case <-timer.C:
			return r, running, fmt.Errorf("%w: no answer for %v", errDied, limit)
		case got, ok := <-c.process.replies:
			switch {
			case !ok:
				return r, running, fmt.Errorf("%w: %s", errDied, c.process.log)
			case got.Error != "":
				return r, running, errors.New(got.Error)
			case got.Ready || got.Done:
				return got, "", nil
			case got.Running != "":
				running = got.Running
				timer.Reset(c.run)
			case got.Ran != nil:
				running, c.ran[got.Ran.Plan] = "", *got.Ran
				timer.Reset(limit)
			}
		}
	}
}

// memoryTime is how often the child's memory is looked at: it grows by some gigabytes a second.
const memoryTime = 100 * time.Millisecond

// errMemory is wrapped by errDied's error of a child that takes too much memory.
var errMemory = errors.New("too much memory")

// tooMuch says that a child takes more memory than a candidate may need. Others would be killed
// for it, or the whole machine stand still.
func (c *Child) tooMuch() error {
	limit := c.spec.Options.Limits.Memory
	if limit == 0 || c.memory == 0 {
		return nil // it is not bounded, or its bench is not made yet
	}
	if more := childprocess.Memory(c.process.command.Process.Pid) - c.memory; more > limit {
		return fmt.Errorf("%w: %w: %d MB, want at most %d", errDied, errMemory, more>>20, limit>>20)
	}
	return nil
}

// end kills the child.
func (c *Child) end() {
	p := c.process
	if p == nil {
		return
	}
	c.process, c.memory = nil, 0
	_ = p.command.Process.Kill() // it may be gone already
	for range p.replies {        // until the pipe is closed
	}
	_ = p.command.Wait() // killed
}

// ask sends a request, to a child of its own if there is none.
func (c *Child) ask(ctx context.Context, r request) (a reply, running string, err error) {
	if c.process == nil {
		c.Restart++
		if err := c.start(ctx); err != nil {
			return a, "", err
		}
	}
	if err := json.NewEncoder(c.process.in).Encode(r); err != nil {
		return a, "", fmt.Errorf("%w: %w", errDied, err)
	}
	limits := c.spec.Options.Limits
	a, running, err = c.wait(ctx, limits.Run+2*limits.Compile*time.Duration(1+len(r.Plans)))
	failed := err
	if ctx.Err() != nil {
		a, failed = c.stop()
	}
	if failed != nil || a.Stuck {
		c.end()
	}
	return a, running, err
}

// stopTime is how long a child may take to stop what it does: the candidate that runs comes to its end.
const stopTime = time.Second

// stop has the child stop, and returns what it has to answer. One that does is there for what is asked next: a new one
// would have to compute the kernel's values once more.
func (c *Child) stop() (a reply, err error) {
	if err := json.NewEncoder(c.process.in).Encode(request{Stop: true}); err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	a, _, err = c.wait(ctx, stopTime)
	return a, err
}

// Try is Bench.Try in the child. Where it dies, the candidate that ran is at fault, or, where
// none did, one that was compiled: they are tried one by one then.
func (c *Child) Try(ctx context.Context, plans []plan.Plan) ([]Outcome, error) {
	left := textsOf(plans)
	for alone := false; ; {
		left = slices.DeleteFunc(left, func(text string) bool { _, ran := c.ran[text]; return ran })
		if len(left) == 0 {
			break
		}
		ask := left
		if alone {
			ask = left[:1]
		}
		a, running, err := c.ask(ctx, request{Plans: ask})
		for _, o := range a.Outcomes {
			c.ran[o.Plan] = o
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return c.outcomes(plans), err
		case !errors.Is(err, errDied):
			return nil, err
		case running != "":
			c.blame(running, err)
		case alone || len(ask) == 1:
			c.blame(ask[0], err)
		default:
			alone = true
		}
	}
	return c.outcomes(plans), nil
}

// outcomes are those that are known.
func (c *Child) outcomes(plans []plan.Plan) (out []Outcome) {
	for _, text := range textsOf(plans) {
		if o, ok := c.ran[text]; ok {
			out = append(out, o)
		}
	}
	return out
}

func (c *Child) blame(plan string, err error) {
	status := Crashed
	switch {
	case errors.Is(err, errMemory):
		status = TooLarge
	case strings.Contains(err.Error(), "no answer"):
		status = TooLong
	}
	c.ran[plan] = Outcome{Plan: plan, Status: status, Reason: err.Error()}
}

func textsOf(plans []plan.Plan) (list []string) {
	for _, p := range plans {
		list = append(list, p.String())
	}
	return list
}

// Compare is Bench.Compare in the child.
func (c *Child) Compare(ctx context.Context, plans []plan.Plan, rounds int) ([][]float64, error) {
	a, running, err := c.ask(ctx, request{Plans: textsOf(plans), Rounds: rounds})
	if running != "" && errors.Is(err, errDied) {
		c.blame(running, err)
	}
	return a.Times, err
}

// Expect is Bench.Expect in the child. Nothing is expected of plans with which it dies: to lower one again by
// itself would cost as much as to try it.
func (c *Child) Expect(ctx context.Context, plans []plan.Plan) ([]Outcome, error) {
	texts := textsOf(plans)
	a, _, err := c.ask(ctx, request{Plans: texts, Expect: true})
	if errors.Is(err, errDied) && ctx.Err() == nil {
		return lists.Map(texts, func(text string) Outcome { return Outcome{Plan: text, Status: Crashed, Reason: err.Error()} }), nil
	}
	return a.Outcomes, err
}

// Close ends the child.
func (c *Child) Close() error {
	c.end()
	return nil
}

// tail keeps the last of what a child prints.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 500

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(len(t.text)-tailBytes, 0):]
	return len(p), nil
}

// String is the last of it, on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.text)), " ")
}
