package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Handler does a job, and tells how far it is. Its context ends when another worker has the job.
// An error ends the worker.
type Handler func(ctx context.Context, body json.RawMessage, note func(text string)) (json.RawMessage, error)

// renewals are within a lease: two may be late.
const renewals = 3

// errLost is why a job is given up.
var errLost = errors.New("another worker has the job")

// Work does jobs until the context ends, one at a time. What it has then it gives back.
func Work(ctx context.Context, program string, server Server, handle Handler) error {
	broker, err := start(program, Request{Work: &server})
	if err != nil {
		return err
	}
	defer broker.end(broker.drain)
	if _, err := broker.ready(ctx); err != nil {
		return err
	}
	for {
		if err := broker.ask(Request{Next: true}); err != nil {
			return err
		}
		job, err := broker.job(ctx)
		if err != nil {
			return err
		}
		if err := broker.do(ctx, job, server.Name, handle); err != nil {
			return err
		}
	}
}

// job waits for one.
func (p *process) job(ctx context.Context) (*Leased, error) {
	e, err := p.next(ctx, func(e Event) bool { return e.Job != nil })
	return e.Job, err
}

// next waits for an event.
func (p *process) next(ctx context.Context, wanted func(Event) bool) (Event, error) {
	for {
		select {
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		case e, ok := <-p.events:
			switch {
			case !ok:
				return e, errors.New(Program + " has ended")
			case e.Error != "":
				return e, fmt.Errorf("%s: %s", Program, e.Error)
			case wanted(e):
				return e, nil
			}
		}
	}
}

// done is how a handler ended.
type done struct {
	body json.RawMessage
	err  error
}

// do does a job while its lease is renewed.
func (p *process) do(ctx context.Context, job *Leased, worker string, handle Handler) error {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	notes, finished := make(chan string, 1), make(chan done, 1)
	go func() {
		body, err := handle(own, job.Body, func(text string) {
			select {
			case notes <- text:
			default: // the last one has not been sent
			}
		})
		finished <- done{body, err}
	}()
	ticker := time.NewTicker(max(job.Lease/renewals, time.Millisecond))
	defer ticker.Stop()
	for text := ""; ; {
		select {
		case text = <-notes:
		case <-ticker.C:
			if err := p.ask(Request{Renew: &Holder{ID: job.ID, Note: text}}); err != nil {
				return err
			}
		case e, ok := <-p.events:
			switch {
			case !ok:
				return errors.New(Program + " has ended")
			case e.Error != "":
				return fmt.Errorf("%s: %s", Program, e.Error)
			case e.Lost == job.ID:
				cancel(errLost)
			}
		case d := <-finished:
			return p.finish(ctx, own, job, worker, d)
		}
	}
}

// finish says what became of a job.
func (p *process) finish(ctx, own context.Context, job *Leased, worker string, d done) error {
	switch {
	case errors.Is(context.Cause(own), errLost):
		return nil
	case d.err != nil || ctx.Err() != nil:
		if err := p.ask(Request{GiveBack: job.ID}); err != nil || d.err == nil {
			return errors.Join(err, context.Cause(ctx))
		}
		return d.err
	}
	r := &Result{ID: job.ID, Worker: worker, Body: d.body}
	if err := r.Check(); err != nil {
		return err
	}
	if err := p.ask(Request{Done: r}); err != nil {
		return err
	}
	_, err := p.next(ctx, func(e Event) bool { return e.Stays == job.ID })
	return err
}
