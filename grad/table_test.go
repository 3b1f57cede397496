package grad

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/ir"
)

var updateDocument = flag.Bool("update-document", false, "rewrite docs/grad.md")

// docs/grad.md lists the rules.
func TestRulesDocument(t *testing.T) {
	path := filepath.Join("..", "docs", "grad.md")
	got := rulesDocument()
	if *updateDocument {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the rules say; run go test ./grad -update-document (-want +got):\n%s", path, diff)
	}
}

func rulesDocument() string {
	var b strings.Builder
	b.WriteString(`# The rules of derivatives

Generated from the tables in ` + "`grad/rules_*.go` by `go test ./grad -update-document`" + `.

` + "`grad.Of`" + ` walks a tensor graph from its outputs to its inputs and hands on, at each op,
the derivative g of the result (its adjoint) to the sources a, b, c; y is the result.
Ops without a row end a path: comparisons, integers, bits, rounding, packed weights
and DETACH. Rules are made of ordinary ops, so derivatives have derivatives, and
each rule is compared with finite differences, twice.

| op | derivative by each source |
|---|---|
`)
	for op := ir.OpConst; int(op) < ir.NumOps; op++ {
		if r := rules[op]; r.by != nil {
			fmt.Fprintf(&b, "| `%s` | %s |\n", op, strings.ReplaceAll(r.formula, "*", "\\*"))
		}
	}
	return b.String()
}

// Every rule says its formula and has a function for some source.
func TestTable(t *testing.T) {
	for op, r := range rules {
		if (r.formula == "") != (len(r.by) == 0) {
			t.Errorf("%s: formula %q with %d functions", ir.Op(op), r.formula, len(r.by))
		}
		if info := ir.Op(op).Info(); info.Arity >= 0 && len(r.by) > info.Arity {
			t.Errorf("%s: %d functions for %d sources", ir.Op(op), len(r.by), info.Arity)
		}
	}
}

// HasRule lets the sampled tests see that they reach every rule.
func HasRule(op ir.Op) bool { return rules[op].by != nil }
