package safetensors_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tgc/safetensors"
)

// folder writes files of one tensor each, named alike, and an index if there is text for it.
func folder(t *testing.T, index string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for file, name := range files {
		list := []safetensors.Tensor{{Name: name, DType: safetensors.U8, Shape: []int{1}, Data: []byte{name[0]}}}
		if err := safetensors.WriteFile(t.Context(), filepath.Join(dir, file), list, map[string]string{"of": name}); err != nil {
			t.Fatal(err)
		}
	}
	if index != "" {
		if err := os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(index), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpenSharded(t *testing.T) {
	one := folder(t, "", map[string]string{"model.safetensors": "a"})
	two := folder(t, `{"metadata": {"total_size": 2}, "weight_map": {"a": "x-1.safetensors", "b": "x-2.safetensors", "c": "x-2.safetensors"}}`,
		map[string]string{"x-1.safetensors": "a", "x-2.safetensors": "b", "x-3.safetensors": "d"})
	for path, want := range map[string][]string{
		one: {"a"}, filepath.Join(one, "model.safetensors"): {"a"},
		two: {"a", "b"}, filepath.Join(two, "model.safetensors.index.json"): {"a", "b"}, filepath.Join(two, "x-3.safetensors"): {"d"},
	} {
		s, err := safetensors.OpenSharded(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Names(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
		for _, name := range want {
			if tensor, ok := s.Tensor(name); !ok || tensor.Data[0] != name[0] {
				t.Errorf("%s: tensor %q is %v", path, name, tensor)
			}
		}
		if _, ok := s.Tensor("nothing"); ok || s.Metadata()["of"] != want[len(want)-1] {
			t.Errorf("%s: metadata %v", path, s.Metadata())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenShardedRefuses(t *testing.T) {
	for want, dir := range map[string]string{
		"no such file":                        folder(t, "", nil),
		"in another file of the model":        folder(t, `{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}`, map[string]string{"1.safetensors": "a", "2.safetensors": "a"}),
		`"../x.safetensors", want one of the`: folder(t, `{"weight_map": {"a": "../x.safetensors"}}`, nil),
		`"x.bin", want one of the`:            folder(t, `{"weight_map": {"a": "x.bin"}}`, nil),
		"it names no files":                   folder(t, `{}`, nil),
		"unexpected end of JSON":              folder(t, `{`, nil),
	} {
		_, err := safetensors.OpenSharded(dir)
		var e *safetensors.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
