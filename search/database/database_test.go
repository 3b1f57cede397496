package database_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/schedule"
	"tgc/search/database"
	"tgc/target"
)

// writerEnv makes the test binary a process that writes to a database.
const writerEnv = "TGC_TEST_DATABASE_WRITER"

func TestMain(m *testing.M) {
	maybeWriteToFullDisk()
	if dir := os.Getenv(writerEnv); dir != "" {
		db := database.Open(dir)
		for i := range 200 {
			e := entry(i%3, fmt.Sprintf("ROLL s0 %d", i+1))
			if err := db.Put(e); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func desc(name string) *target.Desc {
	d, err := target.Parse(name)
	if err != nil {
		panic(err)
	}
	return d
}

// kernel is a kernel that writes n ones.
func kernel(n int64) *ir.UOp {
	a := ir.NewArena()
	out := a.Make(ir.OpParam, ir.F32, ir.ParamArg{}, a.Index(n))
	r := a.Range(0, a.Index(n))
	return a.Make(ir.OpSink, ir.Void, nil, a.Store(out, a.Const(ir.F32, 1), []*ir.UOp{r}, []*ir.UOp{r}))
}

// cache is a kernel that reads one row of a cache, whose number is a value.
func cache(rows int64) *ir.UOp {
	a := ir.NewArena()
	out, from := a.Make(ir.OpParam, ir.F32, ir.ParamArg{}, a.Index(8)), a.Make(ir.OpParam, ir.F32, ir.ParamArg{Slot: 1}, a.Index(rows), a.Index(8))
	row := a.Make(ir.OpCast, ir.Idx, nil, a.Make(ir.OpLoad, ir.I32, nil, a.Make(ir.OpParam, ir.I32, ir.ParamArg{Slot: 2}, a.Index(1)), a.Index(0)))
	r := a.Range(0, a.Index(8))
	return a.Make(ir.OpSink, ir.Void, nil, a.Store(out, a.Make(ir.OpLoad, ir.F32, nil, from, row, r), []*ir.UOp{r}, []*ir.UOp{r}))
}

func entry(i int, plan string) database.Entry {
	e := database.NewEntry(kernel(int64(i+5)), desc("llvm:x86-64-v4"))
	e.Kernel, e.Plan, e.Source, e.Before, e.After, e.Reason = fmt.Sprintf("fill%d", i), plan, "0123", 12.5, 10, "faster"
	return e
}

func TestEntries(t *testing.T) {
	db := database.Open(filepath.Join(t.TempDir(), "new", "folder"))
	e := entry(1, "VECTOR s0 4; FMA")
	if _, ok, err := db.Find(e.Key); ok || err != nil {
		t.Errorf("an empty database has an entry: %v", err)
	}
	for _, plan := range []string{"VECTOR s0 4; FMA", "ROLL s0"} {
		e.Plan = plan
		if err := db.Put(e); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := db.Find(e.Key); !ok || err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("found %+v, %v, want %+v", got, err, e)
		}
	}
	if err := db.Put(entry(0, "")); err != nil {
		t.Fatal(err)
	}
	list, bad := db.List()
	if len(list) != 2 || len(bad) != 0 || list[0].Kernel != "fill0" || list[1].Plan != "ROLL s0" {
		t.Errorf("list %+v, %v", list, bad)
	}
	if err := db.Remove(e.Key); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := db.Find(e.Key); ok {
		t.Error("an entry that was removed is there")
	}
	bad2 := e
	bad2.Plan = "NOSUCH s0"
	if err := db.Put(bad2); !errors.Is(err, database.ErrCorrupt) {
		t.Errorf("a plan of no Opts: %v", err)
	}
}

// Kernels, boards and layouts have keys of their own; prices change none.
func TestKeys(t *testing.T) {
	base, d := kernel(5), desc("ptx:sm_90")
	key := database.KeyOf(base, d)
	board := *d
	board.Cost.Workers--
	for name, other := range map[string]database.Key{
		"kernel": database.KeyOf(kernel(6), d), "target": database.KeyOf(base, desc("ptx:sm_87")),
		"board": database.KeyOf(base, &board), "layout": database.KeyOf(base, d.WithPlanes()),
	} {
		if other == key {
			t.Errorf("another %s has the same key", name)
		}
	}
	if cpu := desc("llvm:x86-64-v4"); database.KeyOf(base, cpu) == database.KeyOf(base, cpu.WithCaches(0, 2<<20, 0)) {
		t.Error("a CPU with another cache has the same key")
	}
	if database.KeyOf(cache(300), d) != database.KeyOf(cache(4096), d) || database.KeyOf(cache(300), d) == database.KeyOf(cache(5000), d) {
		t.Error("a cache of 300 rows has another key than one of 4,096, or that of one of 5,000")
	}
	prices := *d
	prices.Cost.Op++
	if database.KeyOf(kernel(5), &prices) != key {
		t.Error("the same kernel has another key by other prices")
	}
}

// A file that is cut, changed or another's is no entry, and says so.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	db := database.Open(dir)
	e := entry(1, "VECTOR s0 4; FMA")
	if err := db.Put(e); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, string(e.Key)+".plan")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		data := bytes.Clone(whole)
		at := rapid.IntRange(0, len(data)-1).Draw(rt, "at")
		if rapid.Bool().Draw(rt, "cut") {
			data = data[:at]
		} else {
			data[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			rt.Fatal(err)
		}
		if got, ok, err := db.Find(e.Key); ok || !errors.Is(err, database.ErrCorrupt) {
			rt.Fatalf("found %+v, %v", got, err)
		}
		if list, bad := db.List(); len(list) != 0 || len(bad) != 1 {
			rt.Fatalf("list %v, %v", list, bad)
		}
	})
	other := entry(2, "ROLL s0")
	if err := os.WriteFile(filepath.Join(dir, string(other.Key)+".plan"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := db.Find(other.Key); ok || !errors.Is(err, database.ErrCorrupt) {
		t.Errorf("another kernel's file is an entry: %v", err)
	}
}

// Imported entries are unproven, and never take the place of what was found here.
func TestExportImport(t *testing.T) {
	from, to := database.Open(t.TempDir()), database.Open(t.TempDir())
	for i := range 3 {
		if err := from.Put(entry(i, "ROLL s0")); err != nil {
			t.Fatal(err)
		}
	}
	own := entry(1, "FMA")
	if err := to.Put(own); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if n, bad, err := from.Export(&text); n != 3 || bad != nil || err != nil {
		t.Fatalf("%d exported, %v, %v", n, bad, err)
	}
	if n, err := to.Import(strings.NewReader(text.String())); n != 2 || err != nil {
		t.Fatalf("%d imported, %v", n, err)
	}
	if e, ok, err := to.Find(own.Key); !ok || err != nil || e.Unproven || e.Plan != "FMA" {
		t.Errorf("the own entry is %+v, %v", e, err)
	}
	if e, ok, err := to.Find(entry(2, "").Key); !ok || err != nil || !e.Unproven || e.Plan != "ROLL s0" {
		t.Errorf("an imported entry is %+v, %v", e, err)
	}
	for _, hostile := range []string{"{", `{"key":"../../etc/passwd"}`, `{"key":"00000000000000000000000000000000","plan":"NOSUCH"}`, strings.Replace(text.String(), "ROLL s0", strings.Repeat("ROLL s0;", 1000), 1)} {
		if _, err := to.Import(strings.NewReader(hostile)); !errors.Is(err, database.ErrCorrupt) {
			t.Errorf("import of %.40q: %v", hostile, err)
		}
	}
}

// Any text is imported as unproven entries into the folder, or is an error.
func FuzzImport(f *testing.F) {
	e, err := json.Marshal(entry(1, "ROLL s0"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(e)
	f.Add([]byte(`{"key":"../../etc/passwd"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		parent := t.TempDir()
		db := database.Open(filepath.Join(parent, "plans"))
		n, err := db.Import(bytes.NewReader(text))
		list, bad := db.List()
		if len(bad) > 0 || len(list) > n || err == nil && len(list) == 0 && n > 0 {
			t.Errorf("%q: %d imported, %v; %d listed, %v", text, n, err, len(list), bad)
		}
		for _, e := range list {
			if !e.Unproven {
				t.Errorf("%q: entry %+v is believed", text, e)
			}
		}
		if files, err := os.ReadDir(parent); err != nil || len(files) > 1 {
			t.Errorf("%q: files %v, %v", text, files, err)
		}
	})
}

// Two processes that write the same entries leave whole ones, at any moment.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	var writers []*exec.Cmd
	for range 2 {
		w := exec.Command(os.Args[0])
		w.Env = append(os.Environ(), writerEnv+"="+dir)
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	db := database.Open(dir)
	done := make(chan error, 1)
	go func() { done <- errors.Join(writers[0].Wait(), writers[1].Wait()) }()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
		if _, bad := db.List(); bad != nil {
			t.Fatalf("while two write: %v", bad)
		}
	}
	if list, bad := db.List(); len(list) != 3 || bad != nil {
		t.Errorf("%d entries, %v, want 3", len(list), bad)
	}
}

// Decisions are believed as plans are: of this board, of this version of the rules, under their own keys.
func TestDecisions(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	other, err := target.Parse("ptx:sm_80")
	if err != nil {
		t.Fatal(err)
	}
	list, err := schedule.ParseDecisions("split-grid 0123456789abcdef 8; R6p 0123456789abcdef decline; R1 00000000000000ff apply")
	if err != nil {
		t.Fatal(err)
	}
	db := database.Open(t.TempDir())
	var entries []database.Entry
	for _, d := range list.List() {
		e := database.NewDecision(d, desc)
		if err := db.Put(e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if got, bad := db.Decisions(desc); bad != nil || fmt.Sprint(got.List()) != fmt.Sprint(list.List()) {
		t.Errorf("%v, %v, want %v", got.List(), bad, list.List())
	}
	if got, bad := db.Decisions(other); bad != nil || got.Len() != 0 {
		t.Errorf("for another board: %v, %v", got.List(), bad)
	}
	for name, change := range map[string]func(e *database.Entry){
		"kept":             func(e *database.Entry) { e.Kept = true },
		"unproven":         func(e *database.Entry) { e.Unproven = true },
		"of other rules":   func(e *database.Entry) { e.Source = "other" },
		"another decision": func(e *database.Entry) { e.Decision = "split-grid 0123456789abcdef 9999999" },
		"two decisions":    func(e *database.Entry) { e.Decision += "; R1 00000000000000fe apply" },
		"with a plan":      func(e *database.Entry) { e.Plan = "FMA" },
		"another key":      func(e *database.Entry) { e.Decision = "R4i 0123456789abcdef decline" },
		"a hostile key":    func(e *database.Entry) { e.Key = "../../../../etc/passwd-or-so-of32" },
	} {
		db, e := database.Open(t.TempDir()), entries[0]
		change(&e)
		err := db.Put(e)
		got, bad := db.Decisions(desc)
		if got.Len() != 0 || (err == nil && bad == nil) != (e.Kept || e.Unproven) {
			t.Errorf("%s: %v, %v, %v", name, err, got.List(), bad)
		}
	}
	files, err := filepath.Glob(filepath.Join(db.Dir(), "*.decision"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range [][]byte{nil, data[:len(data)-2], append([]byte("x"), data...), bytes.Replace(data, []byte("split"), []byte("spilt"), 1)[1:]} {
		if err := os.WriteFile(files[0], cut, 0o644); err != nil {
			t.Fatal(err)
		}
		if got, bad := db.Decisions(desc); len(bad) != 1 || !errors.Is(bad[0], database.ErrCorrupt) || got.Len() != 2 {
			t.Errorf("a file that was changed: %v, %v", got.List(), bad)
		}
	}
}
