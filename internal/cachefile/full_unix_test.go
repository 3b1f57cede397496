//go:build unix

package cachefile

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

// fullDirEnv makes the test binary a process whose files may have no more than 100 bytes,
// and which writes an entry to the directory that it names.
const fullDirEnv = "CACHEFILE_TEST_FULL_DIR"

func init() {
	dir := os.Getenv(fullDirEnv)
	if dir == "" {
		return
	}
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100, Max: 100}); err != nil {
		panic(err)
	}
	if err := Open(dir).Put("k", make([]byte, 5000)); err == nil {
		fmt.Println("it was written")
		os.Exit(1)
	}
	os.Exit(0)
}

// Where a disk is full the entry that was there stays, and no other file is left.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	old := []byte("as it was")
	if err := Open(dir).Put("k", old); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), fullDirEnv+"="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("a full disk is no error: %v\n%s", err, out)
	}
	if got, ok := Open(dir).Get("k"); !ok || !bytes.Equal(got, old) {
		t.Errorf("got %q, %t, want what was there", got, ok)
	}
	if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
		t.Errorf("files %v, %v, want %v", after, err, before)
	}
}
