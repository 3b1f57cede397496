package engine_test

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"tgc/engine"
	"tgc/internal/testkit"
	"tgc/pass"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/target"
)

// checked runs the verifiers between passes.
func checked() engine.Config { return engine.Config{Verify: true} }

// debugInterp checks canaries and runs work units in random order.
func debugInterp() *interp.Device { return interp.New(interp.Options{Debug: true, Shuffle: 1}) }

// drawCase draws a graph, with or without a symbolic size.
func drawCase(t *rapid.T, empty bool) *testkit.Case {
	limits := testkit.DefaultLimits()
	limits.Symbolic = rapid.Bool().Draw(t, "symbolic")
	limits.Empty = empty && rapid.Bool().Draw(t, "empty")
	return testkit.Cases(limits).Draw(t, "case")
}

// mustEqual compiles a case for the interpreter, runs it and compares.
func mustEqual(t *rapid.T, c *testkit.Case, config engine.Config) {
	mustEqualOn(t, c, debugInterp().Target(), config)
}

// mustEqualOn compiles a case for a machine, runs its programs on the
// interpreter and compares.
func mustEqualOn(t *rapid.T, c *testkit.Case, desc *target.Desc, config engine.Config) {
	want, err := c.Expected()
	if err != nil {
		t.Fatal(err)
	}
	dev := debugInterp()
	compiled, err := c.Compile(context.Background(), desc, config)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, c.Text(), scheduleText(c))
	}
	got, err := c.Run(context.Background(), dev, compiled)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, c.Text(), compiled.Schedule)
	}
	if err := testkit.Compare(got, want); err != nil {
		t.Fatalf("%v\n%s\n%s", err, c.Text(), compiled.Schedule)
	}
}

// A compiled graph on the interpreter equals the eager model.
func TestKitCompiledEqualsEager(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { mustEqual(t, drawCase(t, true), checked()) })
}

// Plans of every CPU level and of GPUs keep values, on tensors large enough to be tiled,
// vectorised and unrolled with remainders. The interpreter runs the programs.
func TestKitPlansKeepValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := testkit.LargeLimits()
		limits.Symbolic = rapid.Bool().Draw(t, "symbolic")
		c := testkit.Cases(limits).Draw(t, "case")
		mustEqualOn(t, c, drawTarget(t), checked())
	})
}

// drawTarget draws a machine whose plans are to be tried.
func drawTarget(t *rapid.T) *target.Desc {
	desc, err := target.Parse(rapid.SampledFrom([]string{"llvm:x86-64-v2", "llvm:x86-64-v3", "llvm:x86-64-v4", "llvm:x86-64-v4+avx512vnni", "ptx:sm_80", "ptx:sm_90a"}).Draw(t, "target"))
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

// Every set of fusion rules gives right values: each rule alone switched off,
// then random sets of them.
func TestKitRulesOffKeepValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := checked()
		config.Rules = drawRules(t)
		mustEqual(t, drawCase(t, false), config)
	})
}

// drawRules draws the rules to switch off.
func drawRules(t *rapid.T) schedule.RuleSet {
	one := rapid.SampledFrom(schedule.Rules()).Draw(t, "rule off")
	if rapid.Bool().Draw(t, "only this") {
		return schedule.RuleSet(nil).With(one)
	}
	var off schedule.RuleSet
	bits := rapid.Uint64().Draw(t, "rules off")
	for i, rule := range schedule.Rules() {
		if bits>>i&1 == 1 {
			off = off.With(rule)
		}
	}
	return off
}

// The rules that the CPU profile leaves out keep values too: the kernels of
// every profile and set of rules, evaluated in kernel form, for graphs and for
// programs of assignments.
func TestKitProfilesKeepValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if rapid.Bool().Draw(t, "assignments") {
			checkProfile(t, testkit.AssignPrograms().Draw(t, "program"), drawOptions(t))
			return
		}
		checkProfile(t, drawCase(t, false), drawOptions(t))
	})
}

// drawOptions draws rules and limits of the scheduler.
func drawOptions(t *rapid.T) schedule.Options {
	opt := schedule.DefaultOptions()
	opt.Off = drawRules(t)
	if rapid.Bool().Draw(t, "small limits") {
		opt.Profile.StageCap, opt.Profile.TileCap, opt.Profile.MinBlocks, opt.Profile.InlineOps = 16, 8, 1, 8
		opt.Profile.WeightElems, opt.Profile.TableOps = 8, 32
	}
	if rapid.Bool().Draw(t, "eager grid splits") {
		opt.Profile.SumPiece, opt.Profile.PanelRows = rapid.SampledFrom([]int64{0, 2, 3, 5}).Draw(t, "sum piece"), 1
		opt.Profile.GridChunk = rapid.SampledFrom([]int64{1, 2, 3, 4}).Draw(t, "grid chunk")
		opt.Profile.GridSplits = rapid.SampledFrom([]int64{2, 3, 5}).Draw(t, "grid splits")
		opt.Profile.Parallel, opt.Profile.LaunchEdge = 1<<20, 0
	}
	return opt
}

// checkProfile schedules a case and compares its kernels with the eager model.
func checkProfile(t *rapid.T, c *testkit.Case, opt schedule.Options) {
	want, err := c.Expected()
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Schedule(context.Background(), opt)
	if err != nil {
		if !bothVersions.MatchString(err.Error()) {
			t.Fatalf("%v\n%s", err, c.Text())
		}
		return
	}
	got, err := c.RunSchedule(context.Background(), s, interp.KernelOptions{})
	if err != nil {
		t.Fatalf("without %s: %v\n%s\n%s", opt.Off, err, c.Text(), s)
	}
	if err := testkit.Compare(got, want); err != nil {
		t.Fatalf("without %s, chunk %d: %v\n%s\n%s", opt.Off, opt.Profile.GridChunk, err, c.Text(), s)
	}
}

// The layers of the zoo under random rules and limits.
func TestKitZooProfiles(t *testing.T) {
	zoo := testkit.Zoo()
	rapid.Check(t, func(t *rapid.T) {
		entry := zoo[rapid.IntRange(0, len(zoo)-1).Draw(t, "entry")]
		if entry.Large {
			return
		}
		c, err := entry.Build(rapid.Uint64Range(0, 9).Draw(t, "contents"))
		if err != nil {
			t.Fatal(err)
		}
		checkProfile(t, c, drawOptions(t))
	})
}

// Every value of a symbolic size gives what the graph means at that size, with
// one compiled step.
func TestKitSymbolicEverySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := testkit.DefaultLimits()
		limits.Symbolic, limits.Packed, limits.MaxOps = true, false, 6
		limits.Empty = rapid.Bool().Draw(t, "from 0")
		c := testkit.Cases(limits).Draw(t, "case")
		dev := debugInterp()
		compiled, err := c.Compile(context.Background(), dev.Target(), checked())
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, c.Text(), scheduleText(c))
		}
		low := int64(1)
		if limits.Empty {
			low = 0
		}
		for n := low; n <= testkit.SizeHigh; n++ {
			c.Vars[testkit.SizeVar] = n
			want, err := c.Expected()
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Run(context.Background(), dev, compiled)
			if err != nil {
				t.Fatalf("n=%d: %v\n%s\n%s", n, err, c.Text(), compiled.Schedule)
			}
			if err := testkit.Compare(got, want); err != nil {
				t.Fatalf("n=%d: %v\n%s\n%s", n, err, c.Text(), compiled.Schedule)
			}
		}
	})
}

// scheduleText is the schedule of a case that did not compile.
func scheduleText(c *testkit.Case) string {
	s, err := c.Schedule(context.Background(), schedule.CPUOptions())
	if err != nil {
		return err.Error()
	}
	return s.String()
}

// The generator reaches every fusion rule: a rule that no case fires would be
// tested by nothing. Examples are the same in every run.
func TestKitEveryRuleFires(t *testing.T) {
	control := &pass.Control{Trace: true}
	plain := schedule.DefaultOptions()
	plain.Control = control
	opt := plain
	opt.Off = nil
	opt.Profile.GridChunk, opt.Profile.GridSplits, opt.Profile.Parallel, opt.Profile.LaunchEdge = 2, 3, 1<<20, 0
	storing := opt // little is recomputed or staged: values meet the rules of stores
	storing.Profile.StageCap, storing.Profile.StageWork, storing.Profile.StageOps, storing.Profile.TileCap, storing.Profile.InlineOps = 1, 1, 1, 1, 0
	forwarding := opt // small matrices are weights, and no tile has enough company
	forwarding.Profile.WeightElems, forwarding.Profile.MinBlocks = 1, 1<<20
	integers := schedule.CPUOptions() // some rules are for lanes along k
	integers.Profile.SumPiece, integers.Profile.PanelRows = 2, 1
	integers.Control = control
	tiles := schedule.CPUOptions() // of two tokens and more
	tiles.Profile.FloatTiles, tiles.Profile.PanelReuse = 1<<20, 1
	tiles.Control = control
	matrices := plain
	matrices.Profile.MatrixTokens = 8
	scaled := matrices // with launches that take no time
	scaled.Profile.ScaledTokens, scaled.Profile.PlaneTokens, scaled.Profile.Launch = 2, 2, 0
	count := func(c *testkit.Case) {
		for _, o := range []schedule.Options{opt, storing, forwarding, integers, tiles, matrices, scaled, plain} {
			_, err := c.Schedule(t.Context(), o)
			if err != nil && strings.Contains(err.Error(), "buffer hazard") {
				continue // an assignment program without a legal order
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, c.Text())
			}
		}
	}
	cases, assigns := testkit.Cases(testkit.DefaultLimits()), testkit.AssignPrograms()
	for i := range 50 {
		count(cases.Example(i))
		count(assigns.Example(i))
	}
	for _, entry := range append(testkit.Zoo(), testkit.Rounded()...) {
		c, err := entry.Build(1)
		if err != nil {
			t.Fatal(err)
		}
		count(c)
	}
	fired := control.Firings()
	for _, r := range schedule.Rules() {
		t.Logf("%s fired %d times", r, fired[string(r)])
		if fired[string(r)] == 0 {
			t.Errorf("%s never fires", r)
		}
	}
}
