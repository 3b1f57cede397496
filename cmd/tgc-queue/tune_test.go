package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// graph is a matrix product that the interpreter runs in a moment, and whose plan for a CPU takes it 1.6 times as long as others: so much
// that a plan is found and stored whatever else the machine does.
const graph = `%0 = buffer f32 [2] 35
%1 = buffer f32 [0] 256
%2 = reshape f32 %1 1 256
%3 = expand f32 %2 35 256
%4 = buffer u8 [1 Q6_K] 35 256
%5 = decode f32 %4
%6 = mul f32 %3 %5
%7 = reduce_axes f32 [add] %6 1
%8 = reshape f32 %7 35
%9 = iota i32 35
%10 = reshape i32 %9 35
%11 = assign f32 %0 %8 %10
%12 = sink void %11
`

// tools builds both programs into one folder.
func tools(t *testing.T) (tgc string) {
	t.Helper()
	dir := t.TempDir() + "/"
	for _, build := range [][]string{{"-C", "../..", "-o", dir, "./cmd/tgc"}, {"-o", dir, "."}} {
		if out, err := exec.Command("go", append([]string{"build"}, build...)...).CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	return filepath.Join(dir, "tgc")
}

// tgc tune --serve and three tgc tune --worker on the interpreter, one of which is killed and one
// stopped while it has the kernel: the third one finds a plan, and the coordinator stores it.
func TestTune(t *testing.T) {
	tgc, dir := tools(t), t.TempDir()
	t.Parallel() // with those that wait most of the time
	for name, text := range map[string]string{"graph.uop": graph, "secret": token} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) (*exec.Cmd, *log) {
		c, said := exec.Command(tgc, append([]string{"tune", "--token", "secret", "--device", "interp"}, args...)...), &log{}
		c.Dir, c.Stderr, c.WaitDelay = dir, said, 10*time.Second
		c.Env = append(os.Environ(), "TGC_CACHE_DIR="+dir)
		return c, said
	}
	var out bytes.Buffer
	coordinator, said := command("graph.uop", "--serve", address, "--lease", "1s", "--budget", "4s", "--db", "plans", "--json")
	coordinator.Stdout = &out
	if err := coordinator.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the coordinator serves", func() bool { return said.has("--worker nats://" + address) })
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, 0} {
		worker, busy := command("--worker", "nats://"+address)
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = worker.Process.Kill() // it may have ended
			_ = worker.Wait()
		})
		if signal != 0 {
			until(t, "a worker searches", func() bool { return len(children(t, worker.Process.Pid)) > 1 }) // the broker, and a child
			kill(t, worker.Process.Pid, signal)
			continue
		}
		until(t, "the third worker is done", func() bool { return busy.has("tried, ") })
	}
	if err := coordinator.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var got struct {
		Kernels []struct {
			Candidates int  `json:"candidates"`
			Stored     bool `json:"stored"`
		} `json:"kernels"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Kernels) != 1 || got.Kernels[0].Candidates < 5 || !got.Kernels[0].Stored {
		t.Errorf("%+v, %v\n%s%s", got, err, &out, said)
	}
	entries, err := filepath.Glob(filepath.Join(dir, "plans", "*.plan"))
	if err != nil || len(entries) != 1 {
		t.Errorf("entries %v, %v", entries, err)
	}
	if strings.Contains(said.String(), token) {
		t.Error("the token is told")
	}
}
