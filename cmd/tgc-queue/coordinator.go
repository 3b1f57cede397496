package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tgc/search/lease"
)

// coordinator answers the requests of tgc tune --serve.
type coordinator struct {
	*store
	broker *broker
	jobs   jetstream.Stream
	dir    string // of the store
	lease  time.Duration
	say    func(lease.Event)

	mu     sync.Mutex
	wanted map[string]string // queue of each job that was submitted and has no result
	queues map[string]bool   // that have a consumer
	seen   map[string]*seen  // leases of jobs that have lost as many workers as may be
}

// seen is a lease as it was when it was looked at last. Times are counted by looking, not by a
// clock: a machine that was suspended has seen nobody late.
type seen struct {
	revision uint64
	looks    int // since it has changed
}

// serve coordinates until there are no more requests.
func serve(ctx context.Context, s *lease.Serve, asked <-chan lease.Request, say func(lease.Event)) error {
	b, err := listen(s)
	if err != nil {
		return err
	}
	defer b.close()
	c := &coordinator{broker: b, dir: s.Store, lease: s.Lease, say: say, wanted: make(map[string]string), queues: make(map[string]bool), seen: make(map[string]*seen)}
	if c.store, c.jobs, err = create(ctx, b.conn); err != nil {
		return ended(ctx, err)
	}
	results, err := c.results.WatchAll(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	holders, err := c.leases.WatchAll(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	say(lease.Event{Ready: &lease.Ready{URL: b.url(s.Cert != "")}})
	return ended(ctx, c.loop(ctx, asked, results.Updates(), holders.Updates()))
}

// ended forgets an error that the end has made.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lookTime is how often workers are counted and lost leases looked for, at least.
const lookTime = time.Second

func (c *coordinator) loop(ctx context.Context, asked <-chan lease.Request, results, holders <-chan jetstream.KeyValueEntry) error {
	ticker := time.NewTicker(c.looking())
	defer ticker.Stop()
	workers := -1
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case r, ok := <-asked:
			if !ok {
				return nil
			}
			err = c.answer(ctx, r)
		case entry := <-results:
			if entry != nil && entry.Operation() == jetstream.KeyValuePut {
				c.report(resultOf(entry))
			}
		case entry := <-holders:
			c.tell(entry)
		case <-ticker.C:
			if n := c.broker.server.NumClients() - 1; n != workers {
				workers = n
				c.say(lease.Event{Workers: &n})
			}
			err = c.setAside(ctx)
		}
		if err != nil {
			return err
		}
	}
}

func (c *coordinator) looking() time.Duration { return min(c.lease/2, lookTime) }

func (c *coordinator) answer(ctx context.Context, r lease.Request) error {
	switch {
	case r.Submit != nil:
		if err := c.submit(ctx, r.Submit); err != nil {
			return fmt.Errorf("job %s cannot be stored in %s: %w", r.Submit.ID, c.dir, err)
		}
		return nil
	case r.Forget != "":
		return c.forget(ctx, r.Forget)
	}
	return errors.New("a request that no coordinator makes")
}

// submit puts a job into its queue, unless it is there or has a result.
func (c *coordinator) submit(ctx context.Context, job *lease.Job) error {
	if err := job.Check(); err != nil {
		return err
	}
	c.want(job.ID, job.Queue)
	r, ok, err := c.result(ctx, job.ID)
	if ok {
		c.report(r)
	}
	if ok || err != nil {
		return err
	}
	if !c.queues[job.Queue] {
		_, err := c.jobs.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: job.Queue, FilterSubject: subjectOf(job.Queue, "*"), AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.lease, MaxDeliver: -1,
		})
		if err != nil {
			return err
		}
		c.queues[job.Queue] = true
	}
	subject := subjectOf(job.Queue, job.ID)
	_, err = c.jobs.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		_, err = c.js.Publish(ctx, subject, job.Body)
	}
	return err
}

func (c *coordinator) want(id, queue string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted[id] = queue
}

// report tells of a result, once.
func (c *coordinator) report(r lease.Result) {
	c.mu.Lock()
	_, wanted := c.wanted[r.ID]
	delete(c.wanted, r.ID)
	c.mu.Unlock()
	if wanted {
		c.say(lease.Event{Result: &r})
	}
}

// tell tells who has a job.
func (c *coordinator) tell(entry jetstream.KeyValueEntry) {
	if entry == nil || entry.Operation() != jetstream.KeyValuePut {
		return
	}
	if h := holderOf(entry); c.queueOf(h.ID) != "" {
		c.say(lease.Event{Held: &h})
	}
}

func (c *coordinator) queueOf(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted[id]
}

// forget removes all that is known of a job whose result was taken in. Its lease goes first: what
// a worker that is late would store then, it stores no more.
func (c *coordinator) forget(ctx context.Context, id string) error {
	for _, records := range []jetstream.KeyValue{c.leases, c.results} {
		if err := records.Delete(ctx, id); err != nil {
			return err
		}
	}
	return c.remove(ctx, subjectOf("*", id))
}

// remove removes a job that nobody has taken to its end.
func (c *coordinator) remove(ctx context.Context, subject string) error {
	return c.jobs.Purge(ctx, jetstream.WithPurgeSubject(subject))
}

// setAside ends jobs that have lost as many workers as may be, the last one two leases ago.
func (c *coordinator) setAside(ctx context.Context) error {
	c.mu.Lock()
	ids := slices.Collect(maps.Keys(c.wanted))
	c.mu.Unlock()
	for _, id := range ids {
		h, revision, err := c.holder(ctx, id)
		if err != nil {
			return err
		}
		if len(h.Workers) < lease.Attempts {
			continue
		}
		if last := c.seen[id]; last == nil || last.revision != revision {
			c.seen[id] = &seen{revision: revision}
			continue
		}
		if c.seen[id].looks++; time.Duration(c.seen[id].looks)*c.looking() < 2*c.lease {
			continue
		}
		if err := c.finish(ctx, &lease.Result{ID: id, Aside: h.Workers}); err != nil {
			return err
		}
		if err := c.remove(ctx, subjectOf("*", id)); err != nil {
			return err
		}
	}
	return nil
}
