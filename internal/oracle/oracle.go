// Package oracle finds the folder of right answers that tests compare with.
//
// The folder is not part of the project: it stands beside the checkout
// (../shared/oracle) or where TGC_ORACLE points. Tests that need it skip
// cleanly when it is absent; nothing shipped to users reads it.
package oracle

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the path of one oracle folder ("quant", "models", ...), or skips
// the test when the folder is not there.
func Dir(t testing.TB, name string) string {
	t.Helper()
	for _, root := range roots() {
		dir := filepath.Join(root, name)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	t.Skipf("oracle folder %q is absent (set TGC_ORACLE to its parent)", name)
	return ""
}

// roots lists candidate oracle folders: the override, then shared/oracle
// beside the module root.
func roots() []string {
	var list []string
	if root := os.Getenv("TGC_ORACLE"); root != "" {
		list = append(list, root)
	}
	dir, err := os.Getwd()
	for err == nil {
		if _, statErr := os.Stat(filepath.Join(dir, "go.mod")); statErr == nil {
			list = append(list, filepath.Join(dir, "..", "shared", "oracle"))
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return list
}
