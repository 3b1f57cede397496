package gguf

import (
	"errors"
	"fmt"
	"iter"

	"tgc/internal/lists"
	"tgc/internal/mapfile"
)

// File is an open GGUF model: metadata in file order and tensors. A model split
// over several files is one File. It is safe for concurrent reading.
type File struct {
	name      string
	version   int
	alignment int
	size      int64 // bytes, over all shards

	pairs       []pair
	index       map[string]int // key to place in pairs
	tensors     []Tensor
	tensorIndex map[string]int // name to place in tensors
	dataOffset  int64          // of the first shard

	mappings []mapfile.Mapping
}

// pair is one metadata entry; offset is that of its value type.
type pair struct {
	key    string
	value  Value
	offset int64
}

// Open maps a file, reads its metadata and checks the layout of its tensors. Of
// a split model any shard may be named; the others are found beside it.
// The file must not be shortened while it is open.
func Open(path string) (*File, error) {
	f, err := openOne(path)
	if err != nil {
		return nil, err
	}
	return f.withShards()
}

// openOne maps and parses one file.
func openOne(path string) (*File, error) {
	m, err := mapfile.Open(path)
	if err != nil {
		return nil, &Error{File: path, Offset: -1, Err: err}
	}
	f := &File{name: path, size: int64(len(m.Bytes)), mappings: []mapfile.Mapping{m}}
	if err := mapfile.Guard(func() error { return parse(f, m.Bytes) }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenBytes reads a file that is already in memory. The File aliases data, which
// must not change while it is in use. name is what errors call the file.
func OpenBytes(name string, data []byte) (*File, error) {
	f := &File{name: name, size: int64(len(data))}
	if err := parse(f, data); err != nil {
		return nil, err
	}
	count, _, err := f.shardNumbers()
	if err != nil {
		return nil, err
	}
	if count > 1 {
		return nil, f.keyError(splitCountKey, fmt.Errorf("the model is split into %d shards, want one file", count))
	}
	return f, nil
}

// Close unmaps the file. Values and tensor data must not be used after it.
func (f *File) Close() error {
	errs := lists.Map(f.mappings, mapfile.Mapping.Unmap)
	f.mappings = nil
	if err := errors.Join(errs...); err != nil {
		return &Error{File: f.name, Offset: -1, Err: err}
	}
	return nil
}

// Name returns the path, or the name given to OpenBytes.
func (f *File) Name() string { return f.name }

// Version returns the version of the format, 2 or 3.
func (f *File) Version() int { return f.version }

// Alignment returns what tensor offsets are multiples of, in bytes.
func (f *File) Alignment() int { return f.alignment }

// Size returns the length of the file, or of all shards together, in bytes.
func (f *File) Size() int64 { return f.size }

// Shards returns the number of files the model is split over; 1 for most.
func (f *File) Shards() int { return max(len(f.mappings), 1) }

// Len returns the number of metadata keys.
func (f *File) Len() int { return len(f.pairs) }

// Metadata iterates over keys and values in file order.
func (f *File) Metadata() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, p := range f.pairs {
			if !yield(p.key, p.value) {
				return
			}
		}
	}
}

// Lookup returns the value of a key.
func (f *File) Lookup(key string) (Value, bool) {
	i, ok := f.index[key]
	if !ok {
		return Value{}, false
	}
	return f.pairs[i].value, true
}

// Tensors returns all tensors in file order. The slice must not be changed.
func (f *File) Tensors() []Tensor { return f.tensors }

// Tensor returns the tensor of a name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	i, ok := f.tensorIndex[name]
	if !ok {
		return nil, false
	}
	return &f.tensors[i], true
}

// Errorf returns an error about a tensor of this model in the package's form,
// for callers whose own checks fail on it (a wrong shape, say).
func (f *File) Errorf(t *Tensor, format string, args ...any) error {
	return &Error{File: t.file, Subject: "tensor " + Quote(t.Name), Offset: t.Offset, Err: fmt.Errorf(format, args...)}
}

// KeyErrorf is Errorf for a metadata key, which need not exist.
func (f *File) KeyErrorf(key, format string, args ...any) error {
	return f.keyError(key, fmt.Errorf(format, args...))
}

func (f *File) keyError(key string, err error) error {
	offset := int64(-1)
	if i, ok := f.index[key]; ok {
		offset = f.pairs[i].offset
	}
	return &Error{File: f.name, Subject: "key " + Quote(key), Offset: offset, Err: err}
}
