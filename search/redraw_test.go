package search

import (
	"slices"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/nn"
	"tgc/target"
	"tgc/tensor"
)

// Plans of which a part is drawn anew are accepted, say something else, and are as they were of some axes; what an array
// is filled by is drawn as a whole.
func TestRedrawn(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []Kernel{roundedProduct(t, desc), {AST: smallKernel(t, 0, desc).Kernels[0].AST, Desc: desc, Plan: smallKernel(t, 0, desc).Kernels[0].Plan}} {
		d, err := newDrafts(k.AST, desc, 1)
		if err != nil {
			t.Fatal(err)
		}
		others, kept := make(map[string]bool), 0
		for range 64 {
			p := d.redrawn(k.Plan)
			if _, err := d.reader.Canonical(p); err != nil {
				t.Fatalf("%s: %v", p, err)
			}
			others[p.String()] = true
			for _, x := range d.free.Axes {
				if own := ofSubject(k.Plan.Opts, x.Name); len(own) > 0 && slices.Equal(own, ofSubject(p.Opts, x.Name)) {
					kept++
				}
			}
		}
		if len(others) < 16 || kept < 64 {
			t.Errorf("%d other plans, %d times an axis is as it was", len(others), kept)
		}
		if got, want := d.threadsOf(k.Plan), plan.Threads(k.AST, axesOf(t, k)); got != want {
			t.Errorf("%s: %d threads, want %d", k.Plan, got, want)
		}
	}
}

func axesOf(t *testing.T, k Kernel) []plan.AxisPlan {
	t.Helper()
	axes, _, err := plan.Read(k.AST, k.Plan, k.Desc)
	if err != nil {
		t.Fatal(err)
	}
	return axes
}

// roundedProduct is a product whose activations are rounded in front of it, which is more than ten Opts away from
// the empty plan.
func roundedProduct(t *testing.T, desc *target.Desc) Kernel {
	t.Helper()
	g := tensor.NewGraph()
	g.Output("y", nn.Int8.Linear(g.Input("x", ir.F32, 1024), g.Packed("w", "Q8_0", 2048, 1024)))
	return lastKernel(t, g, desc)
}

// lastKernel is the last one of a graph, by itself.
func lastKernel(t *testing.T, g *tensor.Graph, desc *target.Desc) Kernel {
	t.Helper()
	c, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if c, err = engine.Compile(t.Context(), c.Kernels[len(c.Kernels)-1].AST, desc, engine.Config{}); err != nil {
		t.Fatal(err)
	}
	return Kernel{c.Kernels[0].AST, desc, c.Kernels[0].Plan}
}

// By what is expected of programs alone, a search from scratch comes to what is expected of the heuristic's plan.
func TestRehearse(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	k := roundedProduct(t, desc)
	options := DefaultOptions()
	options.Scratch, options.Expected = true, 600
	r, err := Rehearse(t.Context(), k, options, BenchOptions{Limits: DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.3g of %d plans, the heuristic's %.3g: %s", r.Best, r.Lowered, r.Heuristic, r.Plan)
	if r.Best > 1.1*r.Heuristic {
		t.Errorf("%.2f times what is expected of the heuristic's plan after %d plans", r.Best/r.Heuristic, r.Lowered)
	}
}

// offsetDrafts draws plans of a product of packed weights that have offsets: beside it stand sums of the activations.
func offsetDrafts(t *testing.T, name string) *drafts {
	t.Helper()
	desc, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	g.Output("y", nn.Int8.Linear(g.Input("x", ir.F32, 1024), g.Packed("w", "Q4_K", 2048, 1024)))
	d, err := newDrafts(lastKernel(t, g, desc).AST, desc, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Sums that stand alike mostly have the same Opts, when all is drawn and when something is drawn anew.
func TestSumsAreDrawnAlike(t *testing.T) {
	d := offsetDrafts(t, "ptx:sm_90a")
	says := func(p plan.Plan, axis int) (s string) {
		for _, o := range p.Opts {
			if d.axis(o) == axis {
				o.Axis = "x"
				s += o.String() + ";"
			}
		}
		return s
	}
	pairs, same := 0, 0
	count := func(p plan.Plan) {
		for i := range d.free.Axes {
			for j := range i {
				if size, _ := d.free.Axes[i].Size(); size >= 32 && d.alike(i, j) {
					pairs++
					if says(p, i) == says(p, j) {
						same++
					}
				}
			}
		}
	}
	list := d.draw(64)
	for _, p := range list {
		count(p)
	}
	for range 3 * len(list) {
		list = append(list, d.redrawn(list[d.rng.IntN(len(list))]))
		count(list[len(list)-1])
	}
	if pairs < len(list) || 10*same < 4*pairs {
		t.Errorf("%d of %d pairs of sums alike have the same Opts, of %d plans", same, pairs, len(list))
	}
}

// On a CPU some drafts have no lanes along the sum of a weight: its rows have them.
func TestLanesLieAcrossSums(t *testing.T) {
	d := offsetDrafts(t, "llvm:x86-64-v4")
	list, across := d.draw(64), 0
	for _, p := range list {
		if !slices.ContainsFunc(p.Opts, func(o plan.Opt) bool {
			i := d.axis(o)
			return o.Kind == plan.VECTOR && i >= 0 && d.fields.Has(i) && d.free.Axes[i].Kind == plan.ReduceAxis
		}) {
			across++
		}
	}
	if 8*across < len(list) || 4*across > 3*len(list) {
		t.Errorf("%d of %d drafts have no lanes along the sum", across, len(list))
	}
}
