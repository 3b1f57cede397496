package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir/program"
	"tgc/kernel/plan"
)

var update = flag.Bool("update", false, "rewrite docs/plan.md")

// docs/plan.md is generated from the table of Opts.
func TestPlanDocument(t *testing.T) {
	var s strings.Builder
	s.WriteString(planHead)
	for _, kind := range plan.OptKinds() {
		info := kind.Info()
		fmt.Fprintf(&s, "\n## %s\n\n%s\n", info.Name, info.Doc)
		if info.On != plan.OnAll {
			if refusedOn[info.On] == "" {
				t.Errorf("%s: no words for the devices that refuse it", info.Name)
			}
			fmt.Fprintf(&s, "\nRefused on %s: %s.\n", refusedOn[info.On], info.Refusal)
		}
		s.WriteString(amounts(kind))
		fmt.Fprintf(&s, "\n```\n%s\n```\nbecomes\n```\n%s\n```\n", info.Before, info.After)
	}
	path := filepath.Join("..", "..", "docs", "plan.md")
	if *update {
		if err := os.WriteFile(path, []byte(s.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != s.String() {
		t.Errorf("%s is out of date (go test ./kernel/plan -update), error %v", path, err)
	}
}

// amounts says what the amounts of a kind may be, where the table does.
func amounts(kind plan.OptKind) string {
	option, words := kind.Sets(), kind.Words()
	switch {
	case option == program.NoOption && words == nil:
		return ""
	case words != nil && option.Usual() > 0:
		return fmt.Sprintf("\nAmount: %s; %s without the Opt.\n", strings.Join(words, ", "), words[option.Usual()-1])
	case words != nil:
		return fmt.Sprintf("\nAmount: %s.\n", strings.Join(words, ", "))
	case option.Usual() > 0:
		return fmt.Sprintf("\nAmount: %d to %d; %d without the Opt.\n", option.Least(), option.Most(), option.Usual())
	}
	return fmt.Sprintf("\nAmount: %d to %d.\n", option.Least(), option.Most())
}

var refusedOn = [...]string{plan.OnGPU: "a CPU", plan.OnCPU: "a GPU", plan.OnLaunch: "a CPU, and on a GPU before sm_90", plan.OnMatrixOrTiles: "CPUs without tile instructions, and GPUs before sm_80",
	plan.OnMatrix: "a CPU, and on a GPU without the instructions", plan.OnCluster: "a CPU, and on a GPU before sm_90", plan.OnGroups: "a CPU, and on a GPU but sm_90a"}

const planHead = `# Plans

A plan says how one kernel runs. It is a list of Opts, applied in order; it
prints, parses, is stored and replayed. It does not rewrite the kernel: lowering
substitutes every range once. This page is generated from the table in
` + "`kernel/plan/opts.go`" + ` (go test ./kernel/plan -update).

Axes have stable names: s0, s1, .. are the ranges of the stores in loop order,
r0, r1, .. those of reduces and z0, z1, .. those of stages, outer before inner.
Buffers are p0, p1, .. by slot.

Without Opts, store ranges of constant extent that every store has are work
units of the grid, and all other ranges are loops. A splitting Opt takes its
amount from the low end of what is left of its axis:

` + "```" + `
VECTOR r0 32; UNROLL r0 8; STAGE r0; PREFETCH p2 8192; FMA

r0 = 256*b + 32*u + lane      b: serial loop, u: 8 copies, lane: 32 lanes
` + "```" + `

Copies and lanes are cut further at the boundaries of index expressions (k/16,
k%128, ..), so that the index of every field of a packed format is a linear form
of digits. Where a split with lanes (of a reduce, also copies) does not divide the
extent N, the last T points start at N-T: what they repeat is stored again, unless the
kernel reads what it writes, and counts once in a sum. Elsewhere points past the end
count as the identity of a reduce and are not stored.
`

// Each option of programs is what one Opt chooses, and no two.
func TestOptionsHaveOpts(t *testing.T) {
	chosen := make(map[program.Option]plan.OptKind)
	for _, kind := range plan.OptKinds() {
		if option := kind.Sets(); option != program.NoOption {
			if other, twice := chosen[option]; twice {
				t.Errorf("%s and %s both choose %s", other, kind, option)
			}
			if kind.TakesAxis() || !strings.EqualFold(kind.String(), option.String()) {
				t.Errorf("%s, with an axis: %t, chooses %s", kind, kind.TakesAxis(), option)
			}
			chosen[option] = kind
		}
	}
	for option := program.NoOption + 1; int(option) < len(program.Options{}); option++ {
		if _, ok := chosen[option]; !ok {
			t.Errorf("no Opt chooses %s", option)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("VECTOR r0 32; UNROLL r0 8; STAGE r0; PREFETCH p2 8192; FMA")
	f.Add("SWAP s0 0\nROLL s1\nTC r0 4")
	f.Add("PRELOAD p2; AHEAD 32; CACHE p2 stream")
	f.Fuzz(func(t *testing.T, text string) {
		chosen, err := plan.Parse(text)
		if err != nil {
			return
		}
		again, err := plan.Parse(chosen.String())
		if err != nil || again.String() != chosen.String() {
			t.Fatalf("%q parses to %q, then %q, %v", text, chosen, again, err)
		}
	})
}

// Parts divide the threads, take the least rounds that any such number takes of less than twice
// the points, and are the fewest that do: more than that no axis is split into.
func TestPartsOf(t *testing.T) {
	for _, c := range []struct{ threads, points, want int64 }{
		{16, 30, 16}, {64, 30, 32}, {256, 960, 256}, {8, 3, 4}, {5, 7, 5}, {129, 4, 3}, {5, 2, 1}, {64, 48, 64}, {32, 8, 8}, {96, 40, 48}, {1, 9, 1},
	} {
		if got := plan.PartsOf(c.threads, c.points); got != c.want {
			t.Errorf("%d points by %d threads: %d parts, want %d", c.points, c.threads, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		threads, points := rapid.Int64Range(1, 1024).Draw(t, "threads"), rapid.Int64Range(1, 5000).Draw(t, "points")
		rounds := func(n int64) int64 { return (points + n - 1) / n }
		got := plan.PartsOf(threads, points)
		if threads%got != 0 || got >= 2*points && got > 1 {
			t.Fatalf("%d parts of %d threads and %d points", got, threads, points)
		}
		for n := int64(1); n <= threads && n < 2*points; n++ {
			if threads%n == 0 && (rounds(n) < rounds(got) || n < got && rounds(n) == rounds(got)) {
				t.Fatalf("%d parts do better than %d", n, got)
			}
		}
	})
}
