package gguf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "tgc/internal/steadyseed"
)

// putAllTypes adds a key of every value type, arrays and nested arrays.
func putAllTypes(w *Writer) {
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"u8", uint8(200)}, {"i8", int8(-3)}, {"u16", uint16(60000)}, {"i16", int16(-300)},
		{"u32", uint32(4e9)}, {"i32", int32(-2e9)}, {"u64", uint64(1) << 63}, {"i64", int64(-1) << 63},
		{"f32", float32(0.1)}, {"f64", 0.1}, {"true", true}, {"false", false},
		{"string", "käse\x1b[31m"}, {"empty", ""},
		{"strings", []string{"a", "", "ccc"}}, {"none", []string(nil)},
		{"u8s", []uint8{1, 2}}, {"i32s", []int32{-1, 2, 3}}, {"f32s", []float32{1.5, -2}}, {"bools", []bool{true, false}},
		{"nested", [][]int16{{1}, nil, {2, 3}}}, {"nested strings", [][]string{{"x"}, {"y", "z"}}},
	} {
		w.Put(kv.key, kv.value)
	}
}

func mustOpen(t *testing.T, w *Writer) *File {
	t.Helper()
	data, err := w.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenBytes("test.gguf", data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGetters(t *testing.T) {
	w := NewWriter()
	putAllTypes(w)
	f := mustOpen(t, w)
	check := func(what string, got any, err error, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", what, err, diff)
		}
	}
	u, err := f.Uint("u64")
	check("u64", u, err, uint64(1)<<63)
	u, err = f.Uint("u8")
	check("u8", u, err, uint64(200))
	i, err := f.Int("i64")
	check("i64", i, err, int64(-1)<<63)
	i, err = f.Int("i8")
	check("i8", i, err, int64(-3))
	x, err := f.Float("f32")
	check("f32", x, err, float64(float32(0.1)))
	x, err = f.Float("i16")
	check("i16 as float", x, err, -300.0)
	b, err := f.Bool("true")
	check("true", b, err, true)
	s, err := f.String("string")
	check("string", s, err, "käse\x1b[31m")
	list, err := f.Strings("strings")
	check("strings", list, err, []string{"a", "", "ccc"})
	ints, err := f.Ints("i32s")
	check("i32s", ints, err, []int64{-1, 2, 3})
	floats, err := f.Floats("f32s")
	check("f32s", floats, err, []float64{1.5, -2})
	bools, err := f.Bools("bools")
	check("bools", bools, err, []bool{true, false})
	u, err = f.UintOr("absent", 7)
	check("absent", u, err, uint64(7))

	v, _ := f.Lookup("nested strings")
	rows, err := v.Values()
	check("rows", len(rows), err, 2)
	list, err = rows[1].Strings()
	check("row 1", list, err, []string{"y", "z"})
}

func TestGetterErrors(t *testing.T) {
	w := NewWriter()
	putAllTypes(w)
	f := mustOpen(t, w)
	if _, err := f.Uint("absent"); !errors.Is(err, ErrMissing) || err.Error() != `gguf: test.gguf: key "absent": missing` {
		t.Errorf("absent: %v", err)
	}
	for key, want := range map[string]string{
		"i8":      `value is int8 -3, want an integer of at least 0`,
		"string":  `value is string "käse\x1b[31m", want an integer of at least 0`,
		"strings": `value is an array of 3 string, want an integer of at least 0`,
	} {
		_, err := f.UintOr(key, 1)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "at 0x") {
			t.Errorf("%s: %v, want %s and an offset", key, err, want)
		}
	}
	if _, err := f.Strings("i32s"); err == nil {
		t.Error("an array of numbers was read as strings")
	}
	if _, err := f.Uints("i32s"); err == nil || !strings.Contains(err.Error(), "element 0") {
		t.Errorf("negative element: %v", err)
	}
}

func TestOptional(t *testing.T) {
	w := NewWriter()
	putAllTypes(w)
	w.Put("wide", []int64{1 << 40})
	o := mustOpen(t, w).Optional()
	if _, ok, err := o.String("absent"); ok || err != nil {
		t.Errorf("absent: %v, %v", ok, err)
	}
	if v, ok, err := o.Ints("u8s"); !ok || err != nil || !cmp.Equal(v, []int32{1, 2}) {
		t.Errorf("u8s: %v, %v, %v", v, ok, err)
	}
	if v, ok, err := o.Floats("f32s"); !ok || err != nil || !cmp.Equal(v, []float32{1.5, -2}) {
		t.Errorf("f32s: %v, %v, %v", v, ok, err)
	}
	for _, key := range []string{"wide", "strings", "u32"} {
		if _, ok, err := o.Ints(key); ok || err == nil {
			t.Errorf("%s was read as 32-bit integers", key)
		}
	}
}

func TestPreview(t *testing.T) {
	w := NewWriter()
	putAllTypes(w)
	w.Put("long", strings.Repeat("\x00", 1000))
	w.Put("many", make([]uint32, 100))
	f := mustOpen(t, w)
	for key, want := range map[string]string{
		"f32": "0.1", "i8": "-3", "true": "true", "empty": `""`, "none": "[0]string",
		"strings": `[3]string{"a", "", "ccc"}`,
		"nested":  "[3]array",
		"many":    "[100]uint32{0, 0, 0, 0, 0, 0, ...}",
		"long":    `"` + strings.Repeat(`\x00`, 16) + `"...`,
	} {
		v, ok := f.Lookup(key)
		if !ok || v.String() != want {
			t.Errorf("%s: %s, want %s", key, v, want)
		}
	}
}

// TestRoundTrip writes random tensors and metadata and reads them back.
func TestRoundTrip(t *testing.T) { rapid.Check(t, roundTrip) }

// FuzzRoundTrip is the same with the fuzzer's choices.
func FuzzRoundTrip(f *testing.F) { f.Fuzz(rapid.MakeFuzz(roundTrip)) }

// randomValue draws a metadata value of any type.
func randomValue(t *rapid.T) any {
	switch rapid.IntRange(0, 7).Draw(t, "value type") {
	case 0:
		return rapid.Uint8().Draw(t, "u8")
	case 1:
		return rapid.Int64().Draw(t, "i64")
	case 2:
		return rapid.Float32().Draw(t, "f32")
	case 3:
		return rapid.Float64().Draw(t, "f64")
	case 4:
		return rapid.Bool().Draw(t, "bool")
	case 5:
		return rapid.SliceOfN(rapid.Int16(), 0, 5).Draw(t, "i16s")
	case 6:
		return rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "strings")
	}
	return rapid.String().Draw(t, "string")
}

func roundTrip(t *rapid.T) {
	types := Types()
	w := NewWriter()
	if rapid.Bool().Draw(t, "aligned") {
		w.Put(alignmentKey, uint32(8)<<rapid.IntRange(0, 6).Draw(t, "alignment"))
	}
	putAllTypes(w)
	wrote := map[string]Value{}
	for i := range rapid.IntRange(0, 4).Draw(t, "values") {
		key := fmt.Sprintf("random.%d", i)
		x := randomValue(t)
		v, err := MakeValue(x)
		if err != nil {
			t.Fatal(err)
		}
		wrote[key] = v
		w.Put(key, x)
	}
	contents := map[string][]byte{}
	for i := range rapid.IntRange(0, 6).Draw(t, "tensors") {
		typ := rapid.SampledFrom(types).Draw(t, "type")
		dims := []int{typ.Info().Elements * rapid.IntRange(1, 3).Draw(t, "blocks")}
		for range rapid.IntRange(0, 3).Draw(t, "rank") {
			dims = append(dims, rapid.IntRange(1, 4).Draw(t, "dim"))
		}
		size, err := tensorBytes(typ, dims)
		if err != nil {
			t.Fatal(err)
		}
		name := string(rune('a' + i))
		contents[name] = rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
		w.Add(name, typ, dims, FromBytes(contents[name]))
	}
	data, err := w.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenBytes("test.gguf", data)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tensors()) != len(contents) {
		t.Fatalf("%d tensors, want %d", len(f.Tensors()), len(contents))
	}
	for i := range f.Tensors() {
		x := &f.Tensors()[i]
		if !bytes.Equal(x.Data(), contents[x.Name]) || x.Offset%int64(f.Alignment()) != 0 {
			t.Fatalf("%v: data differs", x)
		}
	}
	for key, want := range wrote {
		if got, ok := f.Lookup(key); !ok || got.typ != want.typ || got.elem != want.elem || got.n != want.n || !bytes.Equal(got.raw, want.raw) {
			t.Fatalf("key %s: %s, want %s", key, got.describe(), want.describe())
		}
	}
	// Copying everything gives the same bytes.
	again := NewWriter()
	for key, v := range f.Metadata() {
		again.PutValue(key, v)
	}
	for i := range f.Tensors() {
		x := &f.Tensors()[i]
		again.Add(x.Name, x.Type, x.Dims, FromBytes(x.Data()))
	}
	if copied, err := again.Bytes(context.Background()); err != nil || !bytes.Equal(copied, data) {
		t.Fatalf("the copy differs: %v", err)
	}
	// Every shorter file is refused cleanly, but for the final padding.
	cut := rapid.IntRange(0, len(data)-1).Draw(t, "cut")
	if _, err := OpenBytes("cut.gguf", data[:cut]); err == nil && cut < len(data)-f.Alignment() {
		t.Fatalf("a file cut at %d of %d opened", cut, len(data))
	}
}

// chunked is a tensor of several chunks whose bytes say where they are.
func chunked(w *Writer, name string) {
	w.Add(name, F32, []int{1 << 20}, func(chunk []byte, offset int64) error {
		for i := range chunk {
			chunk[i] = byte((offset + int64(i)) >> 12)
		}
		return nil
	})
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	w := NewWriter()
	putAllTypes(w)
	chunked(w, "x")
	want, err := w.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var last, total int64
	if err := w.WriteFile(context.Background(), path, func(done, all int64) { last, total = done, all }); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("file and memory differ: %d and %d bytes, %v", len(got), len(want), err)
	}
	if last != 4<<20 || total != last {
		t.Errorf("progress ended at %d of %d, want %d", last, total, 4<<20)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := w.Memory(context.Background(), "memory", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.Tensor("x")
	b, _ := m.Tensor("x")
	if !bytes.Equal(a.Data(), b.Data()) {
		t.Error("file and Memory differ")
	}
	if err := errors.Join(f.Close(), m.Close(), m.Close()); err != nil {
		t.Error(err)
	}
}

// TestWriteFails leaves neither the file nor a temporary one behind.
func TestWriteFails(t *testing.T) {
	boom := errors.New("boom")
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		fill Fill
		want error
	}{
		{"fill", context.Background(), func(_ []byte, offset int64) error {
			if offset > 0 {
				return boom
			}
			return nil
		}, boom},
		{"canceled", canceled, func([]byte, int64) error { return nil }, context.Canceled},
	} {
		dir := t.TempDir()
		w := NewWriter()
		w.Add("x", F32, []int{1 << 20}, c.fill)
		if err := w.WriteFile(c.ctx, filepath.Join(dir, "m.gguf"), nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v behind (%v)", c.name, left, err)
		}
		if _, err := w.Memory(c.ctx, "m", nil); !errors.Is(err, c.want) {
			t.Errorf("%s: Memory: %v, want %v", c.name, err, c.want)
		}
	}
	w := NewWriter()
	if err := w.WriteFile(context.Background(), filepath.Join(t.TempDir(), "no", "m.gguf"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if err := w.WriteFile(context.Background(), os.DevNull, nil); err == nil {
		t.Error("a device was replaced by a file")
	}
}

func TestWriterRefuses(t *testing.T) {
	ok := FromBytes(nil)
	for name, c := range map[string]struct {
		build func(w *Writer)
		want  string
	}{
		"duplicate key":    {func(w *Writer) { w.Put("a", true); w.Put("a", true) }, `key "a": duplicate key`},
		"empty key":        {func(w *Writer) { w.Put("", true) }, "1 to 65535"},
		"plain int":        {func(w *Writer) { w.Put("a", 1) }, "type int of Go"},
		"map":              {func(w *Writer) { w.Put("a", map[string]int{}) }, "type map[string]int of Go"},
		"alignment":        {func(w *Writer) { w.Put(alignmentKey, uint32(24)) }, "power of two"},
		"late alignment":   {func(w *Writer) { w.Add("x", F32, []int{1}, ok); w.Put(alignmentKey, uint32(64)) }, "before any tensor"},
		"duplicate tensor": {func(w *Writer) { w.Add("x", F32, []int{1}, ok); w.Add("x", F32, []int{1}, ok) }, "duplicate tensor"},
		"no dimensions":    {func(w *Writer) { w.Add("x", F32, nil, ok) }, "number of dimensions is 0"},
		"zero dimension":   {func(w *Writer) { w.Add("x", F32, []int{4, 0}, ok) }, "dimension 1 is 0"},
		"part of a block":  {func(w *Writer) { w.Add("x", Q6_K, []int{128}, ok) }, "want a multiple of 256 (Q6_K block)"},
		"overflow":         {func(w *Writer) { w.Add("x", F32, []int{1 << 31, 1 << 31, 1 << 31}, ok) }, "overflows"},
		"undefined type":   {func(w *Writer) { w.Add("x", Type(5), []int{1}, ok) }, "not defined"},
	} {
		w := NewWriter()
		c.build(w)
		if _, err := w.Bytes(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// writeShards writes a model of n files, each with one tensor.
func writeShards(t *testing.T, prefix string, n int, tensors int32) {
	t.Helper()
	for i := range n {
		w := NewWriter()
		if i == 0 {
			w.Put("general.architecture", "none")
		}
		w.Put(splitCountKey, uint16(n))
		w.Put(splitNumberKey, uint16(i))
		w.Put(splitTensorsKey, tensors)
		w.Add(string(rune('a'+i)), I8, []int{4}, FromBytes([]byte{byte(i), 1, 2, 3}))
		if err := w.WriteFile(context.Background(), prefix+shardSuffix(i, n), nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSplit(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "m")
	writeShards(t, prefix, 3, 3)
	for i := range 3 {
		f, err := Open(prefix + shardSuffix(i, 3))
		if err != nil {
			t.Fatal(err)
		}
		if arch, err := f.String("general.architecture"); arch != "none" || err != nil {
			t.Errorf("opened by shard %d: architecture %q, %v", i, arch, err)
		}
		if len(f.Tensors()) != 3 || f.Shards() != 3 {
			t.Errorf("opened by shard %d: %d tensors in %d shards, want 3 in 3", i, len(f.Tensors()), f.Shards())
		}
		for j := range 3 {
			x, ok := f.Tensor(string(rune('a' + j)))
			if !ok || x.Data()[0] != byte(j) || x.Shard != j {
				t.Errorf("tensor %d of the model opened by shard %d: %v", j, i, x)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSplitErrors(t *testing.T) {
	fails := func(path, want string) {
		t.Helper()
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		} else {
			checkMessage(t, path, err)
		}
	}
	dir := t.TempDir()
	prefix := filepath.Join(dir, "m")
	writeShards(t, prefix, 3, 4)
	fails(prefix+shardSuffix(0, 3), "the shards hold 3 tensors, want 4")

	raw, err := os.ReadFile(prefix + shardSuffix(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "renamed.gguf"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(filepath.Join(dir, "renamed.gguf"), `want a file name that ends in "-00002-of-00003.gguf"`)
	if _, err := OpenBytes("m.gguf", raw); err == nil {
		t.Error("a shard opened from memory")
	}
	if err := os.WriteFile(prefix+shardSuffix(2, 3), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(prefix+shardSuffix(1, 3), "this is shard 2 of 3, want 3 of 3")
	if err := os.Remove(prefix + shardSuffix(2, 3)); err != nil {
		t.Fatal(err)
	}
	fails(prefix+shardSuffix(1, 3), "shard 3 of 3 of a split model")
}

func TestShapeDropsOnes(t *testing.T) {
	for _, c := range []struct{ dims, want []int }{
		{[]int{8}, []int{8}},
		{[]int{8, 4, 1, 1}, []int{4, 8}},
		{[]int{1, 1}, []int{1}},
		{[]int{8, 4, 2}, []int{2, 4, 8}},
	} {
		x := Tensor{Dims: c.dims}
		if diff := cmp.Diff(c.want, x.Shape()); diff != "" {
			t.Errorf("%v: %s", c.dims, diff)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"blk.0":                 `"blk.0"`,
		"a\"b\\c":               `"a\"b\\c"`,
		"\x1b[31m\u202e\xff":    `"\x1b[31m\u202e\xff"`,
		strings.Repeat("x", 65): `"` + strings.Repeat("x", 64) + `"...`,
	} {
		if got := Quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	long := &Error{File: strings.Repeat("ä", 500) + "/m\n.gguf", Subject: "x", Offset: -1, Err: ErrMissing}
	checkMessage(t, "long path", long)
	if !strings.Contains(long.Error(), `/m\n.gguf`) {
		t.Errorf("the end of a long path is missing: %v", long)
	}
}
