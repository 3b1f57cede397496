package gguf

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"tgc/internal/oracle"
)

// hostileEntry is one entry of the hostile corpus: a file with one thing wrong.
type hostileEntry struct {
	ID      string
	File    string
	Class   string
	Expect  string
	Inspect string
	Mention []string
	Args    []string
	Make    *struct {
		Kind string
		Size int64
	}
}

// refusedClasses are those whose faults concern the file alone, so that a file
// no command may run must not open either.
var refusedClasses = []string{"notgguf", "header", "cut", "length", "align", "ti"}

// openedAnyway are entries of these classes whose fault only a model shows:
// the counts are consistent with a shorter file.
var openedAnyway = []string{"header-n_kv-off--1"}

// verdict says what opening must do: "ok", "error" or "either".
func (e hostileEntry) verdict() string {
	switch {
	case e.Args != nil:
		return "either"
	case e.Inspect == "ok" || e.Expect == "ok":
		return "ok"
	case e.Inspect == "error":
		return "error"
	case e.Expect == "error" && slices.Contains(refusedClasses, e.Class) && !slices.Contains(openedAnyway, e.ID):
		return "error"
	}
	return "either"
}

// check judges the result of opening.
func (e hostileEntry) check(t *testing.T, err error) {
	t.Helper()
	switch want := e.verdict(); {
	case err == nil && want == "error":
		t.Errorf("%s: opened, want an error", e.ID)
	case err != nil && want == "ok":
		t.Errorf("%s: %v, want it to open", e.ID, err)
	case err != nil:
		checkMessage(t, e.ID, err)
		mentions := func(w string) bool { return strings.Contains(strings.ToLower(err.Error()), strings.ToLower(w)) }
		if want == "error" && len(e.Mention) > 0 && !slices.ContainsFunc(e.Mention, mentions) {
			t.Errorf("%s: %v; want it to mention one of %q", e.ID, err, e.Mention)
		}
		t.Logf("%s: %v", e.ID, err)
	}
}

// checkMessage demands one printable line of bounded length.
func checkMessage(t testing.TB, id string, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 600 {
		t.Errorf("%s: the message has %d bytes, want at most 600", id, len(text))
	}
	if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 {
		t.Errorf("%s: the message holds a control character at %d: %q", id, i, text)
	}
	if strings.Contains(text, "runtime error") {
		t.Errorf("%s: %v", id, err)
	}
}

func hostileIndex(t testing.TB) (dir string, list []hostileEntry) {
	dir = filepath.Dir(oracle.Path(t, "hostile", "index.json"))
	raw, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return dir, list
}

// TestHostile opens every file of the corpus from memory.
func TestHostile(t *testing.T) {
	dir, list := hostileIndex(t)
	byFile := map[string][]hostileEntry{}
	for _, e := range list {
		if e.Make == nil {
			byFile[e.File] = append(byFile[e.File], e)
		}
	}
	archive := filepath.Join(dir, "corpus.tar.gz")
	seen := 0
	eachFile(t, archive, func(name string, data []byte) {
		for _, e := range byFile[name] {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, err := OpenBytes(name, data)
			runtime.ReadMemStats(&after)
			if got, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+4*len(data)); got > most {
				t.Errorf("%s: opening allocated %d bytes, want at most %d", e.ID, got, most)
			}
			e.check(t, err)
			if err == nil {
				readAll(t, f)
			}
			seen++
		}
	})
	t.Logf("%d entries", seen)
}

// eachFile calls visit with the files of a gzipped tar archive.
func eachFile(t testing.TB, archive string, visit func(name string, data []byte)) {
	t.Helper()
	raw, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	unzipped, err := gzip.NewReader(raw)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(unzipped)
	for {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		visit(head.Name, data)
	}
}

// readAll decodes everything that a File offers.
func readAll(t testing.TB, f *File) {
	for key, v := range f.Metadata() {
		for _, text := range []string{Quote(key), v.String()} {
			if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 {
				t.Errorf("%s: printed form %q holds a control character", f.Name(), text)
			}
		}
		decoders := []func() error{
			func() error { _, err := f.Uint(key); return err },
			func() error { _, err := f.Int(key); return err },
			func() error { _, err := f.Float(key); return err },
			func() error { _, err := f.Bool(key); return err },
			func() error { _, err := f.String(key); return err },
			func() error { _, err := f.Strings(key); return err },
			func() error { _, err := f.Uints(key); return err },
			func() error { _, err := f.Ints(key); return err },
			func() error { _, err := f.Floats(key); return err },
			func() error { _, err := f.Bools(key); return err },
		}
		for _, decode := range decoders {
			if err := decode(); err != nil {
				checkMessage(t, key, err)
			}
		}
		readNested(t, v, 0)
	}
	for i := range f.Tensors() {
		x := &f.Tensors()[i]
		if len(x.Data()) != x.Bytes() || x.Rows()*x.RowBytes() != x.Bytes() {
			t.Errorf("%s: %v: %d bytes of data, %d rows of %d", f.Name(), x, len(x.Data()), x.Rows(), x.RowBytes())
		}
	}
}

func readNested(t testing.TB, v Value, depth int) {
	if v.Type() != ArrayValue || v.Elem() != ArrayValue {
		return
	}
	if depth > maxDepth {
		t.Fatalf("arrays are nested deeper than %d", maxDepth)
	}
	list, err := v.Values()
	if err != nil {
		t.Errorf("nested array: %v", err)
	}
	for _, x := range list {
		readNested(t, x, depth+1)
	}
}

// TestHostilePaths opens what no archive can carry: links, devices, pipes and
// files with holes of a terabyte.
func TestHostilePaths(t *testing.T) {
	dir, list := hostileIndex(t)
	made := map[string][]hostileEntry{}
	for _, e := range list {
		switch {
		case e.Make == nil:
		case e.Make.Kind == "truncate" || e.Make.Kind == "symlink":
			made[e.File] = append(made[e.File], e)
		default:
			t.Run(e.ID, func(t *testing.T) { e.openMade(t, nil) })
		}
	}
	eachFile(t, filepath.Join(dir, "corpus.tar.gz"), func(name string, data []byte) {
		for _, e := range made[name] {
			t.Run(e.ID, func(t *testing.T) { e.openMade(t, data) })
		}
	})
}

// openMade makes the entry's path, opens it and judges.
func (e hostileEntry) openMade(t *testing.T, data []byte) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	source := filepath.Join(dir, "source.gguf")
	if err := os.WriteFile(source, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	switch kind := e.Make.Kind; {
	case kind == "missing":
	case kind == "dir":
		err = os.Mkdir(path, 0o700)
	case kind == "fifo":
		err = makePipe(path)
	case kind == "symlink-loop":
		err = os.Symlink("m.gguf", path)
	case kind == "dangling":
		err = os.Symlink("nothing", path)
	case kind == "symlink":
		err = os.Symlink("source.gguf", path)
	case strings.HasPrefix(kind, "dev-"):
		err = os.Symlink("/dev/"+strings.TrimPrefix(kind, "dev-"), path)
	case kind == "truncate":
		path = source
		err = os.Truncate(source, e.Make.Size)
	default:
		t.Skipf("cannot make %q", kind)
	}
	if err != nil {
		t.Skipf("cannot make %q: %v", e.Make.Kind, err)
	}
	f, err := Open(path)
	e.check(t, err)
	if err == nil {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
