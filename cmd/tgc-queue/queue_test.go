package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tgc/search/lease"
)

// roleEnv says what a process of the test is: the broker, or a worker that starts one.
const roleEnv = "TGC_QUEUE_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		os.Setenv(roleEnv, "broker")
		os.Exit(m.Run())
	case "broker":
		signal.Ignore(syscall.SIGXFSZ) // of a file that may not grow: as a disk that is full
		if run(context.Background(), os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
	case "worker":
		os.Setenv(roleEnv, "broker")
		var s lease.Server
		if err := json.Unmarshal([]byte(os.Getenv("TGC_QUEUE_SERVER")), &s); err != nil {
			panic(err)
		}
		if err := lease.Work(context.Background(), program(), s, fakeSearch(s.Name)); err != nil {
			fmt.Fprintln(os.Stderr, s.Name, err)
			os.Exit(1)
		}
	}
	os.Exit(0)
}

func program() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// fakeJob is what a worker of the test does: it writes its name to a file, and waits, or dies.
type fakeJob struct {
	Name string        `json:"name"`
	Log  string        `json:"log"`
	Take time.Duration `json:"take"`
	Kill bool          `json:"kill"`
}

// fakeResult is its result.
type fakeResult struct {
	Name string `json:"name"`
	By   string `json:"by"`
}

func fakeSearch(worker string) lease.Handler {
	return func(ctx context.Context, body json.RawMessage, note func(string)) (json.RawMessage, error) {
		var job fakeJob
		if err := json.Unmarshal(body, &job); err != nil {
			return nil, err
		}
		note("begun")
		f, err := os.OpenFile(job.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if _, err := fmt.Fprintf(f, "%s %s\n", worker, job.Name); err != nil {
			return nil, err
		}
		if job.Kill {
			os.Exit(3)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(job.Take):
		}
		return json.Marshal(fakeResult{job.Name, worker})
	}
}

// leaseTime is short, so that the tests are.
const leaseTime = time.Second

const token = "a token of the test"

// field is a coordinator with its workers.
type field struct {
	*lease.Coordinator
	t     *testing.T
	serve lease.Serve
	log   string // of the jobs that were begun

	mu   sync.Mutex
	held map[string]bool // workers that have or had a job
}

func newField(t *testing.T) *field {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the port is free again, and known to workers over a restart
	f := &field{t: t, held: make(map[string]bool), log: filepath.Join(t.TempDir(), "log")}
	f.serve = lease.Serve{Listen: l.Addr().String(), Store: t.TempDir(), Token: token, Lease: leaseTime}
	return f
}

func (f *field) start() {
	f.t.Helper()
	c, err := lease.NewCoordinator(f.t.Context(), program(), f.serve, func(e lease.Event) {
		if e.Held != nil && len(e.Held.Workers) > 0 {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.held[e.Held.Workers[len(e.Held.Workers)-1]] = true
		}
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.Coordinator = c
}

func (f *field) submit(jobs ...fakeJob) {
	f.t.Helper()
	for _, job := range jobs {
		job.Log = f.log
		body, err := json.Marshal(job)
		if err != nil {
			f.t.Fatal(err)
		}
		if err := f.Submit(lease.Job{ID: job.Name, Queue: "board", Body: body}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// wait waits for the result of a job, and forgets the job.
func (f *field) wait(name string) (fakeResult, lease.Result) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	r, err := f.Wait(ctx, name)
	if err != nil {
		f.t.Fatalf("job %s: %v", name, err)
	}
	var got fakeResult
	if r.Body != nil {
		if err := json.Unmarshal(r.Body, &got); err != nil {
			f.t.Fatal(err)
		}
	}
	return got, r
}

// worker starts a worker in a process of its own.
func (f *field) worker(name string) *exec.Cmd {
	f.t.Helper()
	server, err := json.Marshal(lease.Server{URL: "nats://" + f.serve.Listen, Token: token, Name: name, Queue: "board"})
	if err != nil {
		f.t.Fatal(err)
	}
	c := exec.Command(program())
	c.Env = append(os.Environ(), roleEnv+"=worker", "TGC_QUEUE_SERVER="+string(server))
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	})
	return c
}

// busy waits until a worker has had a job.
func (f *field) busy(names ...string) {
	f.t.Helper()
	until(f.t, "workers have jobs", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, name := range names {
			if !f.held[name] {
				return false
			}
		}
		return true
	})
}

// log is what a process prints.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) has(text string) bool { return strings.Contains(l.String(), text) }

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// children are the processes that a process has started: its broker.
func children(t *testing.T, pid int) (list []int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // a thread may have ended
		for _, word := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, n)
		}
	}
	return list
}

func kill(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

func namesOf(prefix string, n int, job fakeJob) (jobs []fakeJob) {
	for i := range n {
		job.Name = fmt.Sprintf("%s%d", prefix, i)
		jobs = append(jobs, job)
	}
	return jobs
}

// begun counts how often a job was begun.
func (f *field) begun(job string) (n int) {
	text, err := os.ReadFile(f.log)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasSuffix(line, " "+job) {
			n++
		}
	}
	return n
}

// Three workers, one killed with its broker, as a machine that is switched off, one stalled: each
// job has one result, and what the stalled one finds when it wakes up is not it.
func TestThreeWorkers(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.start()
	defer f.Close()
	jobs := namesOf("kernel", 9, fakeJob{Take: 300 * time.Millisecond})
	f.submit(jobs...)
	f.submit(jobs...) // again: they are there
	killed, stalled := f.worker("killed"), f.worker("stalled")
	f.busy("killed", "stalled")
	kill(t, stalled.Process.Pid, syscall.SIGSTOP)
	for _, pid := range children(t, killed.Process.Pid) {
		kill(t, pid, syscall.SIGKILL)
	}
	kill(t, killed.Process.Pid, syscall.SIGKILL)
	f.worker("good")
	by := make(map[string]int)
	for _, job := range jobs {
		got, r := f.wait(job.Name)
		if got.Name != job.Name || r.Worker != got.By || r.Aside != nil {
			t.Errorf("job %s: %+v, %s", job.Name, r, r.Body)
		}
		by[got.By]++
		if n := f.begun(job.Name); n > lease.Attempts {
			t.Errorf("job %s was begun %d times", job.Name, n)
		}
	}
	if by["good"] < len(jobs)-4 {
		t.Errorf("results of %v: want most of the good one", by)
	}
	for _, job := range jobs {
		if err := f.Forget(job.Name); err != nil {
			t.Fatal(err)
		}
	}
	kill(t, stalled.Process.Pid, syscall.SIGCONT)
	// The stalled worker has sent its late result before it takes another job: no job has two.
	f.submit(namesOf("next", 4, fakeJob{Take: leaseTime / 4})...)
	for i := range 4 {
		f.wait(fmt.Sprintf("next%d", i))
	}
	f.submit(jobs...)
	for _, job := range jobs {
		if f.wait(job.Name); f.begun(job.Name) < 2 {
			t.Errorf("job %s was forgotten and submitted again, and not begun again: a late result was kept", job.Name)
		}
	}
}

// A job that ends three workers has no fourth, and the others go on.
func TestSetAside(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.start()
	defer f.Close()
	f.submit(fakeJob{Name: "deadly", Kill: true})
	for i := range lease.Attempts {
		name := fmt.Sprintf("victim%d", i)
		_ = f.worker(name).Wait() // with an error
		f.busy(name)
	}
	_, r := f.wait("deadly") // there is no worker any more
	if strings.Join(r.Aside, " ") != "victim0 victim1 victim2" || r.Body != nil {
		t.Errorf("result %+v, want the three it has ended", r)
	}
	f.submit(fakeJob{Name: "harmless"})
	f.worker("good")
	if got, _ := f.wait("harmless"); got.By != "good" {
		t.Errorf("result %+v", got)
	}
	if n := f.begun("deadly"); n != lease.Attempts {
		t.Errorf("begun %d times", n)
	}
}

// A coordinator that is killed goes on where it was, and workers find it again.
func TestCoordinatorKilled(t *testing.T) {
	f := newField(t)
	f.start()
	jobs := namesOf("kernel", 8, fakeJob{Take: 150 * time.Millisecond})
	f.submit(jobs...)
	f.worker("one")
	f.worker("two")
	f.wait("kernel0")
	f.wait("kernel1")
	brokers := children(t, os.Getpid())
	for _, pid := range brokers { // the coordinator's: those of workers are theirs
		if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); !strings.Contains(string(command), "TGC_QUEUE_SERVER") {
			kill(t, pid, syscall.SIGKILL)
		}
	}
	if _, err := f.Wait(t.Context(), "kernel7"); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("error %v, want that the broker has ended", err)
	}
	f.Close()
	f.start()
	defer f.Close()
	f.submit(jobs...)
	again := 0
	for _, job := range jobs {
		if got, r := f.wait(job.Name); got.Name != job.Name || r.Aside != nil {
			t.Errorf("job %s: %+v", job.Name, r)
		}
		again += f.begun(job.Name) - 1
	}
	if again > 2 {
		t.Errorf("%d jobs were begun again, want at most those that two workers had", again)
	}
}

// What a worker gives back, because it is asked to end, does not count as one that it has ended.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.start()
	defer f.Close()
	f.submit(fakeJob{Name: "long", Take: time.Second})
	for range lease.Attempts + 1 {
		ctx, cancel := context.WithCancel(t.Context())
		server := lease.Server{URL: f.URL, Token: token, Name: "leaving", Queue: "board"}
		err := lease.Work(ctx, program(), server, func(ctx context.Context, _ json.RawMessage, _ func(string)) (json.RawMessage, error) {
			cancel()
			<-ctx.Done()
			return nil, nil
		})
		if err == nil || ctx.Err() == nil {
			t.Errorf("error %v", err)
		}
	}
	f.worker("good")
	if got, r := f.wait("long"); got.By != "good" || r.Aside != nil {
		t.Errorf("result %+v", r)
	}
}
