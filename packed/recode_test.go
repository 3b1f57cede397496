package packed

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestRecode: blocks of another code have the same values but for rounding.
func TestRecode(t *testing.T) {
	for i := range codes {
		c := &codes[i]
		f, to := source(c), c.to
		if got, ok := Lookup(to.Name); !ok || got != to || !to.InWords() || f.InWords() {
			t.Errorf("%s, another code of %s, is not found by its name, or lies in records no better", to.Name, f.Name)
		}
		const elements = 8 * 256
		data := RandomBlocks(f, elements/f.BlockElems, rand.New(rand.NewPCG(1, uint64(f.GGUF))))
		inOrder := func(f *Format, data []byte) []float32 {
			return decodeAll(t, f, Identity.Place(f, 1, int64(elements/f.BlockElems)), data, 1, elements)
		}
		want, got := inOrder(f, data), inOrder(to, recoded(c, data))
		for k := range want {
			if !(math.Abs(float64(got[k]-want[k])) <= 1e-6*math.Abs(float64(want[k]))) {
				t.Errorf("%s: weight %d is %g, want %g", to.Name, k, got[k], want[k])
				break
			}
		}
	}
	if len(codes) != 14 {
		t.Errorf("there are %d other codes, want 14", len(codes))
	}
}

// TestRecodedRows: rows of a type with another code have one whatever their length is.
func TestRecodedRows(t *testing.T) {
	for i := range codes {
		f := source(&codes[i])
		for blocks := range int64(16) {
			width := (blocks + 1) * int64(f.BlockElems)
			to, ok := Recoded(f, width)
			if !ok || !to.Interleaves([]int64{RecordRows, width}, MostRecordBits) {
				t.Errorf("rows of %d of %s have no other code, or do not lie in records", width, f.Name)
			}
		}
	}
	f, _ := Lookup("Q4_0")
	if _, ok := Recoded(f, 256); ok {
		t.Error("Q4_0 has another code")
	}
}

// source is the format that a code is of.
func source(c *code) *Format {
	f, _ := Lookup(c.of)
	return f
}

// recoded are whole blocks of a format in another code.
func recoded(c *code, data []byte) []byte {
	out := make([]byte, len(data)/c.sourceBytes()*c.to.BlockBytes)
	c.recodeBlocks(out, data)
	return out
}

// TestRecodedReader: a tensor is read, in pieces of any size, as its recoded blocks would lie in records.
func TestRecodedReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &codes[rapid.IntRange(0, len(codes)-1).Draw(t, "code")]
		f, to := source(c), c.to
		rows, blocks := rapid.Int64Range(1, 35).Draw(t, "rows"), rapid.Int64Range(1, 5).Draw(t, "blocks")
		data := RandomBlocks(f, int(rows*blocks)*to.BlockElems/f.BlockElems, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		want := Convert(to, rows, blocks, Identity, Records, recoded(c, data))
		r, err := NewRecodedReader(f, to, rows, blocks, data)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, r.Size())
		size := rapid.IntRange(1, len(got)).Draw(t, "size")
		for at, n := 0, 0; at < len(got); at += n {
			if n, err = r.ReadAt(got[at:min(at+size, len(got))], int64(at)); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%s: records of the other code differ from the copy of the whole", to.Name)
		}
		if _, err := NewRecodedReader(f, to, rows, blocks, data[:len(data)-1]); err == nil {
			t.Fatalf("%s: a part of a tensor was read", f.Name)
		}
	})
	f, _ := Lookup("Q4_0")
	if _, err := NewRecodedReader(f, f, 0, 0, nil); err == nil {
		t.Error("Q4_0 has another code")
	}
}
