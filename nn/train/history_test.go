package train_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tgc/nn/events"
	"tgc/nn/train"
)

func records() train.History {
	return train.History{
		{Step: 10, Epoch: 0.1, Seconds: 1.0 / 3, Values: map[string]float64{"loss": math.Pi, "valid.loss": 3}},
		{Step: 20, Epoch: 0.2, Seconds: 2, Values: map[string]float64{"loss": math.Inf(1)}},
		{Step: 30, Epoch: 0.3, Seconds: 3, Values: map[string]float64{"loss": 1e-300, "valid.loss": 2, "a, \"b\"": -0.5}},
		{Step: 40, Epoch: 0.4, Seconds: 4, Values: map[string]float64{"loss": 0.5, "valid.loss": 2.5}},
	}
}

// A table gives every bit back.
func TestHistoryAsATable(t *testing.T) {
	h := records()
	var table bytes.Buffer
	if err := h.WriteCSV(&table); err != nil {
		t.Fatal(err)
	}
	again, err := train.ReadHistory(&table)
	if err != nil || !reflect.DeepEqual(again, h) {
		t.Errorf("%v, %v, want %v", again, err, h)
	}
	short, err := train.ReadHistory(strings.NewReader("step,loss\n5,0.25\n"))
	if err != nil || short[0].Step != 5 || short[0].Values["loss"] != 0.25 {
		t.Errorf("without epochs: %v, %v", short, err)
	}
	for text, want := range map[string]string{
		"":                    `no column "step"`,
		"loss\n1\n":           `no column "step"`,
		"step,loss\n1,2\n1,x": "line 3",
		"step,loss\n1\n":      "wrong number of fields",
	} {
		if _, err := train.ReadHistory(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestHistoryAnswers(t *testing.T) {
	h := records()
	if names := h.Names(); !slices.Equal(names, []string{"a, \"b\"", "loss", "valid.loss"}) {
		t.Errorf("names %q", names)
	}
	steps, values := h.Series("valid.loss")
	if !slices.Equal(steps, []int{10, 30, 40}) || !slices.Equal(values, []float64{3, 2, 2.5}) {
		t.Errorf("%v at %v", values, steps)
	}
	for _, c := range []struct {
		watch train.Watch
		step  int
	}{{train.Watch{Name: "valid.loss"}, 30}, {train.Watch{Name: "valid.loss", Larger: true}, 10}, {train.Watch{Name: "loss"}, 30}} {
		if best, ok := h.Best(c.watch); !ok || best.Step != c.step {
			t.Errorf("best by %v: %v, want step %d", c.watch, best, c.step)
		}
	}
	if _, ok := h.Best(train.Watch{Name: "nothing"}); ok {
		t.Error("a best record of a value that none has")
	}
	if (train.History{}).Last().Step != 0 {
		t.Error("the last of no records")
	}
}

// Files that callbacks keep hold the whole history, and events each record.
func TestCallbacksKeepFiles(t *testing.T) {
	dev, _ := device(t)
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	opt := plan(dev)
	opt.Callbacks = []train.Callback{
		train.WriteCSV(file("run.csv")), train.WriteSVG(file("run.svg"), "Losses"),
		train.WriteSVG(file("accuracy.svg"), "Share", "accuracy", "valid.accuracy"), train.WriteEvents(file("events")),
	}
	r := fit(t, opt)
	table, err := os.Open(file("run.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if h, err := train.ReadHistory(table); err != nil || !reflect.DeepEqual(h, r.History) {
		t.Errorf("%v, %v", h, err)
	}
	for name, text := range map[string]string{"run.svg": ">valid.loss<", "accuracy.svg": ">valid.accuracy<"} {
		if picture, err := os.ReadFile(file(name)); err != nil || strings.Count(string(picture), "<polyline") != 2 || !strings.Contains(string(picture), text) {
			t.Errorf("%s: %s, %v", name, picture, err)
		}
	}
	paths, err := filepath.Glob(file("events/*tfevents*"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v, %v", paths, err)
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	list, err := events.Read(data)
	last := list[len(list)-1]
	if want := r.History.Last(); err != nil || len(list) != 1+len(r.History) || last.Step != want.Step ||
		last.Scalars["valid.loss"] != float64(float32(want.Values["valid.loss"])) {
		t.Errorf("%d events, the last %v, %v", len(list), last, err)
	}
}

// A profile accounts for every kernel and changes nothing.
func TestProfile(t *testing.T) {
	dev, _ := device(t)
	r := fit(t, plan(dev))
	before := values(t, r.Trainer)
	p, err := r.Profile(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := sameValues(before, values(t, r.Trainer)); err != nil {
		t.Error(err)
	}
	calls, total := 0, time.Duration(0)
	for i, k := range p.Kernels {
		calls, total = calls+k.Calls, total+k.Time
		if i > 0 && k.Time > p.Kernels[i-1].Time {
			t.Errorf("kernel %d takes more than the one before", i)
		}
	}
	if calls != p.Calls || total != p.Alone || calls == 0 || p.Launches > calls || p.Step <= 0 {
		t.Errorf("%d calls in %v: %+v", calls, total, p)
	}
	if text := p.String(); strings.Count(text, "\n") != 1+2*len(p.Kernels) || !strings.Contains(text, p.Kernels[0].Name) {
		t.Error(text)
	}
	if picture := string(p.SVG()); strings.Count(picture, "<title>") != len(p.Kernels) {
		t.Error(picture)
	}
}
