package llm_test

import (
	"slices"
	"testing"

	"tgc/engine"
	"tgc/llm"
	"tgc/nn"
	"tgc/packed"
	"tgc/schedule"
	"tgc/search/database"
)

// What was decided of the layout of weights, by the user or in the database, is what a step is compiled with, and
// is named with its origin. Without, the price decides; in another mode it is another decision.
func TestDecidedLayouts(t *testing.T) {
	m := syntheticModel(t, "llama:d=256,layers=1,heads=4,kv=2,head=64,ff=512,vocab=512,quant=q6_k")
	desc := mustTarget(t, "llvm:x86-64-v4")
	compile := func(mode nn.Numeric, config engine.Config) *engine.Compiled {
		t.Helper()
		step, err := llm.CompileStep(t.Context(), m, llm.Variant{Batch: 1, Tokens: 1, Context: 64, Numeric: mode}, 8, desc, config)
		if err != nil {
			t.Fatal(err)
		}
		return step.Compiled
	}
	list := llm.LayoutDecisions(m, desc, nn.Int8)
	if len(list) != 1 || list[0].Choice != packed.MostRecordBits {
		t.Fatalf("other layouts of Q6_K in int8 are %v, want records of %d bits", list, packed.MostRecordBits)
	}
	d := list[0]
	dir := t.TempDir()
	if err := database.Open(dir).Put(database.NewDecision(d, desc)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config  engine.Config
		mode    nn.Numeric
		records int
		origin  engine.Origin
	}{
		"by price":             {engine.Config{}, nn.Int8, 0, ""},
		"by price, exact":      {engine.Config{}, nn.Exact, packed.RecordBits, ""},
		"by hand":              {engine.Config{Decide: schedule.Decisions{}.With(d)}, nn.Int8, packed.MostRecordBits, engine.FromGiven},
		"of another mode":      {engine.Config{Decide: schedule.Decisions{}.With(d)}, nn.Exact, packed.RecordBits, ""},
		"of the database":      {engine.Config{DB: dir}, nn.Int8, packed.MostRecordBits, engine.FromDatabase},
		"not of the database":  {engine.Config{DB: dir, IgnoreDB: true}, nn.Int8, 0, ""},
		"the user is stronger": {engine.Config{DB: dir, Records: engine.RecordsNever}, nn.Int8, 0, ""},
	} {
		got := compile(c.mode, c.config)
		if got.Target.Records != c.records {
			t.Errorf("%s: records of %d bits, want %d", name, got.Target.Records, c.records)
		}
		i := slices.IndexFunc(got.Decisions, func(x engine.Decision) bool { return x.Decision == d })
		if named := i >= 0; named != (c.origin != "") || named && got.Decisions[i].Origin != c.origin {
			t.Errorf("%s: decisions %v, want one from %q", name, got.Decisions, c.origin)
		}
	}
	// Cores on which dots of bytes run faster from records have them in modes of bytes, and of whole bytes in exact mode.
	intel := mustTarget(t, "llvm:sapphirerapids")
	bytes := syntheticModel(t, "llama:d=256,layers=1,heads=4,kv=2,head=64,ff=512,vocab=512,quant=q8_0")
	for c, want := range map[layoutCase]int{
		{m, nn.Int8}: packed.MostRecordBits, {m, nn.Exact}: packed.RecordBits, {m, nn.Int16}: packed.MostRecordBits,
		{bytes, nn.Int8}: packed.MostRecordBits, {bytes, nn.Exact}: packed.MostRecordBits, {bytes, nn.Int16}: packed.MostRecordBits,
	} {
		mode := c.mode
		step, err := llm.CompileStep(t.Context(), c.model, llm.Variant{Batch: 1, Tokens: 1, Context: 64, Numeric: mode}, 8, intel, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := step.Compiled.Target.Records; got != want {
			t.Errorf("%s of %s by price: records of %d bits, want %d", mode, c.model.File.Tensors()[0].Type, got, want)
		}
	}
	for name, want := range map[string]int{"znver4": packed.MostRecordBits, "znver5": packed.MostRecordBits, "icelake-server": packed.RecordBits, "znver3": packed.RecordBits} {
		step, err := llm.CompileStep(t.Context(), m, llm.Variant{Batch: 1, Tokens: 1, Context: 64}, 8, mustTarget(t, "llvm:"+name), engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := step.Compiled.Target.Records; got != want {
			t.Errorf("exact Q6_K on %s: records of %d bits, want %d", name, got, want)
		}
	}
	if plain, other := compile(nn.Int8, engine.Config{}), compile(nn.Int8, engine.Config{DB: dir}); plain.Kernels[0].Plan.String() == "" || database.BoardOf(plain.Target) == database.BoardOf(other.Target) {
		t.Error("plans of either layout are for the same board")
	}
}

type layoutCase struct {
	model *llm.Model
	mode  nn.Numeric
}

// Layouts are offered where they differ from the one by price, and nowhere else.
func TestLayoutDecisions(t *testing.T) {
	cpu, gpu := mustTarget(t, "llvm:x86-64-v4"), mustTarget(t, "ptx:sm_90a")
	for quant, want := range map[string][]schedule.Choice{"q4_0": {0, packed.MostRecordBits}, "q6_k": {packed.MostRecordBits}, "q8_0": {packed.MostRecordBits}} {
		m := syntheticModel(t, "llama:d=256,layers=1,heads=4,kv=2,head=64,ff=512,vocab=512,quant="+quant)
		var got []schedule.Choice
		for _, d := range llm.LayoutDecisions(m, cpu, nn.Exact) {
			got = append(got, d.Choice)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: choices %v, want %v", quant, got, want)
		}
		if list := llm.LayoutDecisions(m, gpu, nn.Exact); len(list) != 0 {
			t.Errorf("%s: %v on a GPU", quant, list)
		}
	}
}
