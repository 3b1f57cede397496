package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/nn"
	"tgc/search/database"
	"tgc/target"
	"tgc/tensor"
)

// storedPlan puts a plan of the only kernel of a graph into a database, with the source that it
// gives unless another is named.
func storedPlan(t *testing.T, c *engine.Compiled, dir, text, source string) {
	t.Helper()
	p, err := plan.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if source == "" {
		with, err := c.Replan(t.Context(), engine.Config{Plans: givenPlan{p}})
		if err != nil {
			t.Fatal(err)
		}
		printed, err := engine.Source(with.Kernels[0].Program, c.Target)
		if err != nil || with.Kernels[0].Origin != engine.FromGiven {
			t.Fatalf("origin %s, %v", with.Kernels[0].Origin, err)
		}
		source = engine.SourceHash(printed)
	}
	e := database.NewEntry(c.Kernels[0].AST, c.Target)
	e.Plan, e.Source = text, source
	if err := database.Open(dir).Put(e); err != nil {
		t.Fatal(err)
	}
}

// Plans of a database are used as long as they give the source with which they were timed; any
// other is ignored with a warning.
func TestPlansOfDatabase(t *testing.T) {
	for _, name := range []string{"llvm:x86-64-v4", "ptx:sm_90", "interp"} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, 96).Linear(g.Packed("w", "Q8_0", 35, 96)))
		plain, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what, plan, source string
			damage, ignore     bool
			origin             engine.Origin
			warning            string
		}{
			{what: "good", plan: "UPCAST s0 5; UNROLL r0 2", origin: engine.FromDatabase},
			{what: "ignored", plan: "UPCAST s0 5; UNROLL r0 2", ignore: true, origin: engine.FromHeuristic},
			{what: "other source", plan: "UPCAST s0 5; UNROLL r0 2", source: "abc", origin: engine.FromHeuristic, warning: "another source"},
			{what: "refused", plan: "UPCAST s9 5", source: "abc", origin: engine.FromHeuristic, warning: "no axis"},
			{what: "damaged", plan: "UPCAST s0 5", damage: true, origin: engine.FromHeuristic, warning: "cut short"},
		} {
			t.Run(name+" "+c.what, func(t *testing.T) {
				dir := t.TempDir()
				storedPlan(t, plain, dir, c.plan, c.source)
				if files, _ := filepath.Glob(dir + "/*"); c.damage && os.Truncate(files[0], 100) != nil {
					t.Fatal("no file")
				}
				var warnings []string
				config := engine.Config{DB: dir, IgnoreDB: c.ignore, Warn: func(text string) { warnings = append(warnings, text) }}
				got, err := g.Compile(t.Context(), desc, config)
				if err != nil {
					t.Fatal(err)
				}
				k := got.Kernels[0]
				if want := map[bool]string{true: c.plan, false: plain.Kernels[0].Plan.String()}[c.origin == engine.FromDatabase]; k.Plan.String() != want || k.Origin != c.origin {
					t.Errorf("plan %q from %s, want %q from %s", k.Plan, k.Origin, want, c.origin)
				}
				if all := strings.Join(warnings, "; "); (all == "") != (c.warning == "") || !strings.Contains(all, c.warning) {
					t.Errorf("warnings %q, want %q", all, c.warning)
				}
				var m engine.Manifest
				m.Describe(got, engine.Bind(got, nil))
				if m.Kernels[0].Origin != c.origin {
					t.Errorf("the manifest says %s", m.Kernels[0].Origin)
				}
			})
		}
	}
}

// A plan that was found over a cache of one size is used over another where the heuristic has the
// plan for it that the search found it better than.
func TestPlansOfOtherSizes(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	over := func(rows int, dir string) *engine.Kernel { // what 32 queries weigh of a cache
		g := tensor.NewGraph()
		length := g.VarAtLeast("length", 1, int64(rows))
		visited := func(name string) *tensor.Tensor {
			return g.Input(name, ir.F32, 1, 8, rows, 64).Slice(2, g.Dims(0)[0], length)
		}
		y := nn.Attention(g.Input("q", ir.F32, 1, 1, 32, 64), visited("k"), visited("v"), g.Input("at", ir.I32, 1, 1))
		g.Output("y", y.Reshape(8, 4, 64))
		c, err := g.Compile(t.Context(), desc, engine.Config{DB: dir})
		if err != nil {
			t.Fatal(err)
		}
		return c.Kernels[len(c.Kernels)-1] // what weighs; scores are stored
	}
	dir := t.TempDir()
	found := over(256, dir)
	e := database.NewEntry(found.AST, desc)
	e.Over = found.Plan.String()
	e.Plan = strings.ReplaceAll(e.Over, "UNROLL r0 4", "UNROLL r0 2")
	p, err := plan.Parse(e.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if e.Source, err = engine.ClassSource(t.Context(), found.AST, p, desc); err != nil {
		t.Fatal(err)
	}
	if err := database.Open(dir).Put(e); err != nil {
		t.Fatal(err)
	}
	used := make(map[bool]int)
	for _, rows := range []int{64, 128, 250, 256, 512, 1024} {
		heuristics, k := over(rows, ""), over(rows, dir)
		if database.KeyOf(k.AST, desc) != e.Key {
			continue // another class
		}
		same := heuristics.Plan.String() == e.Over
		used[same]++
		if is := k.Origin == engine.FromDatabase; is != same || is != (k.Plan.String() == e.Plan) {
			t.Errorf("%d rows: plan %s from %s, where the heuristic has %s", rows, k.Plan, k.Origin, heuristics.Plan)
		}
	}
	if used[true] < 2 || used[false] < 1 {
		t.Errorf("the heuristic's plan is that of the entry how often: %v", used)
	}
}

// A plan chosen anew leaves schedule, buffers and, without other plans, the programs.
func TestReplan(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 96)
	g.Output("y", x.Linear(g.Packed("w", "Q8_0", 35, 96)))
	g.Output("z", x.Linear(g.Packed("v", "Q8_0", 64, 96)).Exp())
	c, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Replan(t.Context(), engine.Config{})
	if err != nil || again.Schedule != c.Schedule || len(again.Kernels) != len(c.Kernels) {
		t.Fatalf("%d kernels, %v, want %d", len(again.Kernels), err, len(c.Kernels))
	}
	for i, k := range again.Kernels {
		a, errA := engine.Source(k.Program, desc)
		b, errB := engine.Source(c.Kernels[i].Program, desc)
		if a != b || errA != nil || errB != nil || k.Name != c.Kernels[i].Name {
			t.Errorf("kernel %s differs from %s (%v, %v)", k.Name, c.Kernels[i].Name, errA, errB)
		}
	}
	for i, launch := range again.Launches {
		for k, call := range launch {
			if !slices.Equal(call.Args, c.Launches[i][k].Args) {
				t.Errorf("launch %d has other arguments", i)
			}
		}
	}
}

// Another plan of one kernel gives what planning all kernels anew gives, and leaves the other programs, also
// where kernels share a launch.
func TestExchange(t *testing.T) {
	for _, name := range []string{"ptx:sm_90", "llvm:x86-64-v4"} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		g := tensor.NewGraph()
		x := g.Input("x", ir.F32, 96)
		y := x.Linear(g.Packed("w", "Q8_0", 64, 96))
		g.Output("y", y)
		g.Output("z", x.Linear(g.Packed("v", "Q8_0", 64, 96)).Exp())
		g.Output("s", y.Linear(g.Packed("u", "Q8_0", 35, 64)).Contiguous().Exp())
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		changed := 0 // a plan that is refused changes nothing
		for round, text := range []string{"VECTOR r0 4", "UNROLL r0 2"} {
			for i := range c.Kernels {
				k := c.Kernels[i]
				if len(k.Parts) > 0 {
					k = k.Parts[len(k.Parts)-1]
				}
				p, err := plan.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				config := engine.Config{Plans: planOf{k.AST, p}}
				want, err := c.Replan(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				got, err := c.Exchange(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				if twice, err := got.Exchange(t.Context(), config); err != nil || sourcesOf(t, twice) != sourcesOf(t, want) {
					t.Errorf("%s, round %d, kernel %s: exchanged twice it differs (%v)", name, round, k.Name, err)
				}
				if sourcesOf(t, got) != sourcesOf(t, want) {
					t.Errorf("%s, round %d, kernel %s:\n%s\nwant\n%s", name, round, k.Name, sourcesOf(t, got), sourcesOf(t, want))
				}
				if sourcesOf(t, got) != sourcesOf(t, c) {
					changed++
				}
			}
		}
		if changed < 2 {
			t.Errorf("%s: %d plans change something, want some", name, changed)
		}
	}
}

// sourcesOf prints the launches of a compiled graph, and its programs under their names.
func sourcesOf(t *testing.T, c *engine.Compiled) (text string) {
	t.Helper()
	for _, launch := range c.Launches {
		for _, call := range launch {
			text += fmt.Sprintln(call.Kernel.Name, call.Args)
		}
	}
	for _, k := range c.Kernels {
		source, err := engine.Source(k.Program, c.Target)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintln(k.Name, k.Plan, source)
	}
	return text
}

// planOf is a plan of one kernel.
type planOf struct {
	ast  *ir.UOp
	plan plan.Plan
}

func (p planOf) Find(_ context.Context, sink *ir.UOp, _ *target.Desc) (engine.Found, bool, error) {
	return engine.Found{Plan: p.plan, Origin: engine.FromGiven}, sink == p.ast, nil
}

// givenPlan is one plan for every kernel.
type givenPlan struct{ plan plan.Plan }

func (g givenPlan) Find(context.Context, *ir.UOp, *target.Desc) (engine.Found, bool, error) {
	return engine.Found{Plan: g.plan, Origin: engine.FromGiven}, true, nil
}
