//go:build unix

package database_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"

	"tgc/search/database"
)

// fullEnv is a folder into which a process writes whose files may have no more than some bytes.
const fullEnv = "TGC_TEST_FULL_DISK"

// maybeWriteToFullDisk is that process.
func maybeWriteToFullDisk() {
	dir := os.Getenv(fullEnv)
	if dir == "" {
		return
	}
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100, Max: 100}); err != nil {
		panic(err)
	}
	if err := database.Open(dir).Put(entry(1, "FMA")); err == nil {
		fmt.Println("it was written")
		os.Exit(1)
	}
	os.Exit(0)
}

// Where a disk is full the entry that was there stays, and nothing else is left.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	old := entry(1, "ROLL s0")
	if err := database.Open(dir).Put(old); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), fullEnv+"="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("a full disk is no error: %v\n%s", err, out)
	}
	if got, ok, err := database.Open(dir).Find(old.Key); !ok || err != nil || got.Plan != old.Plan {
		t.Errorf("found %+v, %v, want what was there", got, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v, want one", files, err)
	}
}
