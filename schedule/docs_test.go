package schedule_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/ir"
	"tgc/schedule"
	"tgc/target"
)

// docs/fusion.md holds text by hand and blocks between markers that are
// generated from the tables and from a run.
func TestFusionDocument(t *testing.T) {
	path := filepath.Join("..", "docs", "fusion.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(data)
	for name, text := range map[string]string{
		"rules": ruleRows(t), "order": orderRows(), "costs": costRows(t), "explain": explainExample(t),
	} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end "+name+" -->"
		i, j := strings.Index(got, begin), strings.Index(got, end)
		if i < 0 || j < i {
			t.Fatalf("%s: no block %q", path, name)
		}
		got = got[:i+len(begin)] + text + got[j:]
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(data), got); diff != "" {
		t.Errorf("%s is out of date (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

// docTargets are the columns of the tables: options that the engine uses.
var docTargets = []string{"ptx:sm_90", "llvm:x86-64-v4"}

func docOptions(t *testing.T, name string) schedule.Options {
	t.Helper()
	desc, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return schedule.OptionsFor(desc)
}

func ruleRows(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "| rule | key | class | what it does | `%s` | `%s` |\n|---|---|---|---|---|---|\n", docTargets[0], docTargets[1])
	on := map[bool]string{true: "on", false: "off"}
	gpu, cpu := docOptions(t, docTargets[0]), docOptions(t, docTargets[1])
	for _, row := range schedule.RuleInfos() {
		fmt.Fprintf(&b, "| `%s` | %s | %c | %s | %s | %s |\n", row.Name, row.Key, row.Class, row.Doc, on[switchedOn(gpu, row.Rule)], on[switchedOn(cpu, row.Rule)])
	}
	return b.String()
}

// switchedOn reports a rule that the options have, with limits that let it fire.
func switchedOn(opt schedule.Options, r schedule.Rule) bool {
	switch r {
	case "split-grid":
		return !opt.Off.Has(r) && opt.Profile.GridSplits > 1
	case "split-sums":
		return !opt.Off.Has(r) && opt.Profile.SumPiece > 0
	}
	return !opt.Off.Has(r)
}

func orderRows() string {
	var b strings.Builder
	b.WriteString("| before | after | because |\n|---|---|---|\n")
	for _, p := range schedule.Orders() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", p.Before, p.After, p.Because)
	}
	return b.String()
}

// costRows takes the meaning of every constant from its comment in options.go.
func costRows(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("state", "options.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	docs := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Profile" {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			for _, name := range field.Names {
				docs[name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
		return false
	})
	var b strings.Builder
	fmt.Fprintf(&b, "| constant | `%s` | `%s` | meaning |\n|---|---|---|---|\n", docTargets[0], docTargets[1])
	gpu, cpu := reflect.ValueOf(docOptions(t, docTargets[0]).Profile), reflect.ValueOf(docOptions(t, docTargets[1]).Profile)
	for i := range gpu.NumField() {
		name := gpu.Type().Field(i).Name
		fmt.Fprintf(&b, "| %s | %v | %v | %s |\n", name, gpu.Field(i), cpu.Field(i), docs[name])
	}
	return b.String()
}

// explainExample prints the decisions on a decode layer of LLaMA-1B.
func explainExample(t *testing.T) string {
	t.Helper()
	m := llama1B(1)
	m.embed, m.output = false, false
	sink, err := m.build().Sink()
	if err != nil {
		t.Fatal(err)
	}
	opt := docOptions(t, docTargets[0])
	opt.Explain = true
	a := ir.NewArena()
	s, err := schedule.Run(t.Context(), a, a.Import(sink), opt)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	kernels := 0
	for _, l := range s.Launches {
		kernels += len(l.Kernels)
	}
	fmt.Fprintf(&b, "%d kernels in %d launches:\n\n```\n", kernels, len(s.Launches))
	for _, r := range s.Records {
		b.WriteString(r.String() + "\n")
	}
	b.WriteString("```\n")
	return b.String()
}
