package llm_test

import (
	"strings"
	"testing"

	"tgc/engine"
	"tgc/heuristic"
	"tgc/ir"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/runtime"
	"tgc/search/database"
	"tgc/target"
)

const classesShape = "llama:d=64,layers=1,heads=2,kv=1,head=32,ff=64,vocab=266,ctx=4096,quant=q8_0"

// decodeAt compiles a decode step with a cache of some rows; warnings fail the test.
func decodeAt(t *testing.T, rows int, desc *target.Desc, db string) *engine.Compiled {
	t.Helper()
	config := engine.Config{DB: db, Warn: func(message string) { t.Errorf("%d rows: %s", rows, message) }}
	step, err := llm.CompileStep(t.Context(), openOutline(t, classesShape), llm.Variant{Batch: 1, Tokens: 1, Context: rows}, 8, desc, config)
	if err != nil {
		t.Fatal(err)
	}
	return step.Compiled
}

// parts are the kernels of a step, those of merged launches one by one.
func parts(c *engine.Compiled) (list []*engine.Kernel) {
	for _, k := range c.Kernels {
		if len(k.Parts) > 0 {
			list = append(list, k.Parts...)
		} else {
			list = append(list, k)
		}
	}
	return list
}

// storeOthers stores a plan that is not the heuristic's for each kernel that has one: kernels that
// are the same share an entry.
func storeOthers(t *testing.T, c *engine.Compiled, db *database.DB) (stored, entries int) {
	t.Helper()
	keys := make(map[database.Key]bool)
	for _, k := range parts(c) {
		a := ir.NewArena()
		list, err := heuristic.Candidates(a, a.Import(k.AST), c.Target, heuristic.Knobs{})
		if err != nil {
			t.Fatal(err)
		}
		for _, candidate := range append(list, heuristic.Candidate{}) { // and the empty plan
			source, err := engine.ClassSource(t.Context(), k.AST, candidate.Plan, c.Target)
			if err != nil || candidate.Plan.String() == k.Plan.String() {
				continue
			}
			e := database.NewEntry(k.AST, c.Target)
			e.Plan, e.Source = candidate.Plan.String(), source
			if err := db.Put(e); err != nil {
				t.Fatal(err)
			}
			keys[e.Key] = true
			stored++
			break
		}
	}
	return stored, len(keys)
}

// fromDatabase counts the kernels whose plan is the database's.
func fromDatabase(c *engine.Compiled) (n int) {
	for _, k := range parts(c) {
		if k.Origin == engine.FromDatabase {
			n++
		}
	}
	return n
}

func sourcesOf(t *testing.T, c *engine.Compiled) string {
	t.Helper()
	var all strings.Builder
	for _, k := range parts(c) {
		if k.Program == nil {
			continue // of a merged launch
		}
		text, err := engine.Source(k.Program, c.Target)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(text)
	}
	return all.String()
}

// Plans that were found with a cache of one size are those of caches of other sizes of its class:
// the same source bytes each time, of every kernel. After an import they are candidates first.
func TestPlansAtAnotherContext(t *testing.T) {
	for _, name := range []string{"ptx:sm_90a", "llvm:x86-64-v4", "interp"} {
		desc, db := mustTarget(t, name), database.Open(t.TempDir())
		stored, entries := storeOthers(t, decodeAt(t, 600, desc, ""), db)
		if stored < 5 {
			t.Fatalf("%s: %d kernels have another plan", name, stored)
		}
		for _, rows := range []int{600, 300, 1024} {
			first, second := decodeAt(t, rows, desc, db.Dir()), decodeAt(t, rows, desc, db.Dir())
			if got := fromDatabase(first); got != stored {
				t.Errorf("%s: %d rows: %d of %d plans were found", name, rows, got, stored)
			}
			if sourcesOf(t, first) != sourcesOf(t, second) {
				t.Errorf("%s: %d rows: the sources differ from one time to the next", name, rows)
			}
		}
		var text strings.Builder
		if n, _, err := db.Export(&text); n != entries || err != nil {
			t.Fatalf("%d exported, %v", n, err)
		}
		elsewhere := database.Open(t.TempDir())
		if n, err := elsewhere.Import(strings.NewReader(text.String())); n != entries || err != nil {
			t.Fatalf("%d imported, %v", n, err)
		}
		if got := fromDatabase(decodeAt(t, 1024, desc, elsewhere.Dir())); got != 0 {
			t.Errorf("%s: %d plans from elsewhere are used before they were tried", name, got)
		}
		storeOthers(t, decodeAt(t, 1000, desc, ""), elsewhere) // what a tune does that finds them faster here
		if sourcesOf(t, decodeAt(t, 1024, desc, elsewhere.Dir())) != sourcesOf(t, decodeAt(t, 1024, desc, db.Dir())) {
			t.Errorf("%s: after an import the sources differ", name)
		}
	}
}

// The logits of replayed plans are the same to the bit each time, and with a cache of another size.
func TestLogitsOfPlansAtAnotherContext(t *testing.T) {
	dev, db := openDevice(t, "interp"), database.Open(t.TempDir())
	storeOthers(t, decodeAt(t, 600, dev.Target(), ""), db)
	logits := func(rows int, dev runtime.Device) []float32 {
		b := newBatch(t, tinyAt(t), dev, llm.BatchOptions{Sequences: 1, Context: rows, Config: engine.Config{DB: db.Dir()}})
		for _, token := range []int32{3, 5, 7} {
			if err := b.Feed(t.Context(), [][]int32{{token}}); err != nil {
				t.Fatal(err)
			}
		}
		step, err := b.Compiled(t.Context(), 1)
		if err != nil || fromDatabase(step.Compiled) == 0 {
			t.Fatalf("no plan of the database is used (%v)", err)
		}
		list, err := b.Logits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	want := logits(600, dev)
	for _, rows := range []int{600, 300, 1024} {
		for i, v := range logits(rows, openDevice(t, "interp")) {
			if v != want[i] {
				t.Fatalf("%d rows: logit %d is %v, want %v", rows, i, v, want[i])
			}
		}
	}
}

// tinyAt is the model of these tests with weights.
func tinyAt(t *testing.T) *llm.Model { return synthModel(t, classesShape) }

// synthModel is a model of a shape, with weights.
func synthModel(t *testing.T, name string) *llm.Model {
	t.Helper()
	shape, err := synth.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := synth.Memory(t.Context(), shape, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := llm.NewModel(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}
