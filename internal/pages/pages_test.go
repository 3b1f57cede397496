package pages

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Memory is zeroed, keeps what is written, and parts of a reservation open by the page.
func TestMemory(t *testing.T) {
	page := os.Getpagesize()
	memory, err := Map(3 * page)
	if err != nil || len(memory) != 3*page {
		t.Fatalf("%d bytes, %v", len(memory), err)
	}
	AdviseHuge(memory)
	for i, b := range memory {
		if b != 0 {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
	memory[3*page-1] = 7
	if err := Protect(memory[page:], Read); err != nil || memory[3*page-1] != 7 {
		t.Errorf("reading: %v", err)
	}
	if err := Unmap(memory); err != nil {
		t.Error(err)
	}
	reserved, err := Reserve(4 * page)
	if err != nil {
		t.Fatal(err)
	}
	if err := Protect(reserved[page:2*page], ReadWrite); err != nil {
		t.Fatal(err)
	}
	reserved[page] = 1
	if err := Unmap(reserved); err != nil {
		t.Error(err)
	}
}

// A file reads as it lies on disk.
func TestMapFile(t *testing.T) {
	want := bytes.Repeat([]byte("abcdefg\n"), 2000)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := MapFile(file, len(want))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes differ from what was written, %v", len(got), err)
	}
	if err := Unmap(got); err != nil {
		t.Error(err)
	}
}
