package search

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/target"
)

// Drafts are plans that the kernel accepts and that differ, of threads that a block may have.
func TestDrafts(t *testing.T) {
	for _, name := range []string{"ptx:sm_90a", "llvm:x86-64-v4"} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range smallKernels {
			k := smallKernel(t, i, desc).Kernels[0]
			d, err := newDrafts(k.AST, desc, 1)
			if err != nil {
				t.Fatal(err)
			}
			list := d.draw(24)
			if len(list) < 6 {
				t.Errorf("%s on %s: %d drafts, want some", k.Name, name, len(list))
			}
			forms := make(map[string]bool)
			for _, p := range list {
				axes, _, err := plan.Read(k.AST, p, desc)
				if err != nil {
					t.Fatalf("%s on %s: %v", k.Name, name, err)
				}
				if n := plan.Threads(k.AST, axes); n > plan.MaxThreads {
					t.Errorf("%s: %d threads", p, n)
				}
				c, _ := d.reader.Canonical(p)
				forms[c.Text] = true
			}
			if len(forms) != len(list) {
				t.Errorf("%s on %s: %d drafts say %d things", k.Name, name, len(list), len(forms))
			}
		}
	}
}

// estimating is a tester that lowers candidates and takes what is expected of them for their time.
type estimating struct {
	*Bench
	tried, most int
	stop        context.CancelFunc
}

func newEstimating(t *testing.T, c *engine.Compiled, most int) (*estimating, context.Context) {
	t.Helper()
	b := newLowering(c, BenchOptions{Limits: DefaultLimits()})
	ctx, stop := context.WithCancel(t.Context())
	return &estimating{b, 0, most, stop}, ctx
}

func (e *estimating) one(ctx context.Context, p plan.Plan) Outcome {
	l := e.lower(ctx, p)
	e.look(p, l)
	if l.program != nil {
		f := FeaturesOf(l.program, l.size, e.kernel.Target, e.points[0])
		l.outcome.Status, l.outcome.Time = Measured, f.estimate(e.kernel.Target)
	}
	return l.outcome
}

func (e *estimating) Try(ctx context.Context, plans []plan.Plan) ([]Outcome, error) {
	out := make([]Outcome, len(plans))
	for i, p := range plans {
		out[i] = e.one(ctx, p)
	}
	if e.tried += len(plans); e.tried >= e.most {
		e.stop()
	}
	return out, nil
}

func (e *estimating) Compare(_ context.Context, plans []plan.Plan, _ int) ([][]float64, error) {
	return make([][]float64, len(plans)), nil
}

// A search from scratch comes near the heuristic's plan of a product whose activations are
// rounded in front of it, which is more than ten Opts away from the empty plan.
func TestScratchComesNear(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	k := roundedProduct(t, desc)
	c, err := engine.Compile(t.Context(), k.AST, desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tester, ctx := newEstimating(t, c, 80)
	want := tester.one(ctx, k.Plan).Time
	options := DefaultOptions()
	options.Scratch, options.Batch, options.Expected = true, 64, 300
	r, err := Run(ctx, k, tester, options)
	if err != nil || len(r.Best) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	empty := slices.IndexFunc(r.Outcomes, func(o Outcome) bool { return o.Plan == "" })
	t.Logf("the heuristic's plan %q %.3g, of %d candidates %q %.3g, the empty plan %.3g", k.Plan, want, len(r.Outcomes), r.Best[0].Plan, r.Best[0].Time, r.Outcomes[empty].Time)
	if r.Best[0].Time > 1.2*want || r.Outcomes[empty].Time < 5*want {
		t.Errorf("%.3g, from %.3g, want about %.3g", r.Best[0].Time, r.Outcomes[empty].Time, want)
	}
}

// Two plans make those that have the Opts of one axis, or of one kind, from the other.
func TestMixed(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	k := smallKernel(t, 0, desc).Kernels[0]
	p, q := parsed(t, "WARP r0 2; UNROLL r0 4; LOCAL s0 16"), parsed(t, "LOCAL s0 4; UPCAST s0 2; WARP r0 3; FMA")
	var got []string
	for _, m := range newNeighbours(k.AST, desc, 1).mixed(p, q) {
		got = append(got, m.String())
	}
	want := []string{"WARP r0 3; LOCAL s0 16", "WARP r0 2; UNROLL r0 4; LOCAL s0 4; UPCAST s0 2", "WARP r0 2; UNROLL r0 4; LOCAL s0 16; FMA"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := newNeighbours(k.AST, desc, 1).mixed(p, parsed(t, "WARP r0 2; UNROLL r0 2; LOCAL s0 16")); len(got) != 0 {
		t.Errorf("%q of plans that differ in one axis", got)
	}
}

// The estimate likes threads, and dislikes work that few of them do.
func TestEstimate(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	of := func(all, blocks, threads, resident float64) float64 {
		f := Features{featureAll: math.Log(all), featureBlocks: math.Log(blocks), featureThreads: math.Log(threads), featureResident: math.Log(resident)}
		f[featureThread] = f[featureAll] - f[featureThreads] - f[featureBlocks]
		return f.estimate(desc)
	}
	if of(1e6, 128, 256, 256) >= of(1e6, 128, 32, 32) || of(1e6, 128, 256, 256) >= of(1e6, 16, 256, 256) || of(1e6, 128, 256, 256) >= of(4e6, 128, 256, 256) {
		t.Error("more threads, more blocks and fewer instructions are no better")
	}
}

// What takes as long by itself is tried in the step, which may gain all the same.
func TestTuneTriesInTheStepWhatIsAsFast(t *testing.T) {
	step := twoKernels(t)
	early := func(p plan.Plan) float64 {
		if p.String() == "VECTOR r0 2" {
			return 90
		}
		return 100
	}
	tuned, _ := tuneWith(t, step, nil, early, func(o *TuneOptions) {
		o.Testers = func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return allAlike{}, nil }
		o.Search.Extra = []plan.Plan{parsed(t, "UNROLL r0 2"), parsed(t, "VECTOR r0 2")}
		o.Search.Only = true
	})
	for _, k := range tuned.Kernels {
		if k.After.Plan != "VECTOR r0 2" || !strings.Contains(k.Note, "the step takes") {
			t.Errorf("%s: %q, %s, want the plan that only the step likes", k.Kernel.Name, k.After.Plan, k.Note)
		}
	}
}

// allAlike is a tester by which all plans take as long, or are all wrong.
type allAlike struct{ wrong bool }

func (a allAlike) Try(_ context.Context, plans []plan.Plan) (out []Outcome, err error) {
	for _, p := range plans {
		o := Outcome{Plan: p.String(), Status: Measured, Time: 10}
		if a.wrong {
			o.Status = Wrong
		}
		out = append(out, o)
	}
	return out, nil
}

func (allAlike) Compare(_ context.Context, plans []plan.Plan, rounds int) (times [][]float64, err error) {
	for range plans {
		times = append(times, slices.Repeat([]float64{10}, rounds))
	}
	return times, nil
}

func (allAlike) Close() error { return nil }
