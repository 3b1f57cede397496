package filelock

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that is open twice is locked once, and free again when it is closed.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Lock(first); err != nil {
		t.Fatal(err)
	}
	if Lock(second) == nil {
		t.Error("it is locked twice")
	}
	first.Close()
	if err := Lock(second); err != nil {
		t.Errorf("after it was closed: %v", err)
	}
}
