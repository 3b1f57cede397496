package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"tgc/search/lease"
)

// certificate makes a certificate of 127.0.0.1 that signs itself.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// once does one job and returns.
func once(t *testing.T, server lease.Server) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := lease.Work(ctx, program(), server, func(_ context.Context, body json.RawMessage, _ func(string)) (json.RawMessage, error) {
		time.AfterFunc(leaseTime, cancel)
		return body, nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func TestTokenAndTLS(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.serve.Cert, f.serve.Key = certificate(t)
	f.start()
	defer f.Close()
	f.submit(fakeJob{Name: "a"})
	good := lease.Server{URL: f.URL, Token: token, CA: f.serve.Cert, Name: "worker", Queue: "board"}
	if !strings.HasPrefix(f.URL, "tls://") {
		t.Errorf("URL %s", f.URL)
	}
	other, _ := certificate(t)
	for want, change := range map[string]func(s *lease.Server){
		"Authorization Violation": func(s *lease.Server) { s.Token = "another" },
		"unknown authority":       func(s *lease.Server) { s.CA = "" },
		"failed to verify":        func(s *lease.Server) { s.CA = other },
		"in the clear":            func(s *lease.Server) { s.URL = "nats://192.0.2.1:4222" },
		"want tls://HOST:PORT":    func(s *lease.Server) { s.URL = "http://127.0.0.1:4222" },
		"nobody listens there":    func(s *lease.Server) { s.URL = "tls://127.0.0.1:1" },
	} {
		s := good
		change(&s)
		if err := once(t, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if err := once(t, good); err != nil {
		t.Error(err)
	}
	if got, _ := f.wait("a"); got.Name != "a" {
		t.Errorf("result %+v", got)
	}
}

// What would be open to others is refused, and so is a store that another coordinator writes.
func TestServeRefuses(t *testing.T) {
	f := newField(t)
	f.start()
	defer f.Close()
	for want, change := range map[string]func(s *lease.Serve){
		"no token":                 func(s *lease.Serve) { s.Token = "" },
		"open to the network":      func(s *lease.Serve) { s.Listen = "0.0.0.0:0" },
		"want HOST:PORT":           func(s *lease.Serve) { s.Listen = "4222" },
		"no such file":             func(s *lease.Serve) { s.Cert, s.Key = "none", "none" },
		"another coordinator uses": func(s *lease.Serve) { s.Store = f.serve.Store },
		"no time to work in":       func(s *lease.Serve) { s.Lease = 0 },
		"address already in use":   func(s *lease.Serve) { s.Listen = f.serve.Listen },
	} {
		s := f.serve
		s.Listen, s.Store = "127.0.0.1:0", t.TempDir()
		change(&s)
		c, err := lease.NewCoordinator(t.Context(), program(), s, nil)
		if err == nil {
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Whoever has the token takes jobs, renews leases and stores results, and nothing else; nonsense
// in their place ends nobody.
func TestHostileWorker(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.start()
	defer f.Close()
	f.submit(fakeJob{Name: "a"}, fakeJob{Name: "b"})
	conn, err := nats.Connect(f.URL, nats.UserInfo(workerUser, token), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := open(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	short, cancelShort := context.WithTimeout(ctx, time.Second)
	defer cancelShort()
	for what, try := range map[string]func() error{
		"a job":            func() error { _, err := s.js.Publish(short, subjectOf("board", "evil"), []byte("{}")); return err },
		"no stream":        func() error { return s.js.DeleteStream(short, jobsName) },
		"another stream":   func() error { _, err := s.js.CreateStream(short, jetstream.StreamConfig{Name: "evil"}); return err },
		"no results":       func() error { return s.js.DeleteKeyValue(short, resultsName) },
		"another consumer": func() error { _, err := s.js.CreateConsumer(short, jobsName, jetstream.ConsumerConfig{}); return err },
	} {
		if err := try(); err == nil {
			t.Errorf("a worker made %s", what)
		}
	}
	if _, err := s.leases.Put(ctx, "a", []byte("no lease")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.results.Put(ctx, "b", []byte("{no result")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.results.Put(ctx, "c", []byte(`{"id":"a","body":{}}`)); err != nil {
		t.Fatal(err)
	}
	if _, r := f.wait("b"); r.Body != nil || r.Worker != "" || r.Aside != nil {
		t.Errorf("result %+v", r)
	}
	f.worker("good")
	if got, r := f.wait("a"); got.By != "good" {
		t.Errorf("result %+v", r)
	}
}

// A coordinator whose disk is full says so and ends; what it had is there when there is room.
func TestDiskFull(t *testing.T) {
	f := newField(t)
	f.start()
	f.submit(fakeJob{Name: "a"})
	until(t, "job a is stored", func() bool {
		files, _ := filepath.Glob(filepath.Join(f.serve.Store, "jetstream", "*", "streams", jobsName, "obs", "board"))
		return len(files) > 0
	})
	pids := children(t, os.Getpid())
	for _, pid := range pids {
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: 4096}, nil); err != nil {
			t.Fatal(err)
		}
	}
	large := strings.Repeat("x", 100<<10)
	if err := f.Submit(lease.Job{ID: "large", Queue: "board", Body: json.RawMessage(`"` + large + `"`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Wait(t.Context(), "large"); err == nil {
		t.Error("no error")
	} else {
		t.Log(err)
	}
	f.Close()
	f.start()
	defer f.Close()
	f.submit(fakeJob{Name: "a"})
	f.worker("good")
	if got, _ := f.wait("a"); got.By != "good" {
		t.Errorf("result %+v", got)
	}
}
