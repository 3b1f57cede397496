package search

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/search/database"
	"tgc/search/lease"
	"tgc/target"
	"tgc/tensor"
)

// directly is a queue whose worker does each job when it is waited for.
type directly struct {
	worker  TaskWorker
	jobs    map[string]lease.Job
	done    int
	forgot  []string
	aside   []string           // workers lost with each job
	falsify func(*Finding) any // what a worker sends in place of what it found; may be nil
}

func newDirectly(t *testing.T, step Step, tried *int) *directly {
	return &directly{jobs: make(map[string]lease.Job), worker: TaskWorker{
		Desc: step.Compiled.Target, Say: t.Logf,
		Testers: func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return byLength{tried}, nil },
	}}
}

func (d *directly) Submit(job lease.Job) error {
	if d.jobs[job.ID].ID != "" {
		return errors.New("submitted twice")
	}
	d.jobs[job.ID] = job
	return job.Check()
}

func (d *directly) Wait(ctx context.Context, id string) (lease.Result, error) {
	d.done++
	job, ok := d.jobs[id]
	if !ok {
		return lease.Result{}, errors.New("not submitted")
	}
	if d.aside != nil {
		return lease.Result{ID: id, Aside: d.aside}, nil
	}
	body, err := d.worker.Do(ctx, job.Body, func(string) {})
	if err == nil && d.falsify != nil {
		f := &Finding{}
		if err := json.Unmarshal(body, f); err != nil {
			return lease.Result{}, err
		}
		body, err = json.Marshal(d.falsify(f))
	}
	return lease.Result{ID: id, Worker: "worker", Body: body}, err
}

func (d *directly) Forget(id string) error {
	d.forgot = append(d.forgot, id)
	delete(d.jobs, id)
	return nil
}

// spreadOver lets workers search.
func spreadOver(d *directly, t *testing.T) func(*TuneOptions) {
	return func(o *TuneOptions) { o.Spread = NewSpread(d, t.Logf) }
}

// Workers search, this machine confirms a few plans; the result is that of one machine, which also tries what is
// around the plan that it takes.
func TestSpread(t *testing.T) {
	step, db, there := twoKernels(t), database.Open(t.TempDir()), 0
	alone, all := tuneWith(t, step, nil, lengthOf, nil)
	d := newDirectly(t, step, &there)
	log, err := OpenLog(filepath.Join(t.TempDir(), "log"), "interp")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	tuned, here := tuneWith(t, step, db, lengthOf, func(o *TuneOptions) {
		spreadOver(d, t)(o)
		o.Log = log
	})
	if there == 0 || there > all || here > 2*(mostWinners+1) || d.done != 2 || len(d.forgot) != 2 {
		t.Errorf("workers tried %d of %d, this machine %d; %d tasks, %d forgotten", there, all, here, d.done, len(d.forgot))
	}
	for i, k := range tuned.Kernels {
		if want := alone.Kernels[i]; k.After.Plan != want.After.Plan || k.Candidates > want.Candidates || !k.Stored {
			t.Errorf("%s: plan %q of %d, alone %q of %d", k.Kernel.Name, k.After.Plan, k.Candidates, want.After.Plan, want.Candidates)
		}
	}
	_, logged := readLogFile(t, log.file.Name())
	if n := len(logged[0].Candidates) + len(logged[1].Candidates); n != there {
		t.Errorf("the log has %d candidates, want the %d of the workers", n, there)
	}
	if _, here := tuneWith(t, step, db, lengthOf, spreadOver(d, t)); here != 0 || d.done != 2 {
		t.Errorf("searched again: %d tried here, %d tasks", here, d.done)
	}
}

// What a worker finds that is no faster here is not taken, whatever it says.
func TestSpreadConfirms(t *testing.T) {
	step, there := twoKernels(t), 0
	d := newDirectly(t, step, &there)
	d.falsify = func(f *Finding) any {
		f.Plans = []string{"FMA; ROLL s0; FMA; ROLL s0; FMA; ROLL s0; FMA; ROLL s0; FMA; ROLL s0; FMA; ROLL s0"}
		for i := range f.Outcomes {
			f.Outcomes[i].Time = 1e-9
		}
		return f
	}
	tuned, _ := tuneWith(t, step, nil, lengthOf, spreadOver(d, t))
	for _, k := range tuned.Kernels {
		if k.After.Plan != k.Before.Plan || k.Note != "nothing is faster" {
			t.Errorf("%s: %q, %s", k.Kernel.Name, k.After.Plan, k.Note)
		}
	}
}

// A kernel that workers are lost with is named and stays in the queue; hostile findings leave
// plans as they are.
func TestSpreadFaults(t *testing.T) {
	step, there := twoKernels(t), 0
	outcome := func(change func(o *Outcome)) func(*Finding) any {
		return func(f *Finding) any {
			change(&f.Outcomes[0])
			return f
		}
	}
	for want, falsify := range map[string]func(*Finding) any{
		"no task or finding":         func(*Finding) any { return []int{1} },
		"of kernel \"other\"":        func(f *Finding) any { f.Key = "other"; return f },
		"NOSUCH":                     func(f *Finding) any { f.Plans = []string{"NOSUCH"}; return f },
		"17 plans":                   func(f *Finding) any { f.Plans = make([]string, mostWinners+1); return f },
		"a plan of":                  func(f *Finding) any { f.Plans = []string{strings.Repeat("ROLL s0; ", 1<<10)}; return f },
		`a candidate that is "evil"`: outcome(func(o *Outcome) { o.Status = "evil" }),
		"takes -1 us":                outcome(func(o *Outcome) { o.Time = -1 }),
		"worker worker: a b":         func(*Finding) any { return &Finding{Key: "", Error: "a\x1b[31m\nb"} },
	} {
		d := newDirectly(t, step, &there)
		d.falsify = func(f *Finding) any {
			v := falsify(f)
			if bad, ok := v.(*Finding); ok && bad.Key == "" {
				bad.Key = f.Key
			}
			return v
		}
		tuned, here := tuneWith(t, step, nil, lengthOf, spreadOver(d, t))
		for _, k := range tuned.Kernels {
			note := strings.ReplaceAll(k.Note, "[31m", "")
			if !strings.Contains(strings.Join(strings.Fields(note), " "), want) || k.After.Plan != k.Before.Plan || here != 0 {
				t.Errorf("%s: %q, want %s", k.Kernel.Name, k.Note, want)
			}
		}
	}
	d := newDirectly(t, step, &there)
	d.aside = []string{"one", "two", "three"}
	tuned, _ := tuneWith(t, step, nil, lengthOf, spreadOver(d, t))
	if note := tuned.Kernels[0].Note; !strings.Contains(note, "set aside") || !strings.Contains(note, "one, two, three") || len(d.forgot) > 0 || tuned.Kernels[0].Stored {
		t.Errorf("note %q, forgotten %v", note, d.forgot)
	}
	d.aside = nil
	if _, _ = tuneWith(t, step, nil, lengthOf, func(o *TuneOptions) {
		spreadOver(d, t)(o)
		o.Again = true
	}); len(d.forgot) != 4 {
		t.Errorf("forgotten %v, want both kernels before and after", d.forgot)
	}
}

// A hostile task is answered, and nothing of it is done.
func TestTaskRefuses(t *testing.T) {
	step, tried := twoKernels(t), 0
	d := newDirectly(t, step, &tried)
	tn := newTuning(step, TuneOptions{Search: DefaultOptions()})
	k := &TunedKernel{Kernel: step.Compiled.Kernels[0]}
	good := tn.task(k)
	good.Budget = time.Minute
	for want, change := range map[string]func(task *Task){
		"it is for":     func(task *Task) { task.Board = "another board\x1b[2J" },
		"budget 0s":     func(task *Task) { task.Budget = 0 },
		"budget -1ns":   func(task *Task) { task.Budget = -1 },
		"beam 0":        func(task *Task) { task.Beam = 0 },
		"its key":       func(task *Task) { task.Key = "0" },
		"NOSUCH":        func(task *Task) { task.Baseline = "NOSUCH" },
		"NOSUCH2":       func(task *Task) { task.Extra = []string{"NOSUCH2"} },
		"ir: line 1":    func(task *Task) { task.Text = "%0 = evil" },
		"an empty text": func(task *Task) { task.Text = "" },
		"more":          func(task *Task) { task.Extra = make([]string, mostExtra+1) },
		"verify":        func(task *Task) { task.Text = strings.Join(strings.Split(task.Text, "\n")[:1], "\n") },
		"compiler bug": func(task *Task) {
			d.worker.Testers = func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { panic("\x00") }
		},
	} {
		task := *good
		change(&task)
		body, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		if want == "more" {
			want = "4097 more"
		}
		f := answer(t, d, body)
		if want == "verify" {
			want = ErrForeign.Error()
		}
		if !strings.Contains(f.Error, want) || strings.ContainsRune(f.Error, 0x1b) || len(f.Plans) > 0 {
			t.Errorf("finding %+v, want an error with %s", f, want)
		}
	}
	for _, body := range []string{``, `[]`, `{"code":"evil"}`, `{"key":5}`} {
		if f := answer(t, d, []byte(body)); f.Error == "" {
			t.Errorf("%s: no error", body)
		}
	}
	if tried != 0 {
		t.Errorf("%d plans were tried", tried)
	}
}

// How weights lie is a kernel's, not a worker's: devices of one kind serve all of them from one queue.
func TestTaskLayouts(t *testing.T) {
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F32, 512).Linear(g.Packed("w", "Q6_K", 64, 512)))
	for name, config := range map[string]engine.Config{"ptx:sm_90a": {}, "llvm:x86-64-v4": {Records: 8}} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := g.Compile(t.Context(), desc, config)
		if err != nil {
			t.Fatal(err)
		}
		if database.BoardOf(c.Target) == database.BoardOf(desc) {
			t.Fatalf("%s: weights lie as in a file", name)
		}
		var given BenchOptions
		w := TaskWorker{Desc: desc, Say: t.Logf, Testers: func(_ context.Context, _ *ir.UOp, options BenchOptions) (Tester, error) {
			given = options
			return byLength{new(int)}, nil
		}}
		tn := newTuning(Step{Compiled: c}, TuneOptions{Search: DefaultOptions()})
		task := tn.task(&TunedKernel{Kernel: c.Kernels[0]})
		task.Budget = time.Second
		body, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		if f := answer(t, &directly{worker: w}, body); f.Error != "" || len(f.Outcomes) == 0 || given.Records != c.Target.Records {
			t.Errorf("%s: %q, %d outcomes, records of %d bits", name, f.Error, len(f.Outcomes), given.Records)
		}
		if QueueOf(desc) != QueueOf(c.Target) {
			t.Errorf("%s: its kernels are in another queue", name)
		}
	}
}

func answer(t *testing.T, d *directly, body []byte) (f Finding) {
	t.Helper()
	out, err := d.worker.Do(t.Context(), body, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// A finding with more candidates than fit into a message has the first of them.
func TestFindingFits(t *testing.T) {
	f := &Finding{Key: "k", Plans: []string{"FMA"}}
	for range 40_000 {
		f.Outcomes = append(f.Outcomes, Outcome{Plan: strings.Repeat("ROLL s0; ", 20), Status: Refused, Time: math.Pi})
	}
	body, err := f.body()
	if err != nil || len(body) > lease.MostBytes {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	back, err := readFinding(body, "k")
	if err != nil || len(back.Outcomes) < 1000 || back.Plans[0] != "FMA" {
		t.Errorf("%d candidates, %v", len(back.Outcomes), err)
	}
}

// Any text is a task within its bounds, or an answer that says what is wrong with it.
func FuzzTask(f *testing.F) {
	desc := llvmTarget(f)
	k := smallKernel(f, 0, desc)
	tn := newTuning(Step{Compiled: k}, TuneOptions{Search: DefaultOptions()})
	task := tn.task(&TunedKernel{Kernel: k.Kernels[0]})
	task.Budget = time.Second
	body, err := json.Marshal(task)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"budget":1,"beam":1,"text":"%0 = const i32 1"}`))
	tried := 0
	w := TaskWorker{Desc: desc, Say: func(string, ...any) {}, Testers: func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return byLength{&tried}, nil }}
	f.Fuzz(func(t *testing.T, body []byte) {
		var task Task
		if json.Unmarshal(body, &task) != nil {
			return
		}
		if k, err := task.check(w.Desc); err == nil && (task.Budget <= 0 || database.KeyOf(k.AST, w.Desc) != task.Key) {
			t.Errorf("%q is taken", body)
		}
	})
}
