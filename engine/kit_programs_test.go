package engine_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"
	"tgc/engine"
	"tgc/internal/testkit"
	"tgc/runtime/interp"
)

// Random programs of every dtype (movement, elementwise, folds, indices,
// assignments; extents of 0 to 40) on the CPU device give what the tensor form
// means, and the interpreter of the same programs gives the same bits. To hunt:
//
//	go test ./engine -run KitPrograms -rapid.seed=0 -rapid.checks=20000 -timeout 2h
//
// A failure shrinks by itself; its graph belongs into testdata/known.
func TestKitProgramsOnCPU(t *testing.T) {
	dev := openCPU(t)
	programs := testkit.Cases(testkit.ProgramLimits())
	rapid.Check(t, func(t *rapid.T) {
		c := programs.Draw(t, "program")
		want, err := c.Expected()
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := c.Compile(context.Background(), dev.Target(), checked())
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, c.Text(), scheduleText(c))
		}
		got, err := c.Run(context.Background(), dev, compiled)
		if err != nil {
			t.Fatalf("cpu: %v\n%s\n%s", err, c.Text(), compiled.Schedule)
		}
		if err := testkit.Compare(got, want); err != nil {
			t.Fatalf("cpu: %v\n%s\n%s", err, c.Text(), compiled.Schedule)
		}
		slow, err := c.Run(context.Background(), interp.New(interp.Options{}), compiled)
		if err != nil {
			t.Fatalf("interp: %v\n%s\n%s", err, c.Text(), compiled.Schedule)
		}
		if err := testkit.SameBits(slow, got); err != nil {
			t.Fatalf("interp and cpu: %v\n%s\n%s", err, c.Text(), compiled.Schedule)
		}
	})
}

// The same programs under plans of other machines, with random sets of fusion
// rules switched off, on the interpreter.
func TestKitProgramsPlansAndRules(t *testing.T) {
	programs := testkit.Cases(testkit.ProgramLimits())
	rapid.Check(t, func(t *rapid.T) {
		c := programs.Draw(t, "program")
		config := engine.Config{Verify: true}
		if rapid.Bool().Draw(t, "rules off") {
			config.Rules = drawRules(t)
		}
		mustEqualOn(t, c, drawTarget(t), config)
	})
}
