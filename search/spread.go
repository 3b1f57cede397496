package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"tgc/ir"
	"tgc/search/database"
	"tgc/search/lease"
)

// Queue gives jobs to workers: a lease.Coordinator.
type Queue interface {
	Submit(job lease.Job) error
	Wait(ctx context.Context, id string) (lease.Result, error)
	Forget(id string) error
}

// Spread lets workers on other machines search the kernels of steps. What they find are plans that
// are offered: values and times are those of this machine, and the step decides here.
type Spread struct {
	queue Queue
	say   func(format string, args ...any)

	mu    sync.Mutex
	heads map[string]string   // what is said of a task, by id
	found map[string]*Finding // of tasks that have ended
}

// NewSpread makes one. say hears of workers, too (Told).
func NewSpread(queue Queue, say func(format string, args ...any)) *Spread {
	return &Spread{queue: queue, say: say, heads: make(map[string]string), found: make(map[string]*Finding)}
}

// Told says what a coordinator tells.
func (s *Spread) Told(e lease.Event) {
	switch {
	case e.Workers != nil && *e.Workers == 0:
		s.say("no worker is connected")
	case e.Workers != nil:
		s.say("workers: %d", *e.Workers)
	case e.Held != nil && len(e.Held.Workers) > 0 && e.Held.Note != "":
		s.mu.Lock()
		head := s.heads[e.Held.ID]
		s.mu.Unlock()
		s.say("%s: %s: %s", head, printable(e.Held.Workers[len(e.Held.Workers)-1]), printable(e.Held.Note))
	}
}

// submit gives a task to workers. One that is there already is not given again, unless it is
// wanted anew.
func (s *Spread) submit(task *Task, queue, head string, anew bool) error {
	id := task.id()
	s.mu.Lock()
	known := s.heads[id] != ""
	s.heads[id] = head
	s.mu.Unlock()
	if known {
		return nil
	}
	if anew {
		if err := s.queue.Forget(id); err != nil {
			return err
		}
	}
	body, err := json.Marshal(task)
	if err != nil {
		return err
	}
	return s.queue.Submit(lease.Job{ID: id, Queue: queue, Body: body})
}

// wait waits for what a worker finds. An error is the end of the queue or of the context: whatever
// a worker sends is a finding.
func (s *Spread) wait(ctx context.Context, task *Task) (*Finding, error) {
	id := task.id()
	s.mu.Lock()
	f := s.found[id]
	s.mu.Unlock()
	if f != nil {
		return f, nil
	}
	r, err := s.queue.Wait(ctx, id)
	if err != nil {
		return nil, err
	}
	switch f, err = readFinding(r.Body, task.Key); {
	case len(r.Aside) > 0:
		f = &Finding{Key: task.Key, Aside: r.Aside}
	case err != nil:
		f = &Finding{Key: task.Key, Error: printable(fmt.Sprintf("worker %s: %v", r.Worker, err))}
	case f.Error != "":
		f.Error = printable("worker " + r.Worker + ": " + f.Error)
	}
	s.mu.Lock()
	s.found[id] = f
	s.mu.Unlock()
	return f, nil
}

// settle removes a task whose finding was used. One that was set aside stays, so that the next
// run does not lose workers with it again.
func (s *Spread) settle(task *Task, f *Finding) error {
	if len(f.Aside) > 0 {
		return nil
	}
	return s.queue.Forget(task.id())
}

// submit gives the kernels of a step to workers, each with its share of a budget.
func (t *tuning) submit(budget time.Duration) error {
	total := 0.0
	for _, k := range t.result.Kernels {
		if t.searched(k) {
			total += k.Share
		}
	}
	t.tasks = make(map[*TunedKernel]*Task)
	for i, k := range t.result.Kernels {
		if !t.searched(k) {
			continue
		}
		task := t.task(k)
		task.Budget = max(time.Duration(float64(budget)*(1-forSteps)*k.Share/total), leastTime)
		t.tasks[k] = task
		if err := t.options.Spread.submit(task, QueueOf(t.step.Compiled.Target), t.head(i, k), t.options.Again); err != nil {
			return err
		}
	}
	return nil
}

// searched says that a kernel takes long enough, and that the database does not have it.
func (t *tuning) searched(k *TunedKernel) bool {
	if k.Share < leastShare || t.options.Again {
		return k.Share >= leastShare
	}
	_, ok := settled(t.options.DB, t.key(k), k.Kernel.AST, k.Kernel.Plan)
	return !ok
}

// task is a kernel for a worker.
func (t *tuning) task(k *TunedKernel) *Task {
	o := &t.options.Search
	task := &Task{
		Key: t.key(k), Kernel: k.Kernel.Name, Text: ir.Text(k.Kernel.AST), Board: database.BoardOf(t.step.Compiled.Target), Baseline: k.Kernel.Plan.String(),
		Beam: o.Beam, Priced: o.Priced, Seed: o.Seed, Scratch: o.Scratch, KeepBits: t.options.Bench.KeepBits,
	}
	for _, p := range t.offered(k) {
		task.Extra = append(task.Extra, p.String())
	}
	return task
}

// confirm tries what a worker found on this device: only what is faster here, with right values,
// wins. The log has what the worker tried.
func (t *tuning) confirm(ctx context.Context, i int, k *TunedKernel, f *Finding) (*Result, error) {
	switch {
	case len(f.Aside) > 0:
		return nil, fmt.Errorf("set aside, as workers were lost with it: %s", printable(strings.Join(f.Aside, ", ")))
	case f.Error != "":
		return nil, errors.New(f.Error)
	}
	plans, err := plansOf(f.Plans)
	if err != nil {
		return nil, err
	}
	baseline := Outcome{Plan: k.Kernel.Plan.String()}
	found := &Result{Before: baseline, After: baseline}
	if len(plans) > 0 || t.options.Log != nil {
		options := t.options.Search
		options.Only, options.Scratch, options.Budget, options.Extra = true, false, 0, plans
		if found, err = t.try(ctx, i, k, options, f.Outcomes); err != nil {
			return nil, err
		}
	}
	found.Outcomes, found.Complete = f.Outcomes, f.Complete
	return found, nil
}
