package packed

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	_ "tgc/internal/steadyseed"

	"pgregory.net/rapid"
)

// TestRecordReader compares what is read in pieces of any size with the copy of the whole
// tensor, of rows that fill no tile too.
func TestRecordReader(t *testing.T) {
	formats := slices.DeleteFunc(All(), (*Format).IsPlain)
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(formats).Draw(t, "format")
		rows, blocks := rapid.Int64Range(1, 35).Draw(t, "rows"), rapid.Int64Range(1, 5).Draw(t, "blocks")
		data := RandomBlocks(f, int(rows*blocks), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		want := Convert(f, rows, blocks, Identity, Records, data)
		if back := Convert(f, rows, blocks, Records, Identity, want); !bytes.Equal(back, data) {
			t.Fatalf("%s: %d rows of %d blocks do not come back", f.Name, rows, blocks)
		}
		r := NewRecordReader(f, rows, blocks, data)
		if r.Size() != int64(len(want)) {
			t.Fatalf("%s: %d bytes, want %d", f.Name, r.Size(), len(want))
		}
		for offset := int64(0); offset < r.Size(); {
			size := rapid.Int64Range(1, r.Size()).Draw(t, "size")
			piece := bytes.Repeat([]byte{0xa5}, int(size))
			n, err := r.ReadAt(piece, offset)
			if wantN := min(size, r.Size()-offset); int64(n) != wantN || int64(n) < size && !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %d bytes at %d of %d: read %d (%v), want %d", f.Name, size, offset, r.Size(), n, err, wantN)
			}
			if !bytes.Equal(piece[:n], want[offset:offset+int64(n)]) {
				t.Fatalf("%s: %d rows of %d blocks: bytes %d to %d differ from the copy of the whole", f.Name, rows, blocks, offset, offset+int64(n))
			}
			offset += int64(n)
		}
	})
}

// TestInterleaves: tiles of whole matrices, in types whose bytes are masked, shifted and looked up in a short table alone.
func TestInterleaves(t *testing.T) {
	var suit []string
	for _, f := range All() {
		if f.Interleaves([]int64{32, 512}, RecordBits) {
			suit = append(suit, f.Name)
		}
	}
	want := []string{"Q4_0", "Q4_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "IQ4_NL", "IQ4_XS", "TQ2_0", "MXFP4", "NVFP4"}
	if !slices.Equal(suit, want) {
		t.Errorf("records suit %v, want %v", suit, want)
	}
	var wide []string
	for _, f := range All() {
		if f.Interleaves([]int64{32, 512}, MostRecordBits) && !slices.Contains(suit, f.Name) {
			wide = append(wide, f.Name)
		}
		if f.Interleaves([]int64{32, 512}, 0) {
			t.Errorf("%s in records of no bits", f.Name)
		}
	}
	if want := []string{"Q8_0", "Q6_K"}; !slices.Equal(wide, want) {
		t.Errorf("records of up to %d bits suit %v besides, want %v", MostRecordBits, wide, want)
	}
	for name, want := range map[string]bool{"Q8_0": true, "Q6_K": false, "Q4_0": false} {
		if f, _ := Lookup(name); f.WholeBytes() != want {
			t.Errorf("%s stores whole bytes: %v, want %v", name, !want, want)
		}
	}
	f, _ := Lookup("Q4_K")
	for _, c := range []struct {
		shape []int64
		want  bool
	}{
		{[]int64{512}, false}, {[]int64{0, 512}, false}, {[]int64{24, 512}, false}, {[]int64{16, 512}, true},
		{[]int64{4, 32, 512}, true}, {[]int64{3, 5, 48, 512}, true}, {[]int64{2, 24, 512}, false}, {[]int64{0, 32, 512}, false},
	} {
		if f.Interleaves(c.shape, 8) != c.want {
			t.Errorf("records of %v: %v, want %v", c.shape, !c.want, c.want)
		}
	}
}

// TestRecordsOfMatrices: each of several matrices lies as it would alone, one after the other.
func TestRecordsOfMatrices(t *testing.T) {
	for _, f := range All() {
		const matrices, rows, blocks = 3, 48, 5
		if !f.Interleaves([]int64{matrices, rows, int64(blocks * f.BlockElems)}, MostRecordBits) {
			continue
		}
		data := RandomBlocks(f, matrices*rows*blocks, rand.New(rand.NewPCG(5, 6)))
		var want []byte
		for alone := range slices.Chunk(data, rows*blocks*f.BlockBytes) {
			want = append(want, Convert(f, rows, blocks, Identity, Records, alone)...)
		}
		r := NewRecordReader(f, matrices*rows, blocks, data)
		got := make([]byte, r.Size())
		if _, err := r.ReadAt(got, 0); err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(got, want) {
			t.Errorf("%s: several matrices lie otherwise than alone (%v)", f.Name, err)
		}
	}
}

// BenchmarkRecords is the speed of laying out a matrix.
func BenchmarkRecords(b *testing.B) {
	for _, name := range []string{"Q6_K", "Q4_K", "Q4_0"} {
		f, _ := Lookup(name)
		const rows, k = 2048, 2048
		blocks := int64(k / f.BlockElems)
		data := RandomBlocks(f, int(rows*blocks), rand.New(rand.NewPCG(1, 1)))
		r := NewRecordReader(f, rows, blocks, data)
		out := make([]byte, r.Size())
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for range b.N {
				if _, err := r.ReadAt(out, 0); err != nil && !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestWordsInOrder: words that make weights together are one run of bytes, and the runs follow each other as
// the weights do.
func TestWordsInOrder(t *testing.T) {
	several := 0
	for _, f := range All() {
		if !f.Interleaves([]int64{RecordRows, int64(f.BlockElems)}, MostRecordBits) {
			continue
		}
		reads := f.wordReads()
		several += min(len(reads)-1, 1)
		fewest, place := "", Records.Place(f, RecordRows, 1)
		for i := range f.Fields {
			if name := f.Fields[i].Name; reads[name] != nil && (fewest == "" || slices.Max(reads[name]) < slices.Max(reads[fewest])) {
				fewest = name
			}
		}
		next := place.Bytes - f.recordWordBytes()
		for group := range slices.Max(reads[fewest]) + 1 {
			beside := make(map[int64]bool)
			for i := range f.Fields {
				for k, word := range reads[f.Fields[i].Name] {
					if reads[fewest][k] == group {
						beside[place.Fields[i].At(0, 0, word*recordWord)] = true
					}
				}
			}
			for at := range beside {
				if at < next || at >= next+int64(len(beside))*RecordRows*recordWord {
					t.Errorf("%s: a word of group %d lies at %d, the group's %d words from %d on", f.Name, group, at, len(beside), next)
				}
			}
			next += int64(len(beside)) * RecordRows * recordWord
		}
		if next != place.Bytes {
			t.Errorf("%s: words end at %d of %d", f.Name, next, place.Bytes)
		}
	}
	if several != 3 {
		t.Errorf("%d types have several fields of words, want Q3_K, Q5_K and Q6_K", several)
	}
}
