package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// At least 97 of 100 exported identifiers have a comment of their own: functions, methods of
// exported types, types, and constants and variables or their group.
func TestExportedIsDocumented(t *testing.T) {
	const want = 0.97
	exported, bare := 0, []string{}
	for _, folder := range packageFolders(t) {
		files := token.NewFileSet()
		for _, file := range sources(t, files, folder, false) {
			for _, decl := range file.Decls {
				for _, id := range exportedOf(decl) {
					if exported++; !id.documented {
						bare = append(bare, files.Position(id.at).String()+" "+id.name)
					}
				}
			}
		}
	}
	share := 1 - float64(len(bare))/float64(exported)
	t.Logf("%.1f %% of %d exported identifiers have comments", 100*share, exported)
	if share < want {
		t.Errorf("%.1f %% have comments, want %.0f %%; those without:\n%s", 100*share, 100*want, strings.Join(bare, "\n"))
	}
}

// Each package that docs/library.md lists for users has an example that runs.
func TestPackagesForUsersHaveExamples(t *testing.T) {
	text, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## The packages for users")
	table, _, _ = strings.Cut(table, "\n## ")
	links := regexp.MustCompile(`\]\(\.\./([a-z/]+)\)`).FindAllStringSubmatch(table, -1)
	if len(links) < 10 {
		t.Fatalf("docs/library.md lists %d packages, want at least 10", len(links))
	}
	for _, link := range links {
		found := false
		for _, file := range sources(t, token.NewFileSet(), filepath.Join("../..", link[1]), true) {
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				found = found || ok && strings.HasPrefix(f.Name.Name, "Example") && hasOutput(file, f)
			}
		}
		if !found {
			t.Errorf("package %s has no example with output", link[1])
		}
	}
}

// hasOutput reports an example that go test runs.
func hasOutput(file *ast.File, f *ast.FuncDecl) bool {
	for _, c := range file.Comments {
		text := c.Text()
		if c.Pos() > f.Body.Pos() && c.End() < f.Body.End() && (strings.HasPrefix(text, "Output:") || strings.HasPrefix(text, "Unordered output:")) {
			return true
		}
	}
	return false
}

type identifier struct {
	name       string
	at         token.Pos
	documented bool
}

// exportedOf are the exported identifiers of a declaration.
func exportedOf(decl ast.Decl) (list []identifier) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
			list = append(list, identifier{d.Name.Name, d.Pos(), d.Doc != nil})
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					list = append(list, identifier{s.Name.Name, s.Pos(), d.Doc != nil || s.Doc != nil || s.Comment != nil})
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						list = append(list, identifier{name.Name, name.Pos(), d.Doc != nil || s.Doc != nil || s.Comment != nil})
					}
				}
			}
		}
	}
	return list
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// packageFolders are the folders of all packages that others can import.
func packageFolders(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		switch name := entry.Name(); {
		case name == "internal", name == "testdata", name == "cmd", name == "examples", name == "build", name == "docs",
			strings.HasPrefix(name, ".") && len(name) > 2:
			return filepath.SkipDir
		}
		list = append(list, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// sources parses the files of a folder, those of tests or the others.
func sources(t *testing.T, files *token.FileSet, folder string, tests bool) (list []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") != tests {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, file)
	}
	return list
}
