package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"tgc/search/lease"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "tgc-queue is started by tgc tune --serve and tgc tune --worker, and takes no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdin, os.Stdout); err != nil {
		os.Exit(1)
	}
}

// run does what the first request says, until there are no more.
func run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	say := &speaker{out: json.NewEncoder(out)}
	decoder := json.NewDecoder(bufio.NewReader(in))
	var first lease.Request
	err := decoder.Decode(&first)
	if err == nil {
		asked := requests(decoder, cancel)
		switch {
		case first.Serve != nil:
			err = serve(ctx, first.Serve, asked, say.event)
		case first.Work != nil:
			err = work(ctx, first.Work, asked, say.event)
		default:
			err = errors.New("the first request is neither serve nor work: is tgc of this version?")
		}
	}
	if err != nil {
		say.event(lease.Event{Error: err.Error()})
	}
	return err
}

// requests are read while others are answered; the end of them ends everything.
func requests(in *json.Decoder, end func()) <-chan lease.Request {
	list := make(chan lease.Request)
	go func() {
		defer close(list)
		defer end()
		for {
			var r lease.Request
			if in.Decode(&r) != nil {
				return
			}
			list <- r
		}
	}()
	return list
}

// speaker writes events of several goroutines.
type speaker struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (s *speaker) event(e lease.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(e) // one that hears no more has closed the requests, too
}
