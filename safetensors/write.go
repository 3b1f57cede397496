package safetensors

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"tgc/internal/atomicfile"
)

// WriteFile writes a file, which appears under its name only when it is
// complete; an existing one is replaced. See Write for what it holds.
func WriteFile(ctx context.Context, path string, tensors []Tensor, metadata map[string]string) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return &Error{File: path, Offset: -1, Err: err}
	}
	defer f.Abort()
	if err := write(ctx, f, path, tensors, metadata); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return &Error{File: path, Offset: -1, Err: err}
	}
	return nil
}

// Write writes tensors and metadata, which may be nil. Tensors lie in the order
// of falling element size, then of names, so that every one is aligned to its
// elements and the bytes do not depend on the order given. The slice stays as it
// is. Errors: unknown dtypes, data of another size than the shape says, two
// tensors of one name, names that are not UTF-8.
func Write(ctx context.Context, to io.Writer, tensors []Tensor, metadata map[string]string) error {
	return write(ctx, to, "output", tensors, metadata)
}

// chunkBytes is written between two looks at the context.
const chunkBytes = 1 << 20

func write(ctx context.Context, to io.Writer, name string, tensors []Tensor, metadata map[string]string) error {
	sorted := slices.Clone(tensors)
	slices.SortStableFunc(sorted, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.DType.Size(), a.DType.Size()), cmp.Compare(a.Name, b.Name))
	})
	head, err := header(sorted, metadata)
	if err != nil {
		return &Error{File: name, Offset: -1, Err: err}
	}
	if _, err := to.Write(head); err != nil {
		return &Error{File: name, Offset: -1, Err: err}
	}
	for _, t := range sorted {
		for data := t.Data; len(data) > 0; {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			n := min(len(data), chunkBytes)
			if _, err := to.Write(data[:n]); err != nil {
				return &Error{File: name, Subject: "tensor " + quote(t.Name), Offset: -1, Err: err}
			}
			data = data[n:]
		}
	}
	return nil
}

// header is the file up to the data, padded with spaces to 8 bytes.
func header(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	type jsonTensor struct {
		DType   DType  `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	object := make(map[string]any, len(tensors)+1)
	if len(metadata) > 0 {
		for key, text := range metadata {
			if !utf8.ValidString(key) || !utf8.ValidString(text) {
				return nil, fmt.Errorf("metadata %s is not UTF-8", quote(key))
			}
		}
		object[metadataKey] = metadata
	}
	at := 0
	for _, t := range tensors {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
		if _, twice := object[t.Name]; twice {
			return nil, fmt.Errorf("tensor %s: the name stands twice", quote(t.Name))
		}
		shape := append([]int{}, t.Shape...) // never null
		object[t.Name] = jsonTensor{t.DType, shape, [2]int{at, at + len(t.Data)}}
		at += len(t.Data)
	}
	text, err := json.Marshal(object) // sorts the keys
	if err != nil {
		return nil, err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("header is %d bytes, want at most %d", len(text), maxHeader)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}

// check says whether a tensor can be written.
func (t *Tensor) check() error {
	size, err := byteSize(t.DType, t.Shape)
	switch {
	case err != nil:
		return err
	case !utf8.ValidString(t.Name):
		return errors.New("the name is not UTF-8")
	case t.Name == metadataKey:
		return errors.New("the name is that of the metadata")
	case len(t.Shape) > maxRank:
		return fmt.Errorf("rank is %d, want at most %d", len(t.Shape), maxRank)
	case len(t.Data) != size:
		return fmt.Errorf("data is %d bytes, want %d for %s %v", len(t.Data), size, t.DType, t.Shape)
	}
	return nil
}
