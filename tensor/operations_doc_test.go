package tensor_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/operations.md lists the operations by file, each with the first sentence of its
// comment.
func TestOperationsDocument(t *testing.T) {
	const name = "../docs/operations.md"
	want := operationsDocument(t)
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s differs (%v): go test ./tensor -run OperationsDocument -update", name, err)
	}
}

func operationsDocument(t *testing.T) string {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(set, files, "tgc/tensor")
	if err != nil {
		t.Fatal(err)
	}
	var functions []*doc.Func
	functions = append(functions, pkg.Funcs...)
	for _, typ := range pkg.Types {
		if typ.Name == "Tensor" || typ.Name == "Graph" || typ.Name == "Random" || typ.Name == "Complex" {
			functions = append(append(functions, typ.Funcs...), typ.Methods...)
		}
	}
	sections := make(map[string]*strings.Builder)
	count := 0
	for _, f := range functions {
		file := filepath.Base(set.Position(f.Decl.Pos()).Filename)
		if sections[file] == nil {
			sections[file] = new(strings.Builder)
		}
		call := f.Name
		if f.Recv != "" {
			call = strings.ToLower(strings.TrimPrefix(f.Recv, "*"))[:1] + "." + f.Name
		}
		cells := strings.NewReplacer("|", `\|`, "*", `\*`).Replace(pkg.Synopsis(f.Doc))
		fmt.Fprintf(sections[file], "| `%s` | %s |\n", call, cells)
		count++
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# The operations of package tensor\n\nGenerated from comments by `go test ./tensor -run OperationsDocument -update`: %d functions.\n"+
		"`g` is a Graph, `t` a Tensor, `r` what `Graph.Random` makes, `c` complex numbers; `go doc tgc/tensor.NAME` says all.\n", count)
	for _, path := range paths {
		if rows := sections[path]; rows != nil {
			fmt.Fprintf(&out, "\n## %s\n\n| call | what it is |\n|---|---|\n%s", strings.TrimSuffix(path, ".go"), rows)
		}
	}
	return out.String()
}
