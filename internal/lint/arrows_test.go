package lint

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// upwards is how many arrows between files of a package point up, however the files are
// put in order: a file that names something of another one that, over some way, names
// something of the first. Files that are read in one direction only are read once.
// What is left is recursion through the nodes of an expression, and tables of functions.
var upwards = map[string]int{
	"ir/analyse":        0,
	"ir/program":        0,
	"ir/program/dep":    0,
	"ir/program/opt":    1, // hoisting asks for registers of loads that it moved
	"kernel":            0,
	"kernel/plan":       2, // the table of Opts has the functions that read them
	"kernel/shape":      0,
	"kernel/lower":      49, // an expression, sum or access lowers what is inside it: its parts call each other
	"schedule":          0,
	"schedule/expr":     1, // a choice is simplified, and its arms
	"schedule/state":    1, // the price of a scatter, and of its terms
	"schedule/rangeify": 1, // a reading of a tensor is built of readings
	"schedule/algebra":  0,
	"schedule/place":    0,
	"schedule/emit":     0,
	"heuristic":         52, // a planner and an analysis with methods in most files
	"render/gpu":        14, // a Selector with methods in all files
}

func TestFilesPointOneWay(t *testing.T) {
	root := moduleRoot(t)
	packages := slices.Sorted(maps.Keys(upwards))
	exports := exportData(t, root, packages)
	for _, pkg := range packages {
		from := readArrows(t, filepath.Join(root, pkg), exports)
		up := from.up()
		switch want := upwards[pkg]; {
		case len(up) > want:
			t.Errorf("%s: %d arrows point up, want %d; of these one is too many (move what both files need to a third):\n  %s",
				pkg, len(up), want, strings.Join(up, "\n  "))
		case len(up) < want:
			t.Errorf("%s: %d arrows point up, the table of this test says %d: lower it", pkg, len(up), want)
		}
		if len(from) == 0 {
			t.Errorf("%s has no files", pkg)
		}
	}
}

// arrows are the files of a package, and of each the others of which it names something.
type arrows map[string][]string

// exportData is the compiled form of the packages and all that they import, by path.
func exportData(t *testing.T, root string, packages []string) map[string]string {
	arguments := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, pkg := range packages {
		arguments = append(arguments, "./"+pkg)
	}
	list := exec.Command("go", arguments...)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return files
}

// readArrows type-checks the package in a folder.
func readArrows(t *testing.T, folder string, exports map[string]string) arrows {
	set, from := token.NewFileSet(), make(arrows)
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files, from[filepath.Base(path)] = append(files, file), nil
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(set, "gc", open)}
	pkg, err := config.Check(folder, set, files, info)
	if err != nil {
		t.Fatal(err)
	}
	for id, object := range info.Uses {
		if object.Pkg() != pkg || object.Parent() != pkg.Scope() && !isMethod(object) {
			continue
		}
		a, b := filepath.Base(set.Position(id.Pos()).Filename), filepath.Base(set.Position(object.Pos()).Filename)
		if a != b && !slices.Contains(from[a], b) {
			from[a] = append(from[a], b)
		}
	}
	return from
}

func isMethod(object types.Object) bool {
	f, ok := object.(*types.Func)
	return ok && f.Signature().Recv() != nil
}

// up are the arrows that point up in an order of the files that leaves few of them.
func (from arrows) up() (list []string) {
	place := make(map[string]int)
	for i, file := range from.order() {
		place[file] = i
	}
	for a, to := range from {
		for _, b := range to {
			if place[b] < place[a] {
				list = append(list, a+" -> "+b)
			}
		}
	}
	slices.Sort(list)
	return list
}

// order is that of Eades, Lin and Smyth (1993): files that name no other go to the bottom,
// those that no other names to the top, and where none is either, the one that names most
// and is named least goes to the top.
func (from arrows) order() []string {
	left := slices.Sorted(maps.Keys(from))
	var top, bottom []string
	take := func(i int) string {
		file := left[i]
		left = slices.Delete(left, i, i+1)
		return file
	}
	names := func(a string) (n int) {
		for _, b := range left {
			if slices.Contains(from[a], b) {
				n++
			}
		}
		return n
	}
	named := func(b string) (n int) {
		for _, a := range left {
			if slices.Contains(from[a], b) {
				n++
			}
		}
		return n
	}
	for len(left) > 0 {
		if i := slices.IndexFunc(left, func(f string) bool { return names(f) == 0 }); i >= 0 {
			bottom = append(bottom, take(i))
			continue
		}
		best := slices.IndexFunc(left, func(f string) bool { return named(f) == 0 })
		if best < 0 {
			best = mostAbove(left, func(f string) int { return names(f) - named(f) })
		}
		top = append(top, take(best))
	}
	slices.Reverse(bottom)
	return append(top, bottom...)
}

// mostAbove is where the first of a list with the largest number is.
func mostAbove(list []string, number func(string) int) (best int) {
	for i, f := range list {
		if number(f) > number(list[best]) {
			best = i
		}
	}
	return best
}
