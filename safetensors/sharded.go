package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files of a model in a folder: one, or several with an index of them.
const (
	singleFile  = "model.safetensors"
	indexSuffix = ".safetensors.index.json"
	indexFile   = "model" + indexSuffix
)

// largestIndex bounds the size of an index, in bytes.
const largestIndex = 64 << 20

// Sharded is the open files of a model as one. It is safe for concurrent reading.
type Sharded struct {
	files   []*File
	tensors map[string]*Tensor
}

// OpenSharded opens what a path names: a file, the index of several files, or a folder that
// holds an index (model.safetensors.index.json) or a file (model.safetensors). All files are
// in the folder of the index, and no name is in two of them. Errors are of type *Error.
func OpenSharded(path string) (*Sharded, error) {
	paths, err := shards(path)
	if err != nil {
		return nil, err
	}
	s := &Sharded{tensors: make(map[string]*Tensor)}
	for _, path := range paths {
		if err := s.add(path); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *Sharded) add(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	for i := range f.tensors {
		t := &f.tensors[i]
		if s.tensors[t.Name] != nil {
			return &Error{File: path, Subject: "tensor " + quote(t.Name), Offset: -1, Err: errors.New("it is in another file of the model, too")}
		}
		s.tensors[t.Name] = t
	}
	return nil
}

// shards lists the files that a path stands for.
func shards(path string) ([]string, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		index := filepath.Join(path, indexFile)
		if _, err := os.Stat(index); errors.Is(err, fs.ErrNotExist) {
			return []string{filepath.Join(path, singleFile)}, nil
		}
		path = index
	}
	if !strings.HasSuffix(path, indexSuffix) {
		return []string{path}, nil
	}
	names, err := readIndex(path)
	if err != nil {
		return nil, &Error{File: path, Offset: -1, Err: err}
	}
	for i, name := range names {
		names[i] = filepath.Join(filepath.Dir(path), name)
	}
	return names, nil
}

// readIndex lists the names of the files of an index.
func readIndex(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > largestIndex {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", info.Size(), largestIndex)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	var names []string
	for _, name := range list.Map {
		if name != filepath.Base(name) || !strings.HasSuffix(name, ".safetensors") {
			return nil, fmt.Errorf("file %s, want one of the same folder with weights", quote(name))
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, errors.New("it names no files")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Names lists the tensors, sorted.
func (s *Sharded) Names() []string { return slices.Sorted(maps.Keys(s.tensors)) }

// Tensor returns the tensor of a name.
func (s *Sharded) Tensor(name string) (*Tensor, bool) {
	t, ok := s.tensors[name]
	return t, ok
}

// Metadata joins the texts of all files; of equal keys the last file's holds.
func (s *Sharded) Metadata() map[string]string {
	all := make(map[string]string)
	for _, f := range s.files {
		maps.Copy(all, f.metadata)
	}
	return all
}

// Close unmaps the files. Tensor data must not be used after it.
func (s *Sharded) Close() error {
	var err error
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
