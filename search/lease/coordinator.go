package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Coordinator gives jobs to workers and takes their results.
type Coordinator struct {
	URL string // where workers find it

	broker *process
	told   func(Event) // of holders and workers

	mu      sync.Mutex
	results map[string]chan Result // of jobs that were submitted, one each
	err     error
	gone    chan struct{}
}

// NewCoordinator starts a broker. What jobs come to is told, from another goroutine, as it goes.
func NewCoordinator(ctx context.Context, program string, serve Serve, told func(Event)) (*Coordinator, error) {
	broker, err := start(program, Request{Serve: &serve})
	if err != nil {
		return nil, err
	}
	c := &Coordinator{broker: broker, told: told, results: make(map[string]chan Result), gone: make(chan struct{})}
	first, err := broker.ready(ctx)
	if err != nil {
		broker.end(broker.drain)
		return nil, err
	}
	c.URL = first.URL
	go c.listen()
	return c, nil
}

// ready waits for the first event.
func (p *process) ready(ctx context.Context) (*Ready, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case e, ok := <-p.events:
		switch {
		case !ok:
			return nil, errors.New(Program + " ended at once")
		case e.Error != "":
			return nil, fmt.Errorf("%s: %s", Program, e.Error)
		case e.Ready == nil:
			return nil, errors.New(Program + " says something else than that it is ready: is it of this version?")
		}
		return e.Ready, nil
	}
}

// listen hears the broker until it is gone.
func (c *Coordinator) listen() {
	err := errors.New(Program + " has ended")
	for e := range c.broker.events {
		switch {
		case e.Error != "":
			err = fmt.Errorf("%s: %s", Program, e.Error)
		case e.Result != nil:
			c.take(*e.Result)
		case c.told != nil:
			c.told(e)
		}
	}
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	close(c.gone)
}

// take keeps the first result of a job.
func (c *Coordinator) take(r Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if waiting := c.results[r.ID]; waiting != nil {
		select {
		case waiting <- r:
		default:
		}
	}
}

// Submit gives a job to workers, unless it is there already: then the worker that has it goes on,
// and its result is the one that there is.
func (c *Coordinator) Submit(job Job) error {
	if err := job.Check(); err != nil {
		return err
	}
	c.mu.Lock()
	known := c.results[job.ID] != nil
	if !known {
		c.results[job.ID] = make(chan Result, 1)
	}
	c.mu.Unlock()
	if known {
		return nil
	}
	return c.broker.ask(Request{Submit: &job})
}

// Wait waits for the result of a job that was submitted, once.
func (c *Coordinator) Wait(ctx context.Context, id string) (Result, error) {
	c.mu.Lock()
	waiting := c.results[id]
	c.mu.Unlock()
	if waiting == nil {
		return Result{}, fmt.Errorf("job %s was not submitted", id)
	}
	select {
	case r := <-waiting:
		return r, nil
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	case <-c.gone:
		c.mu.Lock()
		defer c.mu.Unlock()
		return Result{}, c.err
	}
}

// Forget removes a job whose result was taken in, so that it can be submitted again.
func (c *Coordinator) Forget(id string) error {
	c.mu.Lock()
	delete(c.results, id)
	c.mu.Unlock()
	return c.broker.ask(Request{Forget: id})
}

// Close ends the broker; what is left to do stays in its store.
func (c *Coordinator) Close() { c.broker.end(func() { <-c.gone }) }
