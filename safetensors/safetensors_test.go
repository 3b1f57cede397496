package safetensors

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "tgc/internal/steadyseed"
)

// dtypes lists all types.
var dtypes = []DType{F64, F32, F16, BF16, F8E5M2, F8E4M3, I64, I32, I16, I8, U64, U32, U16, U8, BOOL}

// randomTensors draws tensors of all types, scalars and empty ones included.
func randomTensors(t *rapid.T) []Tensor {
	var list []Tensor
	for _, name := range rapid.SliceOfNDistinct(rapid.String(), 0, 6, rapid.ID[string]).Draw(t, "names") {
		if name == metadataKey {
			continue
		}
		x := Tensor{Name: name, DType: rapid.SampledFrom(dtypes).Draw(t, "dtype"), Shape: rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "shape")}
		size, err := byteSize(x.DType, x.Shape)
		if err != nil {
			t.Fatal(err)
		}
		x.Data = rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
		list = append(list, x)
	}
	return list
}

// TestRoundTrip: what is written is read, aligned to its elements, and the bytes
// do not depend on the order; a file cut short does not open.
func TestRoundTrip(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		tensors := randomTensors(t)
		metadata := rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "metadata")
		var file, again bytes.Buffer
		if err := Write(ctx, &file, tensors, metadata); err != nil {
			t.Fatal(err)
		}
		f, err := OpenBytes("x", file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(metadata, f.Metadata()); diff != "" {
			t.Fatal(diff)
		}
		if len(f.Tensors()) != len(tensors) {
			t.Fatalf("%d tensors, want %d", len(f.Tensors()), len(tensors))
		}
		for _, want := range tensors {
			got, ok := f.Tensor(want.Name)
			if !ok || got.DType != want.DType || !cmp.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Data, want.Data) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
		at := 0
		for _, x := range f.Tensors() {
			if at%x.DType.Size() != 0 {
				t.Fatalf("%q begins at %d, want a multiple of %d", x.Name, at, x.DType.Size())
			}
			at += len(x.Data)
		}
		if err := Write(ctx, &again, f.Tensors(), f.Metadata()); err != nil || !bytes.Equal(again.Bytes(), file.Bytes()) {
			t.Fatalf("the copy differs: %v", err)
		}
		cut := rapid.IntRange(0, file.Len()-1).Draw(t, "cut")
		if _, err := OpenBytes("cut", file.Bytes()[:cut]); err == nil {
			t.Fatalf("a file cut at %d of %d opened", cut, file.Len())
		}
	})
}

// raw makes a file of a header and data.
func raw(header, data string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header+data...)
}

// TestForeign reads what other writers make: keys in any order, spaces, no
// padding, an entry per line, unusual escapes.
func TestForeign(t *testing.T) {
	f, err := OpenBytes("x", raw(`{ "b" : {"data_offsets":[1,3],"shape":[1],"dtype":"F16"},
		"\u0061": {"dtype":"BOOL","shape":[],"data_offsets":[0,1]},"__metadata__":{"format":"pt"}}  `, "\x01\x02\x03"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Tensor{{Name: "a", DType: BOOL, Shape: []int{}, Data: []byte{1}}, {Name: "b", DType: F16, Shape: []int{1}, Data: []byte{2, 3}}}
	if diff := cmp.Diff(want, f.Tensors()); diff != "" {
		t.Error(diff)
	}
	if f.Metadata()["format"] != "pt" {
		t.Errorf("metadata %v", f.Metadata())
	}
}

// TestRefuses: every fault is named with its place.
func TestRefuses(t *testing.T) {
	const a = `"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}`
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":            {nil, "at 0x0: file is 0 bytes, want at least 8"},
		"long header":      {[]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "want at most 2"},
		"not UTF-8":        {raw("{\"\xff\":1}", ""), "is not UTF-8"},
		"no JSON":          {raw("hello", ""), "header at 0x"},
		"array":            {raw("[]", ""), `got '[', want '{'`},
		"open":             {raw("{"+a, "xy"), "header at 0x"},
		"trailing":         {raw("{"+a+"} {}", "xy"), "more follows"},
		"twice":            {raw("{"+a+","+a+"}", "xy"), `key "a" stands twice`},
		"unknown dtype":    {raw(`{"a":{"dtype":"Q4","shape":[2],"data_offsets":[0,2]}}`, "xy"), `tensor "a" at 0x3c: dtype is "Q4"`},
		"unknown key":      {raw(`{"a":{"strides":[1]}}`, ""), `key "strides"`},
		"no dtype":         {raw(`{"a":{"shape":[2],"data_offsets":[0,2]}}`, "xy"), "dtype is missing"},
		"no shape":         {raw(`{"a":{"dtype":"U8","data_offsets":[0,2]}}`, "xy"), "shape is missing"},
		"one offset":       {raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0]}}`, "xy"), "want two numbers"},
		"three offsets":    {raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1,2]}}`, "xy"), "more than 2"},
		"wrong size":       {raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,2]}}`, "xy"), "want 4 bytes for F32 [1]"},
		"backwards":        {raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}}`, "xy"), "want 2 bytes"},
		"overflow":         {raw(`{"a":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, ""), "overflows"},
		"negative":         {raw(`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}}`, ""), "got -1, want an integer"},
		"float":            {raw(`{"a":{"dtype":"U8","shape":[1e0],"data_offsets":[0,1]}}`, "x"), "got 1e0"},
		"hole":             {raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, "xy"), "begins at 1, want 0"},
		"overlap":          {raw(`{`+a+`,"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, "xyz"), `tensor "b"`},
		"outside":          {raw("{"+a+"}", "x"), "ends at 2, want at most 1"},
		"left over":        {raw("{"+a+"}", "xyz"), "1 bytes belong to no tensor"},
		"metadata numbers": {raw(`{"__metadata__":{"a":1}}`, ""), "got 1, want a string"},
	} {
		_, err := OpenBytes("m.safetensors", c.data)
		var located *Error
		if !errors.As(err, &located) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "safetensors: m.safetensors: ") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	ok := Tensor{Name: "a", DType: U8, Shape: []int{1}, Data: []byte{1}}
	for want, list := range map[string][]Tensor{
		"stands twice":         {ok, ok},
		"does not exist":       {{Name: "a", DType: "Q4", Shape: []int{1}}},
		"data is 1 bytes":      {{Name: "a", DType: F32, Shape: []int{1}, Data: []byte{1}}},
		"extent 0 is -1":       {{Name: "a", DType: F32, Shape: []int{-1}}},
		"name is not UTF-8":    {{Name: "\xff", DType: F32, Shape: []int{0}}},
		"that of the metadata": {{Name: metadataKey, DType: F32, Shape: []int{0}}},
	} {
		if err := Write(context.Background(), &bytes.Buffer{}, list, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestFiles: a file appears whole or not at all.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	x := Tensor{Name: "x", DType: F32, Shape: []int{2, 1}, Data: []byte("abcdefgh")}
	if err := WriteFile(context.Background(), path, []Tensor{x}, map[string]string{"step": "7"}); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := WriteFile(canceled, path, []Tensor{x}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Tensor{x}, f.Tensors()); diff != "" || f.Metadata()["step"] != "7" {
		t.Errorf("%s %v", diff, f.Metadata())
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v left behind (%v)", left, err)
	}
	if _, err := Open(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if err := WriteFile(context.Background(), filepath.Join(dir, "no", "m"), nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
}

// FuzzOpen opens arbitrary bytes: an error without control bytes, or a File
// that, written again, opens to the same.
func FuzzOpen(f *testing.F) {
	f.Add(raw(`{"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}`, "abcdefgh"))
	f.Add(raw(`{"s":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]},"e":{"dtype":"I64","shape":[0,3],"data_offsets":[1,1]}}`, "x"))
	f.Add(raw("{}", ""))
	f.Add([]byte("\x02\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := OpenBytes("fuzz", data)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
				t.Fatalf("control bytes in %q", err)
			}
			return
		}
		var b bytes.Buffer
		if err := Write(context.Background(), &b, file.Tensors(), file.Metadata()); err != nil {
			t.Fatal(err)
		}
		again, err := OpenBytes("again", b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(file.Metadata(), again.Metadata()); diff != "" || len(again.Tensors()) != len(file.Tensors()) {
			t.Fatalf("%d tensors, want %d %s", len(again.Tensors()), len(file.Tensors()), diff)
		}
		for _, want := range file.Tensors() {
			if got, ok := again.Tensor(want.Name); !ok || !cmp.Equal(*got, want) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
	})
}
