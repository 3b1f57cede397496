package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tgc/gguf"
)

// A folder of GGUF files is a model where they are those of one.
func TestFolderOfFiles(t *testing.T) {
	dir := t.TempDir()
	refused := func(says string) {
		t.Helper()
		if f, err := openFile(t.Context(), dir); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("opened %v, %v; want an error with %q", f, err, says)
		}
	}
	refused("found none")
	const files = 12
	for i := range files {
		w := gguf.NewWriter()
		w.Put("split.count", uint16(files))
		w.Put("split.no", uint16(i))
		w.Put("split.tensors.count", int32(files))
		w.Add(fmt.Sprint("part", i), gguf.I8, []int{4}, gguf.FromBytes([]byte{byte(i), 1, 2, 3}))
		if err := w.WriteFile(t.Context(), filepath.Join(dir, fmt.Sprintf("m-%05d-of-%05d.gguf", i+1, files)), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openFile(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tensors()) != files {
		t.Errorf("%d tensors, want %d", len(f.Tensors()), files)
	}
	f.Close()
	if err := os.WriteFile(filepath.Join(dir, "other.gguf"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(`found "m-00001-of-00012.gguf, other.gguf"`)
}

// A text that goes to a terminal cannot command it.
func TestPrinterOnTerminal(t *testing.T) {
	for escape, want := range map[bool]string{true: "a\uFFFD[2J\n", false: "a\x1b[2J\n"} {
		var out strings.Builder
		p := &printer{out: &out, escape: escape}
		if err := p.print("a\x1b[2J\n"); err != nil || out.String() != want {
			t.Errorf("%q, %v; want %q", out.String(), err, want)
		}
	}
}
