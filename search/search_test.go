package search_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tgc/engine"
	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/runtime"
	"tgc/runtime/cpu"
	"tgc/runtime/cuda"
	"tgc/runtime/cuda/emulator"
	"tgc/runtime/interp"
	"tgc/search"
	"tgc/tensor"
)

func TestMain(m *testing.M) {
	search.MaybeChild(func(_ context.Context, spec *search.Spec) (runtime.Device, error) {
		if spec.Device == "cuda:emu" {
			drv, err := emulator.New(emulator.Options{})
			if err != nil {
				return nil, err
			}
			return cuda.New(cuda.Options{Driver: drv, Label: spec.Device, NoCache: true})
		}
		return &faulty{Device: interp.New(interp.Options{}), fault: spec.Device}, nil
	})
	os.Exit(m.Run())
}

// faulty is a device on which every program but the first one goes wrong.
type faulty struct {
	runtime.Device
	fault string
	first string
	runs  int

	broken bool
}

func (d *faulty) Load(ctx context.Context, programs []*program.Program) ([]runtime.Executable, error) {
	text := program.Print(programs[0])
	if d.first == "" {
		d.first = text
	}
	if d.fault == "assembler" && text != d.first {
		time.Sleep(time.Hour)
	}
	if d.fault == "memory" && text != d.first {
		var taken [][]byte
		for len(taken) < 1<<10 { // 16 GB, unless somebody ends it
			taken = append(taken, bytes.Repeat([]byte{1}, 16<<20))
			time.Sleep(time.Millisecond)
		}
		return nil, fmt.Errorf("%d parts of memory", len(taken))
	}
	if d.fault == "fatal" && text != d.first {
		os.Exit(4)
	}
	if d.fault == "refused" && text != d.first {
		return nil, errors.New("out of registers")
	}
	return d.Device.Load(ctx, programs)
}

func (d *faulty) Record(ctx context.Context, launches []runtime.Launch) (runtime.Recording, error) {
	r, err := d.Device.Record(ctx, launches)
	call := launches[0].Calls[0]
	if err != nil || program.Print(call.Exec.Program()) == d.first && d.fault != "lost" {
		return r, err
	}
	return &faultyRecording{r, d, call}, nil
}

type faultyRecording struct {
	runtime.Recording
	device *faulty
	call   runtime.Call
}

func (r *faultyRecording) Run(ctx context.Context, vars map[string]int64) error {
	d := r.device
	view, bytes := r.output()
	before := make([]byte, 4)
	_ = view.Memory.Read(ctx, view.Offset+bytes-4, before)
	if err := r.Recording.Run(ctx, vars); err != nil {
		return err
	}
	d.runs++
	at, data := int64(-1), []byte{1, 2, 3, 0x40}
	switch d.fault {
	case "hang":
		select {}
	case "dies":
		os.Exit(3)
	case "error":
		return errors.New("a bad address")
	case "lost":
		d.broken = d.broken || program.Print(r.call.Exec.Program()) != d.first
		if d.broken {
			return errors.New("the device is lost")
		}
	case "element":
		at = view.Offset + 4
	case "last element":
		at = view.Offset + bytes - 4
	case "not written":
		at, data = view.Offset+bytes-4, before
	case "beside":
		at = view.Offset + bytes
	case "before":
		at = view.Offset - 1
		data = data[:1]
	case "other bits":
		at, data = view.Offset, []byte{byte(d.runs)}
	}
	if at < 0 {
		return nil
	}
	return view.Memory.Write(ctx, at, data)
}

// output is the buffer that the program writes.
func (r *faultyRecording) output() (runtime.View, int64) {
	for _, p := range r.call.Exec.Program().Params {
		if p.Write {
			return r.call.Slots[p.Slot], p.Bytes
		}
	}
	return runtime.View{}, 0
}

// matvec is a packed matrix by a vector, and a residual.
func matvec(t testing.TB, format string, rows, columns int) *tensor.Graph {
	t.Helper()
	g := tensor.NewGraph()
	g.Output("y", g.Input("r", ir.F32, rows).Add(g.Input("x", ir.F32, columns).Linear(g.Packed("w", format, rows, columns))))
	return g
}

// kernelOf compiles a graph of one kernel.
func kernelOf(t testing.TB, g *tensor.Graph, dev runtime.Device) search.Kernel {
	t.Helper()
	c, err := g.Compile(t.Context(), dev.Target(), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return search.Kernel{AST: c.Kernels[0].AST, Desc: c.Target, Plan: c.Kernels[0].Plan}
}

func optionsOf(k search.Kernel) search.BenchOptions {
	return search.BenchOptions{Seed: 1, Limits: search.DefaultLimits(), Baseline: k.Plan.String()}
}

func parse(t testing.TB, texts ...string) (list []plan.Plan) {
	t.Helper()
	for _, text := range texts {
		p, err := plan.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

func statuses(outcomes []search.Outcome) (list []search.Status) {
	for _, o := range outcomes {
		list = append(list, o.Status)
	}
	return list
}

// Every way in which a candidate goes wrong is its outcome, in this process and in a child, and
// the candidate after it is measured all the same.
func TestFaults(t *testing.T) {
	dev := interp.New(interp.Options{})
	k := kernelOf(t, matvec(t, "Q8_0", 5, 96), dev)
	options := optionsOf(k)
	options.Limits.Run, options.Limits.Compile, options.Limits.Memory = time.Second, time.Second, 128<<20
	other, largest := "ROLL s0", "UPCAST s0; UNROLL r0"
	for fault, want := range map[string]struct {
		status search.Status
		reason string
		child  bool // only a child survives it
	}{
		"element":      {search.Wrong, "[1] is 2.", false},
		"last element": {search.Wrong, "[4] is 2.", false},
		"not written":  {search.Wrong, "[4] is NaN", false},
		"beside":       {search.Wrong, "beside buffer", false},
		"before":       {search.Wrong, "beside buffer", false},
		"other bits":   {search.Wrong, "other bits", false},
		"error":        {search.Crashed, "a bad address", false},
		"refused":      {search.Refused, "out of registers", false},
		"assembler":    {search.TooLong, "to assemble", false},
		"hang":         {search.TooLong, "no answer", true},
		"dies":         {search.Crashed, "the process died", true},
		"fatal":        {search.Crashed, "the process died", true},
		"memory":       {search.TooLarge, "too much memory", true},
		"":             {search.Measured, "", false},
	} {
		for _, child := range []bool{false, true} {
			if want.child && !child {
				continue
			}
			t.Run(fmt.Sprintf("%s, child %t", fault, child), func(t *testing.T) {
				tester := testerOf(t, k, options, fault, child)
				got, err := tester.Try(t.Context(), parse(t, other, k.Plan.String(), other+"; "+other, "LOCAL s0 2000"))
				if err != nil {
					t.Fatal(err)
				}
				if fault == "" || want.status == search.TooLong && !want.child {
					got = got[:2]
				}
				if got[0].Status != want.status || !strings.Contains(got[0].Reason, want.reason) || got[1].Status != search.Measured {
					t.Errorf("outcomes %+v, want %+v and a measured one", got, want)
				}
			})
		}
	}
	options.Limits.Source = 4 << 10
	b := testerOf(t, k, options, "", false)
	if got, err := b.Try(t.Context(), parse(t, largest)); err != nil || got[0].Status != search.TooLarge {
		t.Errorf("%+v, %v, want a candidate that is too large", got, err)
	}
}

func testerOf(t testing.TB, k search.Kernel, options search.BenchOptions, fault string, child bool) (tester search.Tester) {
	t.Helper()
	var err error
	if child {
		tester, err = search.StartChild(t.Context(), search.Spec{Device: fault, Kernel: ir.Text(k.AST), Options: options})
	} else {
		tester, err = search.NewBench(t.Context(), &faulty{Device: interp.New(interp.Options{}), fault: fault}, k.AST, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tester.Close() })
	return tester
}

// mutating is a device whose assembler makes another program of a candidate.
type mutating struct {
	runtime.Device
	first   string
	mutated *program.Program
}

func (d *mutating) Load(ctx context.Context, programs []*program.Program) ([]runtime.Executable, error) {
	text := program.Print(programs[0])
	if d.first == "" {
		d.first = text
	}
	if text != d.first {
		programs = []*program.Program{d.mutated}
	}
	return d.Device.Load(ctx, programs)
}

// Every program that is wrong by a typical mistake of lowering is refused.
func TestProgramMutantsAreRefused(t *testing.T) {
	dev := interp.New(interp.Options{})
	places := make(map[string]int)
	for _, g := range mutantGraphs(t) {
		k := kernelOf(t, g, dev)
		other := parse(t, "VECTOR r0 4; FMA", "ROLL s0", "")
		other = slices.DeleteFunc(other, func(p plan.Plan) bool { return p.String() == k.Plan.String() })
		for _, p := range other {
			a := ir.NewArena()
			lowered, err := kernel.LowerWith(t.Context(), a, a.Import(k.AST), p, k.Desc, engine.ProgramName, nil)
			if err != nil {
				continue
			}
			for i := range testkit.ProgramMutants {
				m := &testkit.ProgramMutants[i]
				n, err := m.Mutations(lowered, 2, func(mutated *program.Program, where string) {
					if program.Verify(mutated) == nil {
						refused(t, k, p, mutated, where)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				places[m.Name] += n
			}
		}
	}
	for _, m := range testkit.ProgramMutants {
		if places[m.Name] == 0 && m.Name != "wrong lanes" { // which GPUs have
			t.Errorf("mutant %q applies nowhere", m.Name)
		}
	}
	t.Logf("places: %v", places)
}

// mutantGraphs have sums, extrema, selections and loops.
func mutantGraphs(t *testing.T) (list []*tensor.Graph) {
	list = append(list, matvec(t, "Q8_0", 5, 96))
	for _, build := range []func(x *tensor.Tensor) *tensor.Tensor{
		func(x *tensor.Tensor) *tensor.Tensor { return x.Max(1) },
		func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(x).Add(x).Sum(1) },
		func(x *tensor.Tensor) *tensor.Tensor { return x.Relu().Sum(1) },
	} {
		g := tensor.NewGraph()
		g.Output("y", build(g.Input("x", ir.F32, 6, 40)))
		list = append(list, g)
	}
	return list
}

func refused(t *testing.T, k search.Kernel, p plan.Plan, mutated *program.Program, where string) {
	t.Helper()
	b, err := search.NewBench(t.Context(), &mutating{Device: interp.New(interp.Options{}), mutated: mutated}, k.AST, optionsOf(k))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	got, err := b.Try(t.Context(), []plan.Plan{p})
	if err != nil || got[0].Status == search.Measured || got[0].Status == search.Duplicate {
		t.Errorf("plan %q: %s: %+v, %v", p, where, got, err)
	}
}

// A device that a candidate has taken with it is an error in this process; a child starts anew.
func TestLostDevice(t *testing.T) {
	k := kernelOf(t, matvec(t, "Q8_0", 5, 96), interp.New(interp.Options{}))
	b := testerOf(t, k, optionsOf(k), "lost", false)
	plans := parse(t, "ROLL s0", k.Plan.String())
	got, err := b.Try(t.Context(), plans)
	if err != nil || !slices.Equal(statuses(got), []search.Status{search.Crashed}) {
		t.Errorf("%+v, %v, want one that crashed", got, err)
	}
	if _, err := b.Try(t.Context(), plans); err == nil {
		t.Error("a lost device tries candidates")
	}
}

// A batch that is cut short by the end of its time leaves the child, which knows what the kernel's values are.
func TestStoppedInTime(t *testing.T) {
	k := kernelOf(t, matvec(t, "Q8_0", 5, 96), interp.New(interp.Options{}))
	options := optionsOf(k)
	options.Limits.Compile = time.Hour
	tester := testerOf(t, k, options, "assembler", true) // which goes on for an hour
	plans := parse(t, k.Plan.String(), "VECTOR r0 16")
	if got, err := tester.Try(t.Context(), plans[:1]); err != nil || !slices.Equal(statuses(got), []search.Status{search.Measured}) {
		t.Fatalf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got, err := tester.Try(ctx, plans)
	if !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(statuses(got), []search.Status{search.Measured}) {
		t.Errorf("%+v, %v, want the one that was measured", got, err)
	}
	times, err := tester.Compare(t.Context(), plans[:1], 3)
	if restarts := tester.(*search.Child).Restart; err != nil || len(times[0]) != 3 || restarts != 0 {
		t.Errorf("%v, %v, and %d more children, want three times of the same one", times, err, restarts)
	}
}

// A heuristic's plan that computes something else than the interpreter ends the search of its
// kernel: nothing else could be judged.
func TestWrongHeuristic(t *testing.T) {
	k := kernelOf(t, matvec(t, "Q8_0", 5, 96), interp.New(interp.Options{}))
	dev := &faulty{Device: interp.New(interp.Options{}), fault: "element", first: "none"}
	if _, err := search.NewBench(t.Context(), dev, k.AST, optionsOf(k)); err == nil || !strings.Contains(err.Error(), "interpreter") {
		t.Errorf("error %v, want one about the interpreter's value", err)
	}
}

// With KeepBits, a sum in another order is refused; without, it is not.
func TestKeepBits(t *testing.T) {
	k := kernelOf(t, matvec(t, "Q8_0", 5, 960), interp.New(interp.Options{}))
	options := optionsOf(k)
	for keep, want := range map[bool]search.Status{false: search.Measured, true: search.Wrong} {
		options.KeepBits = keep
		got, err := testerOf(t, k, options, "", false).Try(t.Context(), parse(t, "VECTOR r0 16", k.Plan.String()+"; ROLL s0"))
		if err != nil || got[0].Status != want || got[1].Status == search.Wrong {
			t.Errorf("KeepBits %t: %+v, %v, want %s", keep, got, err, want)
		}
	}
}

// The same seed tries the same candidates in the same order; the end of a context is no error.
func TestSearchIsDeterministic(t *testing.T) {
	k := kernelOf(t, matvec(t, "Q8_0", 6, 96), interp.New(interp.Options{}))
	options := search.DefaultOptions()
	options.Beam, options.Round, options.Batch = 2, 60, 4
	var first []string
	for range 2 {
		r, err := search.Run(t.Context(), k, &clockless{known: make(map[string]bool)}, options)
		if err != nil || len(r.Outcomes) < 20 {
			t.Fatalf("%d candidates, %v", len(r.Outcomes), err)
		}
		var list []string
		for _, o := range r.Outcomes {
			list = append(list, o.Plan)
		}
		if first == nil {
			first = list
		}
		if !slices.Equal(list, first) {
			t.Error("other candidates from the same seed")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	options.Progress = func(p search.Progress) {
		if p.Tried > 10 {
			cancel()
		}
	}
	r, err := search.Run(ctx, k, &clockless{known: make(map[string]bool)}, options)
	if err != nil || len(r.Best) == 0 {
		t.Errorf("a search that was stopped: %v, %v, want what it found", r, err)
	}
}

// clockless is a tester by which shorter plans are faster.
type clockless struct{ known map[string]bool }

func (c *clockless) Try(_ context.Context, plans []plan.Plan) (out []search.Outcome, err error) {
	for _, p := range plans {
		out = append(out, search.Outcome{Plan: p.String(), Status: search.Measured, Time: c.time(p)})
	}
	return out, nil
}

func (c *clockless) time(p plan.Plan) float64 { return 10 + float64(len(p.String())) }

func (c *clockless) Compare(_ context.Context, plans []plan.Plan, rounds int) (times [][]float64, err error) {
	for _, p := range plans {
		times = append(times, slices.Repeat([]float64{c.time(p)}, rounds))
	}
	return times, nil
}

func (c *clockless) Close() error { return nil }

// A search finds the plan that a clock likes best, from the heuristic and from scratch.
func TestSearchFindsTheFastest(t *testing.T) {
	k := kernelOf(t, matvec(t, "Q8_0", 6, 96), interp.New(interp.Options{}))
	for _, scratch := range []bool{false, true} {
		options := search.DefaultOptions()
		options.Scratch = scratch
		r, err := search.Run(t.Context(), k, &clockless{}, options)
		if err != nil {
			t.Fatal(err)
		}
		if r.After.Plan != "" || !scratch && r.Gain <= 0 {
			t.Errorf("scratch %t: %q after %q, want the empty plan", scratch, r.After.Plan, r.Before.Plan)
		}
	}
}

// On a real device: no candidate is wrong.
func TestSearchOnCPU(t *testing.T) {
	dev, err := cpu.New(t.Context(), cpu.Options{Threads: 2, CacheDir: t.TempDir()})
	if errors.Is(err, cpu.ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	k := kernelOf(t, matvec(t, "Q6_K", 35, 9*256), dev)
	b, err := search.NewBench(t.Context(), dev, k.AST, optionsOf(k))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	options := search.DefaultOptions()
	options.Budget, options.Beam = 5*time.Second, 2
	r, err := search.Run(t.Context(), k, b, options)
	if err != nil || r.Count(search.Measured) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	t.Logf("%q %.2f us -> %q %.2f us: %d candidates", r.Before.Plan, r.Before.Time, r.After.Plan, r.After.Time, len(r.Outcomes))
	for _, o := range r.Outcomes {
		if o.Status == search.Wrong || o.Status == search.Crashed || o.Status == search.TooLong {
			t.Errorf("%+v", o)
		}
	}
}

// On an emulated GPU, in a child as on a real one: no candidate is wrong, races included.
func TestSearchOnEmulatedGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("the emulator is slow")
	}
	drv, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := cuda.New(cuda.Options{Driver: drv, Label: "cuda:emu", NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	k := kernelOf(t, matvec(t, "Q4_0", 9, 6*32), dev)
	child, err := search.StartChild(t.Context(), search.Spec{Device: "cuda:emu", Kernel: ir.Text(k.AST), Options: optionsOf(k)})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	options := search.DefaultOptions()
	options.Budget, options.Beam, options.Batch, options.Round = 5*time.Second, 1, 8, 64
	r, err := search.Run(t.Context(), k, child, options)
	if err != nil || r.Count(search.Measured) < 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, o := range r.Outcomes {
		if o.Status == search.Wrong || o.Status == search.Crashed {
			t.Errorf("%+v", o)
		}
	}
}

// Bounds follow from the heuristic's plan, and only ever get tighter.
func TestLimitsNarrow(t *testing.T) {
	k := kernelOf(t, matvec(t, "Q8_0", 256, 512), interp.New(interp.Options{}))
	options := optionsOf(k)
	options.Limits.Source = 1 << 30
	b := testerOf(t, k, options, "", false)
	got, err := b.Try(t.Context(), parse(t, "UPCAST s0; UNROLL r0 16"))
	if err != nil || got[0].Status != search.TooLarge {
		t.Errorf("%+v, %v, want a candidate that is too large", got, err)
	}
}
