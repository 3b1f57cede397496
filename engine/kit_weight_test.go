package engine_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"
	"tgc/internal/testkit"
	"tgc/target"
)

// Plans for large weights, one row or several, in every kind of format, keep
// values. A case takes long, so only some are tried without -v.
func TestKitWeightPlansKeepValues(t *testing.T) {
	tried, plans := 0, make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		if tried++; tried > 10 && !testing.Verbose() {
			return
		}
		c := testkit.WeightCases().Draw(t, "case")
		name := rapid.SampledFrom([]string{"llvm:x86-64-v2", "llvm:x86-64-v3", "llvm:x86-64-v4", "llvm:x86-64-v4+avx512vnni", "ptx:sm_80", "ptx:sm_90a"}).Draw(t, "target")
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := c.Expected()
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := c.Compile(context.Background(), desc, checked())
		if err != nil {
			t.Fatalf("%s: %v\n%s\n%s", name, err, c.Text(), scheduleText(c))
		}
		for _, k := range compiled.Kernels {
			plans[firstWord(k.Why)]++
		}
		got, err := c.Run(context.Background(), debugInterp(), compiled)
		if err != nil {
			t.Fatalf("%s: %v\n%s\n%s", name, err, c.Text(), compiled.Schedule)
		}
		if err := testkit.Compare(got, want); err != nil {
			t.Fatalf("%s: %v\n%s\n%s", name, err, c.Text(), compiled.Schedule)
		}
	})
	t.Logf("plans: %v", plans)
}
