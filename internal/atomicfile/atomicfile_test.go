package atomicfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tgc/internal/atomicfile"
)

func TestCommitAndAbort(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := atomicfile.Write(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("two"); err != nil {
		t.Fatal(err)
	}
	f.Abort()
	if data, _ := os.ReadFile(path); string(data) != "one" {
		t.Errorf("after Abort the file holds %q, want the old contents", data)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("%d files left, want 1: the temporary file stayed", len(list))
	}
}

func TestErrorsNameTheTarget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "f")
	_, err := atomicfile.Create(path)
	if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), ".tmp") {
		t.Errorf("error %v, want one that names %s and no temporary file", err, path)
	}
	if _, err := atomicfile.Create(t.TempDir()); err == nil {
		t.Error("a folder was accepted as a file")
	}
}

// A device is written, never replaced.
func TestDevice(t *testing.T) {
	if err := atomicfile.Write(os.DevNull, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatalf("%s: %v %v, want the device still", os.DevNull, info, err)
	}
}
