package safetensors

import (
	"errors"

	"tgc/internal/mapfile"
)

// Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	// Data is the elements, little endian, the last axis fastest. Of an open
	// file it aliases the mapping: read-only, of no particular alignment, and
	// gone when the file is closed.
	Data []byte
}

// File is an open file. It is safe for concurrent reading.
type File struct {
	name     string
	tensors  []Tensor // in the order of their data
	index    map[string]int
	metadata map[string]string
	mapping  mapfile.Mapping
}

// Open maps a file and checks its header. The file must not be shortened while
// it is open. Errors are of type *Error.
func Open(path string) (*File, error) {
	m, err := mapfile.Open(path)
	if err != nil {
		return nil, &Error{File: path, Offset: -1, Err: err}
	}
	var f *File
	err = mapfile.Guard(func() (err error) { f, err = OpenBytes(path, m.Bytes); return err })
	if err != nil {
		return nil, errors.Join(err, m.Unmap())
	}
	f.mapping = m
	return f, nil
}

// OpenBytes reads a file that is already in memory. The File aliases data, which
// must not change while it is in use. name stands for the path in errors.
func OpenBytes(name string, data []byte) (*File, error) {
	f := &File{name: name, index: map[string]int{}, metadata: map[string]string{}}
	if err := f.parse(data); err != nil {
		return nil, err
	}
	return f, nil
}

// Close unmaps the file. Tensor data must not be used after it.
func (f *File) Close() error {
	m := f.mapping
	f.mapping = mapfile.Mapping{}
	if err := m.Unmap(); err != nil {
		return &Error{File: f.name, Offset: -1, Err: err}
	}
	return nil
}

// Metadata returns the texts of "__metadata__"; never nil. It must not be changed.
func (f *File) Metadata() map[string]string { return f.metadata }

// Tensors returns all tensors in the order of their data. The slice must not be
// changed.
func (f *File) Tensors() []Tensor { return f.tensors }

// Tensor returns the tensor of a name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return nil, false
	}
	return &f.tensors[i], true
}
