//go:build unix

package mapfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tgc/internal/mapfile"
)

// Reading behind the end of a file that was cut is an error; other errors and panics stay
// what they are.
func TestGuard(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, make([]byte, 1<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := mapfile.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	if err := os.Truncate(name, 10); err != nil {
		t.Fatal(err)
	}
	into := make([]byte, 1<<19)
	for range 2 {
		if err := mapfile.Guard(func() error { copy(into, m.Bytes[1<<19:]); return nil }); !errors.Is(err, mapfile.ErrShortened) {
			t.Fatalf("got %v, want the file to be shorter", err)
		}
	}
	other := errors.New("other")
	if err := mapfile.Guard(func() error { return other }); err != other {
		t.Errorf("got %v, want the function's error", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil pointer is no panic")
		}
	}()
	_ = mapfile.Guard(func() error { var p *int; *p = 1; return nil })
}
