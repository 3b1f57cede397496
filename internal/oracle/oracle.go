// Package oracle finds the right answers that tests compare with.
//
// There are two sets of the same form. The small one, in testdata, is part of the
// repository: testdata/README.md says what is in it and how it was made. The larger
// one lies beside the checkout (../shared/oracle) or where TGC_ORACLE points, and
// may be absent. Tests read both; nothing shipped to users reads either.
package oracle

import (
	"os"
	"path/filepath"
	"testing"
)

// Dirs returns the folders of a kind of answers ("quant", "models", ...): that of
// the repository and, where it is present, that of the larger set.
func Dirs(t testing.TB, kind string) []string {
	t.Helper()
	var list []string
	for _, root := range roots() {
		dir := filepath.Join(root, kind)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			list = append(list, dir)
		}
	}
	if len(list) == 0 {
		t.Skipf("there are no answers of the kind %q (TGC_ORACLE names the folder of the larger set)", kind)
	}
	return list
}

// Files returns the files of a kind of answers whose names match a pattern, in
// both sets.
func Files(t testing.TB, kind, pattern string) []string {
	t.Helper()
	var list []string
	for _, dir := range Dirs(t, kind) {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s in %s (%v)", pattern, dir, err)
		}
		list = append(list, files...)
	}
	return list
}

// Path returns the path of one file of a kind of answers, in the set that has it,
// or skips the test when that is the larger one and it is absent.
func Path(t testing.TB, kind, file string) string {
	t.Helper()
	for _, dir := range Dirs(t, kind) {
		path := filepath.Join(dir, file)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("%s/%s is in the larger set of answers, which is absent (TGC_ORACLE names its folder)", kind, file)
	return ""
}

// roots lists the folders of the sets: testdata of this package, and TGC_ORACLE or
// else shared/oracle beside the module's root.
func roots() []string {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
	larger := os.Getenv("TGC_ORACLE")
	if larger == "" {
		larger = filepath.Join(dir, "..", "shared", "oracle")
	}
	return []string{filepath.Join(dir, "internal", "oracle", "testdata"), larger}
}
