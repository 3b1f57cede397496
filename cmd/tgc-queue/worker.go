package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tgc/search/lease"
)

// worker answers the requests of tgc tune --worker.
type worker struct {
	*store
	name  string
	queue jetstream.Consumer
	wait  time.Duration // of a lease
	held  *held
	say   func(lease.Event)
}

// held is a job that this worker has.
type held struct {
	message  jetstream.Msg
	holder   lease.Holder
	revision uint64 // of the lease
}

// Times of a worker. A coordinator may be away for long, and comes back with what it knew.
const (
	answerTime = 5 * time.Second // of one question
	pauseTime  = time.Second     // before a question is asked again
	lastTime   = 2 * time.Second // for what is said at the end
)

// work works until there are no more requests.
func work(ctx context.Context, s *lease.Server, asked <-chan lease.Request, say func(lease.Event)) error {
	conn, closed, err := connect(s)
	if err != nil {
		return err
	}
	defer conn.Close()
	opening, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	w := &worker{name: s.Name, say: say}
	if w.store, err = open(opening, conn); err != nil {
		return ended(ctx, fmt.Errorf("%s: %w", s.URL, err))
	}
	defer w.left()
	say(lease.Event{Ready: &lease.Ready{}})
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-closed:
			return err
		case r, ok := <-asked:
			if !ok {
				return nil
			}
			if err := w.answer(ctx, s.Queue, r); err != nil {
				return ended(ctx, err)
			}
		}
	}
}

// connect connects; the channel says why the connection was given up.
func connect(s *lease.Server) (*nats.Conn, <-chan error, error) {
	closed := make(chan error, 1)
	options := []nats.Option{
		nats.Name(s.Name), nats.UserInfo(workerUser, s.Token), nats.MaxReconnects(-1), nats.ReconnectWait(pauseTime),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: the coordinator is gone, waiting for it: %v\n", lease.Program, err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { fmt.Fprintf(os.Stderr, "%s: the coordinator is back\n", lease.Program) }),
		nats.ClosedHandler(func(c *nats.Conn) {
			closed <- fmt.Errorf("%s: %w", s.URL, errors.Join(errors.New("connection given up"), c.LastError()))
		}),
	}
	config, err := secure(s)
	if err != nil {
		return nil, nil, err
	}
	if config != nil {
		options = append(options, nats.Secure(config))
	}
	conn, err := nats.Connect(s.URL, options...)
	if errors.Is(err, nats.ErrNoServers) {
		err = errors.New("nobody listens there")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.URL, err)
	}
	return conn, closed, nil
}

// secure is how a connection keeps the token to itself; nil where it stays on this machine.
func secure(s *lease.Server) (*tls.Config, error) {
	address, err := url.Parse(s.URL)
	switch {
	case err != nil || address.Scheme != "nats" && address.Scheme != "tls" || address.Hostname() == "":
		return nil, fmt.Errorf("address %q: want tls://HOST:PORT or nats://HOST:PORT", s.URL)
	case address.Scheme == "nats" && !loopback(address.Hostname()):
		return nil, fmt.Errorf("address %s would send the token in the clear: want tls://", s.URL)
	case address.Scheme == "nats":
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if s.CA == "" {
		return config, nil
	}
	text, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificate in PEM form", s.CA)
	}
	return config, nil
}

func (w *worker) answer(ctx context.Context, queue string, r lease.Request) error {
	switch {
	case r.Next:
		return w.next(ctx, queue)
	case r.Renew != nil && w.held != nil && r.Renew.ID == w.held.holder.ID:
		w.renew(ctx, r.Renew.Note)
		return nil
	case r.Done != nil:
		return w.done(ctx, r.Done)
	case r.GiveBack != "" && w.held != nil && r.GiveBack == w.held.holder.ID:
		w.giveBack()
		return nil
	case r.Renew != nil || r.GiveBack != "": // of a job that was lost
		return nil
	}
	return errors.New("a request that no worker makes")
}

// next waits for a job.
func (w *worker) next(ctx context.Context, queue string) error {
	for ctx.Err() == nil {
		message, err := w.fetch(ctx, queue)
		if err == nil && message != nil {
			err = w.take(ctx, message)
		}
		if w.held != nil {
			return nil
		}
		if err != nil { // no such queue yet, or the coordinator is away
			pause(ctx)
		}
	}
	return nil
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pauseTime):
	}
}

// fetch waits a while for a message.
func (w *worker) fetch(ctx context.Context, queue string) (jetstream.Msg, error) {
	if w.queue == nil {
		asking, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		consumer, err := w.js.Consumer(asking, jobsName, queue)
		if err != nil {
			return nil, err
		}
		w.queue, w.wait = consumer, consumer.CachedInfo().Config.AckWait
	}
	batch, err := w.queue.Fetch(1, jetstream.FetchMaxWait(answerTime))
	if err != nil {
		w.queue = nil // of a coordinator that began anew
		return nil, err
	}
	select {
	case message := <-batch.Messages():
		return message, batch.Error()
	case <-ctx.Done():
		go func() { // what came too late is another's
			for message := range batch.Messages() {
				_ = message.Nak()
			}
		}()
		return nil, nil
	}
}

// take takes a lease of a job, and gives the job to tgc.
func (w *worker) take(ctx context.Context, message jetstream.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	id := message.Subject()[strings.LastIndexByte(message.Subject(), '.')+1:]
	if _, ok, err := w.result(ctx, id); err != nil || ok {
		if ok {
			_ = message.Ack() // whoever did it could not say so
		}
		return err
	}
	holder, revision, err := w.holder(ctx, id)
	if err != nil {
		return err
	}
	if len(holder.Workers) >= lease.Attempts { // the last one may only be late: the coordinator knows
		return message.NakWithDelay(w.wait)
	}
	holder.Workers, holder.Note = append(holder.Workers, w.name), ""
	if revision, err = w.hold(ctx, holder, revision); err != nil {
		return err
	}
	w.held = &held{message, holder, revision}
	w.say(lease.Event{Job: &lease.Leased{Job: lease.Job{ID: id, Body: message.Data()}, Lease: w.wait}})
	return nil
}

// renew says that a job is in progress. What the coordinator does not hear it hears the next time.
func (w *worker) renew(ctx context.Context, note string) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	w.held.holder.Note = note
	if err := w.claim(ctx); errors.Is(err, errLost) {
		w.lose()
		return
	}
	_ = w.held.message.InProgress()
}

func (w *worker) lose() {
	w.say(lease.Event{Lost: w.held.holder.ID})
	w.held = nil
}

// claim writes the lease anew. One that was written without an answer is this worker's still.
func (w *worker) claim(ctx context.Context) error {
	h := w.held
	revision, err := w.hold(ctx, h.holder, h.revision)
	if errors.Is(err, errLost) {
		now, seen, problem := w.holder(ctx, h.holder.ID)
		if n := len(now.Workers); problem != nil || n != len(h.holder.Workers) || now.Workers[n-1] != w.name {
			return errors.Join(errLost, problem)
		}
		revision, err = w.hold(ctx, h.holder, seen)
	}
	if err == nil {
		h.revision = revision
	}
	return err
}

// done stores a result, unless the lease was lost, and says when the next job may come.
func (w *worker) done(ctx context.Context, r *lease.Result) error {
	if err := r.Check(); err != nil {
		return err
	}
	for w.held != nil && w.held.holder.ID == r.ID && ctx.Err() == nil {
		err := w.deliver(ctx, r)
		if err == nil || errors.Is(err, errLost) {
			w.held = nil
			break
		}
		pause(ctx)
	}
	w.say(lease.Event{Stays: r.ID})
	return nil
}

func (w *worker) deliver(ctx context.Context, r *lease.Result) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := w.claim(ctx); err != nil {
		return err
	}
	if err := w.finish(ctx, r); err != nil {
		return err
	}
	_ = w.held.message.DoubleAck(ctx) // who is given the job again sees the result
	return nil
}

// giveBack lets another worker have a job now, as if this one had not had it.
func (w *worker) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), lastTime)
	defer cancel()
	h := w.held
	h.holder.Workers, h.holder.Note = h.holder.Workers[:len(h.holder.Workers)-1], ""
	if _, err := w.hold(ctx, h.holder, h.revision); err == nil {
		_ = h.message.Nak()
	}
	w.held = nil
}

// left says that a job ended the tgc that had it: another one may have it now.
func (w *worker) left() {
	if w.held != nil {
		_ = w.held.message.Nak()
	}
}
