package engine_test

import (
	"testing"

	"tgc/engine"
	"tgc/internal/testkit"
	"tgc/ir/program"
	"tgc/runtime/interp"
	"tgc/target"
)

// Every mistake in testkit.ProgramMutants, at several places of the programs of every
// fixed graph, gives values that differ from the eager model's, or a fault.
func TestKitProgramMutantsAreSeen(t *testing.T) {
	places := make(map[string]int)
	for _, entry := range testkit.Zoo() {
		if entry.Large {
			continue
		}
		for _, name := range []string{"interp", "llvm:x86-64-v3", "llvm:x86-64-v4"} {
			desc, err := target.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			mutatePrograms(t, entry, desc, places)
		}
	}
	for i := range testkit.ProgramMutants {
		if m := &testkit.ProgramMutants[i]; places[m.Name] == 0 {
			t.Errorf("mutant %q applies nowhere", m.Name)
		}
	}
	t.Logf("places: %v", places)
}

func mutatePrograms(t *testing.T, entry testkit.ZooEntry, desc *target.Desc, places map[string]int) {
	var cases []*testkit.Case
	var wants []map[int64]*testkit.Numbers
	for seed := range uint64(8) { // the largest of a row stands in any turn of a loop
		c, err := entry.Build(seed)
		if err != nil {
			t.Fatal(err)
		}
		want, err := c.Expected()
		if err != nil {
			t.Fatal(err)
		}
		cases, wants = append(cases, c), append(wants, want)
	}
	dev := interp.New(interp.Options{})
	compiled, err := cases[0].Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	seen := func(mutated *engine.Compiled) bool {
		for i, c := range cases {
			got, err := c.Run(t.Context(), dev, mutated)
			if err != nil || testkit.Compare(got, wants[i]) != nil {
				return true
			}
		}
		return false
	}
	if seen(compiled) {
		t.Fatalf("%s: wrong without a mutant", entry.Name)
	}
	for i := range testkit.ProgramMutants {
		m := &testkit.ProgramMutants[i]
		for k := range compiled.Kernels {
			n, err := m.Mutations(compiled.Kernels[k].Program, 3, func(p *program.Program, where string) {
				if program.Verify(p) == nil && !seen(withProgram(compiled, k, p)) {
					t.Errorf("%s for %s: survives: %s", entry.Name, desc.Name, where)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			places[m.Name] += n
		}
	}
}

// withProgram is a compiled graph with another program for one kernel.
func withProgram(c *engine.Compiled, index int, p *program.Program) *engine.Compiled {
	out := *c
	out.Kernels = append([]*engine.Kernel(nil), c.Kernels...)
	k := *c.Kernels[index]
	k.Program = p
	out.Kernels[index] = &k
	out.Launches = nil
	for _, calls := range c.Launches {
		var list []engine.Call
		for _, call := range calls {
			if call.Kernel == c.Kernels[index] {
				call.Kernel = &k
			}
			list = append(list, call)
		}
		out.Launches = append(out.Launches, list)
	}
	return &out
}
