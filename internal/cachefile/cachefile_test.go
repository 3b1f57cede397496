package cachefile

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// writerDirEnv makes the test binary a second process that writes entries to
// the directory it names.
const writerDirEnv = "CACHEFILE_TEST_WRITER_DIR"

const sharedKeys, sharedRounds = 8, 50

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDirEnv); dir != "" {
		if err := writeShared(Open(dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sharedData is what every writer stores under a key: any whole entry is
// right, any mixture of two is not.
func sharedData(key, round int) []byte {
	return bytes.Repeat([]byte{byte(key), byte(round)}, 5000)
}

func writeShared(c *Cache) error {
	for round := range sharedRounds {
		for key := range sharedKeys {
			if err := c.Put(fmt.Sprint("key", key), sharedData(key, round)); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestRoundTrip(t *testing.T) {
	c := Open(t.TempDir())
	t.Cleanup(func() { c.Close() })
	if _, ok := c.Get("k"); ok {
		t.Fatal("an empty cache had an entry")
	}
	for _, data := range [][]byte{nil, []byte("first"), bytes.Repeat([]byte("long"), 100_000)} {
		if err := c.Put("k", data); err != nil {
			t.Fatal(err)
		}
		got, ok := c.Get("k")
		if !ok || !bytes.Equal(got, data) {
			t.Fatalf("Get after Put of %d bytes: got %d bytes, %v", len(data), len(got), ok)
		}
	}
	if _, ok := c.Get("K"); ok {
		t.Fatal("another key had an entry")
	}
}

func TestCorruptEntryIsRemoved(t *testing.T) {
	damage := map[string]func(file []byte) []byte{
		"flipped bit":  func(f []byte) []byte { f[len(f)-1] ^= 1; return f },
		"truncated":    func(f []byte) []byte { return f[:len(f)-1] },
		"empty":        func([]byte) []byte { return nil },
		"short header": func(f []byte) []byte { return f[:headerSize-1] },
		"old version":  func(f []byte) []byte { f[len(magic)-1]++; return f },
	}
	for name, change := range damage {
		t.Run(name, func(t *testing.T) {
			c := Open(t.TempDir())
			defer c.Close()
			if err := c.Put("k", []byte("data")); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(c.Dir(), entryName("k"))
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(file), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, ok := c.Get("k"); ok {
				t.Fatalf("a corrupt entry was returned: %q", got)
			}
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Fatalf("the corrupt entry is still there (%v)", err)
			}
		})
	}
}

func TestRenamedEntryIsAMiss(t *testing.T) {
	c := Open(t.TempDir())
	defer c.Close()
	if err := c.Put("a", []byte("data of a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(c.Dir(), entryName("a")), filepath.Join(c.Dir(), entryName("b"))); err != nil {
		t.Fatal(err)
	}
	if got, ok := c.Get("b"); ok {
		t.Fatalf("key b returned %q", got)
	}
}

func TestUncreatableDirectoryIsAnEmptyCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*Cache{"below a file": Open(filepath.Join(file, "sub")), "nil": nil, "zero": {}} {
		if c.Enabled() {
			t.Fatalf("%s: enabled", name)
		}
		if err := c.Put("k", []byte("data")); err != nil {
			t.Fatalf("%s: Put: %v", name, err)
		}
		if _, ok := c.Get("k"); ok {
			t.Fatalf("%s: had an entry", name)
		}
		if err := c.Close(); err != nil {
			t.Fatalf("%s: Close: %v", name, err)
		}
	}
}

func TestOldestAreEvicted(t *testing.T) {
	const entrySize = 1000
	c := Open(t.TempDir(), MaxBytes(10*int64(entrySize+headerSize)))
	defer c.Close()
	foreign := filepath.Join(c.Dir(), "not-an-entry")
	if err := os.WriteFile(foreign, make([]byte, entrySize), 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(-time.Minute)
	for i := range 11 {
		key := fmt.Sprint("k", i)
		if err := c.Put(key, make([]byte, entrySize)); err != nil {
			t.Fatal(err)
		}
		if i < 10 { // the eleventh Put has evicted by now
			when := start.Add(time.Duration(i) * time.Second)
			if err := c.root.Chtimes(entryName(key), when, when); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 11 {
		_, ok := c.Get(fmt.Sprint("k", i))
		if want := i >= 4; ok != want { // 7 of 11 fit in three quarters of 10
			t.Errorf("entry %d of 0..10 present: got %v, want %v", i, ok, want)
		}
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a foreign file was removed: %v", err)
	}
}

func TestStaleTempsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	stale, fresh := filepath.Join(dir, "a"+tempSuffix), filepath.Join(dir, "b"+tempSuffix)
	for _, path := range []string{stale, fresh} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * staleTemp)
	if err := os.Chtimes(stale, old, old); err != nil {
		t.Fatal(err)
	}
	defer Open(dir).Close()
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("stale temporary file: %v, want removed", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("another process's temporary file was removed: %v", err)
	}
}

// TestSharedByProcesses has two other processes and one goroutine write the
// same keys while this one reads: each hit must be one writer's whole entry.
func TestSharedByProcesses(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Skipf("no path to the test binary: %v", err)
	}
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), writerDirEnv+"="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("writer process: %v\n%s", err, out)
			}
		})
	}
	writers.Go(func() {
		c := Open(dir)
		defer c.Close()
		if err := writeShared(c); err != nil {
			t.Errorf("writer goroutine: %v", err)
		}
	})
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()

	c := Open(dir)
	defer c.Close()
	hits := 0
	for finished := false; !finished; {
		select {
		case <-done:
			finished = true // and check all keys once more
		default:
		}
		for key := range sharedKeys {
			got, ok := c.Get(fmt.Sprint("key", key))
			if !ok {
				if finished {
					t.Errorf("key %d is missing after all writers ended", key)
				}
				continue
			}
			hits++
			if len(got) != 10_000 || !bytes.Equal(got, sharedData(key, int(got[1]))) {
				t.Fatalf("key %d: a mixed entry of %d bytes", key, len(got))
			}
		}
	}
	if hits == 0 {
		t.Error("the reader never saw an entry")
	}
}

// Usage counts entries alone, and Clear leaves what others put in the folder.
func TestUsageAndClear(t *testing.T) {
	dir := t.TempDir()
	c := Open(dir)
	defer c.Close()
	if err := os.WriteFile(filepath.Join(dir, "history"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		if err := c.Put(key, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if entries, bytes := c.Usage(); entries != 2 || bytes < 200 || bytes > 400 {
		t.Errorf("%d entries of %d bytes, want 2 of 200 and their headers", entries, bytes)
	}
	if err := c.Clear(); err != nil {
		t.Fatal(err)
	}
	if entries, bytes := c.Usage(); entries != 0 || bytes != 0 {
		t.Errorf("%d entries of %d bytes after Clear", entries, bytes)
	}
	if _, err := os.Stat(filepath.Join(dir, "history")); err != nil {
		t.Error(err)
	}
	if err := new(Cache).Clear(); err != nil {
		t.Error(err)
	}
}
