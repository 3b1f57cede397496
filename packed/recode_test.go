package packed

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"
)

// TestRecode: blocks of another code have the same values but for rounding.
func TestRecode(t *testing.T) {
	found := 0
	for _, f := range All() {
		to, ok := Recoded(f)
		if !ok {
			continue
		}
		found++
		if got, ok := Lookup(to.Name); !ok || got != to || !to.InWords() || f.InWords() {
			t.Errorf("%s, the other code of %s, is not found by its name, or lies in records no better", to.Name, f.Name)
		}
		const elements = 8 * 256
		data := RandomBlocks(f, elements/f.BlockElems, rand.New(rand.NewPCG(1, uint64(f.GGUF))))
		other := recoded(f, data)
		inOrder := func(f *Format, data []byte) []float32 {
			return decodeAll(t, f, Identity.Place(f, 1, int64(elements/f.BlockElems)), data, 1, elements)
		}
		want, got := inOrder(f, data), inOrder(to, other)
		for k := range want {
			if !(math.Abs(float64(got[k]-want[k])) <= 1e-6*math.Abs(float64(want[k]))) {
				t.Errorf("%s: weight %d is %g, want %g", to.Name, k, got[k], want[k])
				break
			}
		}
	}
	if found != 12 {
		t.Errorf("%d types have another code, want 12", found)
	}
}

// recoded are whole blocks of a format in its other code.
func recoded(f *Format, data []byte) []byte {
	c := codeOf(f)
	out := make([]byte, len(data)/c.sourceBytes()*c.to.BlockBytes)
	c.recodeBlocks(out, data)
	return out
}

// TestRecodedReader: a tensor is read as its recoded blocks would lie in records.
func TestRecodedReader(t *testing.T) {
	for _, f := range All() {
		to, ok := Recoded(f)
		if !ok {
			continue
		}
		const rows, blocks = 48, 3
		data := RandomBlocks(f, rows*blocks*to.BlockElems/f.BlockElems, rand.New(rand.NewPCG(2, uint64(f.GGUF))))
		want := Convert(to, rows, blocks, Identity, Records, recoded(f, data))
		r, err := NewRecodedReader(f, rows, blocks, data)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, r.Size())
		for at, n := 0, 0; at < len(got); at += n {
			if n, err = r.ReadAt(got[at:min(at+777, len(got))], int64(at)); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: records of the other code differ from the copy of the whole", f.Name)
		}
		if _, err := NewRecodedReader(f, rows, blocks, data[:len(data)-1]); err == nil {
			t.Errorf("%s: a part of a tensor was read", f.Name)
		}
	}
	f, _ := Lookup("Q4_0")
	if _, err := NewRecodedReader(f, 0, 0, nil); err == nil {
		t.Error("Q4_0 has another code")
	}
}
