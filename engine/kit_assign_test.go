package engine_test

import (
	"context"
	"regexp"
	"testing"

	"pgregory.net/rapid"

	_ "tgc/internal/steadyseed"
	"tgc/internal/testkit"
)

// bothVersions matches an error that names two versions of a buffer.
var bothVersions = regexp.MustCompile(`buffer\d+@\d+.*buffer\d+@\d+`)

// Programs that assign to buffers give what the eager model gives, or are
// refused with an error that names both versions: never a silent stale read. The
// interpreter runs plans of several machines.
func TestKitAssignPrograms(t *testing.T) {
	compiled, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := testkit.AssignPrograms().Draw(t, "program")
		want, err := c.Expected()
		if err != nil {
			t.Fatal(err)
		}
		config := checked()
		if rapid.Bool().Draw(t, "rules off") {
			config.Rules = drawRules(t)
		}
		dev := debugInterp()
		desc := dev.Target()
		if rapid.Bool().Draw(t, "other machine") {
			desc = drawTarget(t)
		}
		program, err := c.Compile(context.Background(), desc, config)
		if err != nil {
			if !bothVersions.MatchString(err.Error()) {
				t.Fatalf("the error does not name two versions: %v\n%s", err, c.Text())
			}
			refused++
			return
		}
		compiled++
		got, err := c.Run(context.Background(), dev, program)
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, c.Text(), program.Schedule)
		}
		if err := testkit.Compare(got, want); err != nil {
			t.Fatalf("%v\n%s\n%s", err, c.Text(), program.Schedule)
		}
	})
	if t.Logf("%d compiled, %d refused", compiled, refused); refused > compiled {
		t.Errorf("%d of %d programs were refused: the order finds too little", refused, refused+compiled)
	}
}
