package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tgc/search"
	"tgc/search/database"
	"tgc/search/lease"
)

// spreadFlags are the flags of tune that share its work with other machines.
type spreadFlags struct {
	serve  string
	worker string
	token  string
	cert   string
	key    string
	ca     string
	lease  time.Duration
}

// leastLease is how short a lease may be: a worker that is busy does not lose it.
const leastLease = time.Second

func (s *spreadFlags) register(f *pflag.FlagSet) {
	f.StringVar(&s.serve, "serve", "", "HOST:PORT on which workers get the kernels to search")
	f.StringVar(&s.worker, "worker", "", "search kernels for the coordinator at tls://HOST:PORT or nats://HOST:PORT")
	f.StringVar(&s.token, "token", "", "serve, worker: file with the secret that both know")
	f.StringVar(&s.cert, "tls-cert", "", "serve: file of a certificate (needed but on this machine alone)")
	f.StringVar(&s.key, "tls-key", "", "serve: file of its key")
	f.StringVar(&s.ca, "tls-ca", "", "worker: file of the certificate that signs the coordinator's (default: the system's)")
	f.DurationVar(&s.lease, "lease", 30*time.Second, "serve: time after which a worker that is not heard of loses its kernel")
}

// check refuses flags that do not go together.
func (s *spreadFlags) check() error {
	switch {
	case s.serve != "" && s.worker != "":
		return usagef("tune: --serve gives kernels away, --worker takes them: want one of them")
	case s.serve == "" && s.worker == "":
		if s.token != "" || s.cert != "" || s.key != "" || s.ca != "" {
			return usagef("tune: --token, --tls-cert, --tls-key and --tls-ca go with --serve or --worker")
		}
		return nil
	case s.token == "":
		return usagef("tune: want --token FILE, which has the secret that coordinator and workers know")
	case (s.cert == "") != (s.key == ""):
		return usagef("tune: --tls-cert and --tls-key go together")
	case s.lease < leastLease:
		return usagef("tune: --lease %v, want at least %v", s.lease, leastLease)
	}
	return nil
}

// tokenBytes bounds a file with a secret.
const tokenBytes = 4096

// secret reads the token, which is never on a command line: others can read those.
func (s *spreadFlags) secret() (string, error) {
	data, err := os.ReadFile(s.token)
	if err != nil {
		return "", err
	}
	if data = bytes.TrimSpace(data); len(data) == 0 || len(data) > tokenBytes {
		return "", fmt.Errorf("%s: a token of %d bytes, want 1 to %d", s.token, len(data), tokenBytes)
	}
	return string(data), nil
}

// coordinate lets workers search what is tuned, if --serve says so. The function that comes back
// ends that.
func (o *tuneFlags) coordinate(cmd *cobra.Command) (end func(), err error) {
	s := &o.spread
	if s.serve == "" {
		return func() {}, nil
	}
	config, err := readConfig(cmd)
	if err != nil {
		return nil, err
	}
	dir := config.DB
	if o.db != "" {
		dir = o.db
	}
	if dir == "" {
		return nil, usagef("tune: no folder for the database: --db DIR")
	}
	program, err := lease.Find()
	if err != nil {
		return nil, err
	}
	token, err := s.secret()
	if err != nil {
		return nil, err
	}
	told := &toldLater{}
	serve := lease.Serve{Listen: s.serve, Store: filepath.Join(dir, "queue"), Token: token, Cert: s.cert, Key: s.key, Lease: s.lease}
	c, err := lease.NewCoordinator(cmd.Context(), program, serve, told.event)
	if err != nil {
		return nil, err
	}
	o.shared = search.NewSpread(c, func(format string, args ...any) { note(cmd, format, args...) })
	told.to(o.shared.Told)
	note(cmd, "workers: tgc tune --worker %s --token FILE", c.URL)
	return c.Close, nil
}

// toldLater passes events on once there is somebody who hears them.
type toldLater struct {
	mu   sync.Mutex
	hear func(lease.Event)
}

func (t *toldLater) to(hear func(lease.Event)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hear = hear
}

func (t *toldLater) event(e lease.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hear != nil {
		t.hear(e)
	}
}

// withWorker are the flags that go with --worker: the coordinator says all else.
var withWorker = map[string]bool{"worker": true, "token": true, "tls-ca": true, "device": true, "threads": true, "model": true}

// runWorker searches kernels for a coordinator until it is interrupted.
func (o *tuneFlags) runWorker(cmd *cobra.Command) error {
	if other := otherFlags(cmd, withWorker); other != "" {
		return usagef("tune: the coordinator says what %s would", other)
	}
	program, err := lease.Find()
	if err != nil {
		return err
	}
	token, err := o.spread.secret()
	if err != nil {
		return err
	}
	options, err := o.options()
	if err != nil {
		return err
	}
	dev, config, err := o.device.open(cmd)
	if err != nil {
		return err
	}
	defer dev.Close()
	options.Bench.Parallel = config.Parallel
	desc := dev.Target()
	w := &search.TaskWorker{
		Desc: desc, Testers: childTesters(dev, o.device.threads, config.CacheDir), Bench: options.Bench,
		Say: func(format string, args ...any) { note(cmd, format, args...) },
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	server := lease.Server{URL: o.spread.worker, Token: token, CA: o.spread.ca, Name: fmt.Sprintf("%s-%d", host, os.Getpid()), Queue: search.QueueOf(desc)}
	note(cmd, "%s works for %s: kernels of %s", server.Name, server.URL, database.BoardOf(desc))
	err = lease.Work(cmd.Context(), program, server, w.Do)
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	return err
}
