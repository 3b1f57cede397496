package passtable_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/engine"
	"tgc/pass"
)

var update = flag.Bool("update", false, "rewrite docs/passes.md")

// oneProgram lists the passes that change one program of the zoo only, or none,
// and why they stay.
var oneProgram = map[string]string{
	"absorb-operands": "the update by Nesterov momentum alone needs it, and no graph of the zoo has one " +
		"(TestUpdateIsOneKernel of nn/optim does)",
	"separate-integer-sums": "only activations of two digits need it, i16, beside blocks whose bytes hold codes of 16 points (Q4_0, IQ4_XS), and " +
		"the zoo has no model of such a type (copies of digits in TestMatrixPlans)",
	"skip-unused-loops": "tiles of rows that no token went to are those of mixtures of experts, of which the zoo has " +
		"one (TestLoopsForRowsThatAreMissing)",
	"split-axes": "heads that a program of the library merges behind a product need it; models keep them apart for " +
		"the product behind (TestMergedAxesHaveLoops)",
	"split-terms": "only CPUs with tile instructions of bf16 ask for it, and the zoo has no such target " +
		"(TestOracleModelsTiles runs it)",
	"sum-bytes-as-floats": "only panels of bytes need it, which a search may find for fewer rows than int8 multiplies as bf16 " +
		"(TestMatrixBytesAsHalves)",
	"transpose-bytes": "only types whose fields lie side by side in a byte need it, Q1_0 and Q2_0, and no model of the " +
		"zoo has them (TestSideBySideEmulated runs such models)",
	"unroll-pairs": "sorts need it, whose graphs are made for a target, and the library programs of the zoo are for all " +
		"(TestPairsOfATileAreMadeOnce, TestSortingInTiles)",
	"undistribute-scales": "only plans of products on GPUs without matrix instructions of bytes (sm_75) ask for it, " +
		"and the zoo has no such target",
}

// docs/passes.md is what the table says and what the zoo shows; and every pass
// earns its place in more than one program.
func TestPasses(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles some 600 steps and programs")
	}
	firing := countFirings(t)
	for _, p := range engine.Passes() {
		n := len(firing.programs[p.Name])
		reason, listed := oneProgram[p.Name]
		switch {
		case n < 2 && !p.Required && !p.Analysis && !listed:
			t.Errorf("%s changes %d programs of the zoo: make it general, drop it, or say why it stays", p.Name, n)
		case listed && n >= 2:
			t.Errorf("%s changes %d programs now: it needs no reason any more (%s)", p.Name, n, reason)
		}
	}
	const path = "../../docs/passes.md"
	text := document(firing)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s is out of date (-want +got); go test ./internal/passtable -update rewrites it:\n%s", path, diff)
	}
}

const header = `# Passes

Every pass from the tensor graph to programs, in the order in which they run.
Generated from the tables (` + "`go test ./internal/passtable -update`" + `).
` + "`tgc opt NAME FILE`" + ` runs one on a form in text, ` + "`tgc compile --without NAME`" + ` leaves one
out, ` + "`--dump-after NAME`" + ` prints the form after it, ` + "`--blame REGEXP`" + ` says which pass made a line. A pass in **bold** cannot be left out.
`

func document(f *firing) string {
	var text strings.Builder
	text.WriteString(header)
	form := pass.Form("")
	for _, p := range engine.Passes() {
		if p.From != form {
			form = p.From
			fmt.Fprintf(&text, "\n## From form *%s*\n\n| pass | to | does | why |\n|---|---|---|---|\n", form)
		}
		name := "`" + p.Name + "`"
		if p.Required {
			name = "**" + name + "**"
		}
		if p.Key != "" {
			name += " (" + p.Key + ")"
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", name, p.To, cell(p.Doc), cell(p.Why))
	}
	text.WriteString("\n## What runs before what\n\n| before | after | because |\n|---|---|---|\n")
	for _, o := range engine.Orders() {
		fmt.Fprintf(&text, "| `%s` | `%s` | %s |\n", o.Before, o.After, cell(o.Because))
	}
	matrix(&text, f)
	return text.String()
}

// cell makes a text fit a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "|", "\\|"), "\n", " ")
}

func matrix(text *strings.Builder, f *firing) {
	fmt.Fprintf(text, "\n## Where a pass changes anything\n\n"+
		"In how many compilations of a zoo: %d models of %d layers, decode and a prompt of %d, %d modes, and\n"+
		"%d library programs, for %d targets. The first line has the number of compilations of a column.\n\n",
		len(zooModels), zooLayers, zooPrompt, len(zooModes), f.compiled["library"]/len(zooTargets), len(zooTargets))
	line := func(first string, rest func(subject string) string) {
		text.WriteString("| " + first + " |")
		for _, s := range f.subjects {
			text.WriteString(" " + rest(s) + " |")
		}
		text.WriteString("\n")
	}
	line("pass", column)
	line("---", func(string) string { return "---" })
	line("compilations", func(s string) string { return fmt.Sprint(f.compiled[s]) })
	for _, p := range engine.Passes() {
		line("`"+p.Name+"`", func(s string) string { return f.cell(p.Name, s) })
	}
	var reasons []string
	for _, p := range engine.Passes() {
		if reason := oneProgram[p.Name]; reason != "" {
			reasons = append(reasons, fmt.Sprintf("- `%s`: %s\n", p.Name, reason))
		}
	}
	if len(reasons) > 0 {
		text.WriteString("\nPasses that change one program of the zoo at most, and why they stay:\n\n" + strings.Join(reasons, ""))
	}
}
