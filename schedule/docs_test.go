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
	"tgc/schedule/state"
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
		"rules": ruleRows(), "order": orderRows(), "costs": costRows(t), "explain": explainExample(t),
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

func ruleRows() string {
	var b strings.Builder
	b.WriteString("| rule | key | class | what it does | GPU | CPU |\n|---|---|---|---|---|---|\n")
	on := map[bool]string{true: "on", false: "off"}
	gpu, cpu := schedule.DefaultOptions(), schedule.CPUOptions()
	for _, row := range schedule.RuleInfos() {
		fmt.Fprintf(&b, "| `%s` | %s | %c | %s | %s | %s |\n", row.Name, row.Key, row.Class, row.Doc, on[switchedOn(gpu, row.Rule)], on[switchedOn(cpu, row.Rule)])
	}
	return b.String()
}

// switchedOn reports a rule that the options have, with limits that let it fire.
func switchedOn(opt schedule.Options, r schedule.Rule) bool {
	switch r {
	case state.GridSplit:
		return opt.Rules.Has(r) && opt.Profile.GridSplits > 1
	case state.SumPieces:
		return opt.Rules.Has(r) && opt.Profile.SumPiece > 0
	}
	return opt.Rules.Has(r)
}

func orderRows() string {
	var b strings.Builder
	b.WriteString("| before | after | because |\n|---|---|---|\n")
	for _, p := range schedule.Orders() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.Before, p.After, p.Because)
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
	b.WriteString("| constant | GPU | CPU | meaning |\n|---|---|---|---|\n")
	gpu, cpu := reflect.ValueOf(schedule.DefaultOptions().Profile), reflect.ValueOf(schedule.CPUOptions().Profile)
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
	opt := schedule.DefaultOptions()
	opt.Explain = true
	a := ir.NewArena()
	s, err := schedule.Run(t.Context(), a, a.Import(sink), opt)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("```\n")
	for _, r := range s.Records {
		b.WriteString(r.String() + "\n")
	}
	b.WriteString("```\n")
	return b.String()
}
