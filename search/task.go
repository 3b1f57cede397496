package search

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/search/database"
	"tgc/search/lease"
	"tgc/target"
)

// Task is a kernel that a worker on another machine searches: its text, plans and numbers, never
// code. The worker has a board of the same kind; what it believes of a task it has checked.
type Task struct {
	Key      database.Key  `json:"key"`
	Kernel   string        `json:"kernel"` // its name, for people
	Text     string        `json:"text"`   // its canonical form
	Board    string        `json:"board"`
	Baseline string        `json:"baseline"`
	Extra    []string      `json:"extra,omitempty"`
	Budget   time.Duration `json:"budget"`
	Beam     int           `json:"beam"`
	Priced   int           `json:"priced"`
	Seed     uint64        `json:"seed"`
	Scratch  bool          `json:"scratch,omitempty"`
	KeepBits bool          `json:"keep_bits,omitempty"`
}

// Finding is what a worker found. Its plans are candidates: who asked tries them himself.
type Finding struct {
	Key      database.Key `json:"key"`
	Plans    []string     `json:"plans"` // faster than the baseline there, the fastest first
	Complete bool         `json:"complete"`
	Outcomes []Outcome    `json:"outcomes"`
	Error    string       `json:"error,omitempty"` // the kernel cannot be judged

	// Aside are the workers that were lost with the task, which nobody is given any more.
	Aside []string `json:"-"`
}

// Bounds of what comes from other machines.
const (
	mostExtra    = 4096 // plans offered
	mostWinners  = 16
	mostOutcomes = 1 << 18
	planBytes    = 8 << 10
	reasonBytes  = 400
	mostBudget   = 24 * time.Hour
	mostBeam     = 1 << 16
)

// ErrForeign is wrapped by the error of what another machine has sent and no search sends.
var ErrForeign = errors.New("no task or finding of a search")

// QueueOf names the queue of those who can search kernels for a target: tasks of another board or
// of another version of the Opts are in another one. How weights lie is a kernel's, not a worker's.
func QueueOf(desc *target.Desc) string {
	sum := sha256.Sum256([]byte(plan.Version() + "\n" + database.BoardOf(desc.WithoutLayout())))
	return fmt.Sprintf("%x", sum[:8])
}

// laidFor is a worker's target with the layout of weights that a board names.
func laidFor(desc *target.Desc, board string) (*target.Desc, error) {
	desc = desc.WithoutLayout()
	layouts := []*target.Desc{desc, desc.WithPlanes()}
	for bits := 1; bits <= packed.MostRecordBits && desc.CanInterleave(); bits++ {
		layouts = append(layouts, desc.WithRecords(bits))
	}
	for _, laid := range layouts {
		if database.BoardOf(laid) == board {
			return laid, nil
		}
	}
	return nil, fmt.Errorf("%w: it is for %.200q, this is %q", ErrForeign, board, database.BoardOf(desc))
}

// id names a task: what it may cost is no part of it, so that one that waits from another run is
// the same.
func (t *Task) id() string {
	c := *t
	c.Budget, c.Beam, c.Priced, c.Kernel = 0, 0, 0, ""
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // it has nothing that JSON has not
	}
	return fmt.Sprintf("%s-%.8x", t.Key, sha256.Sum256(text))
}

// check refuses what no coordinator sends, and returns the kernel.
func (t *Task) check(desc *target.Desc) (Kernel, error) {
	desc, err := laidFor(desc, t.Board)
	k := Kernel{Desc: desc}
	switch {
	case err != nil:
		return k, err
	case t.Budget <= 0 || t.Budget > mostBudget || t.Beam < 1 || t.Beam > mostBeam || t.Priced < 0 || t.Priced > mostBeam || len(t.Extra) > mostExtra:
		return k, fmt.Errorf("%w: budget %v, beam %d, %d plans by price, %d more", ErrForeign, t.Budget, t.Beam, t.Priced, len(t.Extra))
	}
	baseline, err := plansOf([]string{t.Baseline})
	if err != nil {
		return k, err
	}
	k.Plan = baseline[0]
	if k.AST, err = ir.Parse(ir.NewArena(), t.Text); err == nil {
		err = ir.VerifyKernel(k.AST)
	}
	if err != nil {
		return k, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if key := database.KeyOf(k.AST, desc); key != t.Key {
		return k, fmt.Errorf("%w: its key is %q, that of its kernel %s", ErrForeign, t.Key, key)
	}
	return k, nil
}

// plansOf parses plans from elsewhere.
func plansOf(texts []string) ([]plan.Plan, error) {
	for _, text := range texts {
		if len(text) > planBytes {
			return nil, fmt.Errorf("%w: a plan of %d bytes", ErrForeign, len(text))
		}
	}
	plans, err := parseAll(texts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return plans, nil
}

// TaskWorker searches kernels that other machines ask for.
type TaskWorker struct {
	Desc    *target.Desc
	Testers Testers
	Bench   BenchOptions // Baseline and what tasks say are theirs
	Say     func(format string, args ...any)
}

// overTime is what a task may take beyond its budget: a child starts, and the best are compared.
const overTime = 10 * time.Minute

// Do does a task: it is a lease.Handler. A task that is wrong is answered, and ends nobody.
func (w *TaskWorker) Do(ctx context.Context, body json.RawMessage, note func(text string)) (json.RawMessage, error) {
	var task Task
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	var f *Finding
	err := in.Decode(&task)
	if err == nil {
		f, err = w.search(ctx, &task, note)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		w.Say("%s: %s", printable(task.Kernel), printable(err.Error()))
		f = &Finding{Key: task.Key, Error: printable(err.Error())}
	}
	return f.body()
}

func (w *TaskWorker) search(ctx context.Context, task *Task, note func(text string)) (f *Finding, err error) {
	defer func() {
		if cause := recover(); cause != nil { // of the compiler, about a kernel that it has not made
			err = fmt.Errorf("compiler bug: %v", cause)
		}
	}()
	k, err := task.check(w.Desc)
	if err != nil {
		return nil, err
	}
	extra, err := plansOf(task.Extra)
	if err != nil {
		return nil, err
	}
	bench, options := w.Bench, DefaultOptions()
	bench.Seed, bench.KeepBits, bench.Baseline, bench.Records = task.Seed, task.KeepBits, task.Baseline, k.Desc.Records
	options.Beam, options.Budget, options.Seed, options.Scratch, options.Extra, options.Priced = task.Beam, task.Budget, task.Seed, task.Scratch, extra, task.Priced
	bench.rankFor(&options)
	options.Progress = func(p Progress) { note(p.String()) }
	ctx, cancel := context.WithTimeoutCause(ctx, task.Budget+overTime, errTime)
	defer cancel()
	tester, err := w.Testers(ctx, k.AST, bench)
	if err != nil {
		return nil, err
	}
	defer tester.Close()
	found, err := Run(ctx, k, tester, options)
	if err != nil {
		return nil, err
	}
	w.Say("%s: %d tried, %.4g us -> %.4g us", printable(task.Kernel), len(found.Outcomes), found.Before.Time, found.After.Time)
	f = &Finding{Key: task.Key, Complete: found.Complete, Outcomes: found.Outcomes}
	best := contenders(found)
	for _, o := range best[:min(len(best), mostWinners)] {
		f.Plans = append(f.Plans, o.Plan)
	}
	return f, nil
}

// body is the finding as it travels. Where there are more candidates than go into one message,
// the last are left out.
func (f *Finding) body() (json.RawMessage, error) {
	for {
		data, err := json.Marshal(f)
		if err != nil || len(data) <= lease.MostBytes {
			return data, err
		}
		f.Outcomes = f.Outcomes[:len(f.Outcomes)/2]
	}
}

// readFinding refuses what no worker sends; texts are made fit to be printed.
func readFinding(body json.RawMessage, key database.Key) (*Finding, error) {
	f := &Finding{}
	if err := json.Unmarshal(body, f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if f.Key != key || len(f.Plans) > mostWinners || len(f.Outcomes) > mostOutcomes {
		return nil, fmt.Errorf("%w: of kernel %.40q, %d plans, %d candidates", ErrForeign, f.Key, len(f.Plans), len(f.Outcomes))
	}
	if _, err := plansOf(f.Plans); err != nil {
		return nil, err
	}
	f.Error = printable(f.Error)
	for i := range f.Outcomes {
		if err := f.Outcomes[i].clean(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// statuses are all that a candidate may come to.
var statuses = []Status{Measured, Duplicate, Refused, TooLarge, TooLong, Heavy, Wrong, Crashed}

func (o *Outcome) clean() error {
	if _, err := plansOf([]string{o.Plan}); err != nil {
		return err
	}
	if !slices.Contains(statuses, o.Status) || o.Time < 0 || math.IsNaN(o.Time) || math.IsInf(o.Time, 0) {
		return fmt.Errorf("%w: a candidate that is %.20q and takes %v us", ErrForeign, o.Status, o.Time)
	}
	o.Reason, o.Source = printable(o.Reason), printable(o.Source)
	return nil
}

// printable is a text from elsewhere on one line, cut, without control characters.
func printable(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) { // also what turns the direction of text
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > reasonBytes {
		text = strings.ToValidUTF8(text[:reasonBytes], "") + ".."
	}
	return text
}
