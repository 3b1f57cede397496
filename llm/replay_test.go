package llm_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/llm"
	"tgc/search/database"
)

// replayed is what a process makes of the plans of a database: hashes of sources by target, and bits of logits.
type replayed struct {
	Plans   map[string]int // of the database, by target
	Sources map[string]string
	Logits  []uint32
}

// Environment of a process that replays, in which this file's test is that process.
const (
	replayDB   = "TGC_TEST_REPLAY_DB"
	replayRows = "TGC_TEST_REPLAY_ROWS"
)

var replayTargets = []string{"ptx:sm_90a", "llvm:x86-64-v4", "interp"}

// replay compiles the step with a cache of some rows for each target, and runs it where programs are interpreted.
func replay(t *testing.T, rows int, db string) (r replayed) {
	t.Helper()
	r.Plans, r.Sources = make(map[string]int), make(map[string]string)
	for _, name := range replayTargets {
		c := decodeAt(t, rows, mustTarget(t, name), db)
		r.Plans[name], r.Sources[name] = fromDatabase(c), fmt.Sprintf("%x", sha256.Sum256([]byte(sourcesOf(t, c))))
	}
	b := newBatch(t, tinyAt(t), openDevice(t, "interp"), llm.BatchOptions{Sequences: 1, Context: rows, Config: engine.Config{DB: db}})
	for _, token := range []int32{3, 5, 7} {
		if err := b.Feed(t.Context(), [][]int32{{token}}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := b.Logits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list[0] {
		r.Logits = append(r.Logits, math.Float32bits(v))
	}
	return r
}

// Processes that know nothing but the database have the sources and the logits of the one that filled it, with caches of
// other sizes too; and so they have from its export, where that was imported and tried.
func TestOtherProcessesReplay(t *testing.T) {
	if db := os.Getenv(replayDB); db != "" {
		rows, err := strconv.Atoi(os.Getenv(replayRows))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(replay(t, rows, db))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\nreplayed %s\n", text)
		return
	}
	db, elsewhere, tried := database.Open(t.TempDir()), database.Open(t.TempDir()), database.Open(t.TempDir())
	stored := make(map[string]int)
	for _, name := range replayTargets {
		desc := mustTarget(t, name)
		stored[name], _ = storeOthers(t, decodeAt(t, 600, desc, ""), db)
		storeOthers(t, decodeAt(t, 1000, desc, ""), tried)
	}
	var text strings.Builder
	if _, _, err := db.Export(&text); err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Import(strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	want := replay(t, 600, db.Dir())
	for _, name := range replayTargets {
		if want.Plans[name] != stored[name] || stored[name] < 5 {
			t.Fatalf("%s: %d plans of %d are used", name, want.Plans[name], stored[name])
		}
	}
	for _, rows := range []int{600, 300, 1024} {
		inDB, afterImport := otherProcess(t, rows, db.Dir()), otherProcess(t, rows, elsewhere.Dir())
		if here := replay(t, rows, db.Dir()); fmt.Sprint(inDB) != fmt.Sprint(here) || fmt.Sprint(inDB.Logits) != fmt.Sprint(want.Logits) {
			t.Errorf("%d rows: another process has other sources or logits", rows)
		}
		for name, n := range afterImport.Plans {
			if n > 0 {
				t.Errorf("%d rows: %d plans of an import are used on %s before they were tried", rows, n, name)
			}
		}
	}
	// A tune that finds the imported plans faster here stores them: TestTuneConfirmsImportedEntries.
	list, bad := tried.List()
	for _, e := range list {
		if err := elsewhere.Put(e); err != nil {
			t.Fatal(err)
		}
	}
	if got := otherProcess(t, 1024, elsewhere.Dir()); len(bad) > 0 || fmt.Sprint(got) != fmt.Sprint(replay(t, 1024, db.Dir())) {
		t.Errorf("after an import another process has other sources or logits (%v)", bad)
	}
}

// otherProcess replays in a process of its own.
func otherProcess(t *testing.T, rows int, db string) (r replayed) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run", "^TestOtherProcessesReplay$")
	c.Env = append(os.Environ(), replayDB+"="+db, fmt.Sprintf("%s=%d", replayRows, rows))
	out, err := c.Output()
	_, text, found := strings.Cut(string(out), "\nreplayed ")
	if err != nil || !found {
		t.Fatalf("%v: %s", err, out)
	}
	text, _, _ = strings.Cut(text, "\n")
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}
