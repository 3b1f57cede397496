package packed

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	_ "tgc/internal/steadyseed"

	"pgregory.net/rapid"
)

// TestPlaneReader compares what is read in pieces of any size with the copy of
// the whole tensor.
func TestPlaneReader(t *testing.T) {
	var formats []*Format
	for _, f := range All() {
		if !f.IsPlain() {
			formats = append(formats, f)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(formats).Draw(t, "format")
		rows, blocks := rapid.Int64Range(1, 5).Draw(t, "rows"), rapid.Int64Range(1, 9).Draw(t, "blocks")
		data := RandomBlocks(f, int(rows*blocks), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		want := Convert(f, rows, blocks, Identity, Planes, data)
		r := NewPlaneReader(f, rows, blocks, data)
		if r.Size() != int64(len(want)) {
			t.Fatalf("%s: %d bytes, want %d", f.Name, r.Size(), len(want))
		}
		for offset := int64(0); offset < r.Size(); {
			size := rapid.Int64Range(1, r.Size()).Draw(t, "size")
			piece := bytes.Repeat([]byte{0xa5}, int(size))
			n, err := r.ReadAt(piece, offset)
			if wantN := min(size, r.Size()-offset); int64(n) != wantN || int64(n) < size && !errors.Is(err, io.EOF) || int64(n) == size && err != nil {
				t.Fatalf("%s: %d bytes at %d of %d: read %d (%v), want %d", f.Name, size, offset, r.Size(), n, err, wantN)
			}
			if !bytes.Equal(piece[:n], want[offset:offset+int64(n)]) {
				t.Fatalf("%s: %d rows of %d blocks: bytes %d to %d differ from the copy of the whole", f.Name, rows, blocks, offset, offset+int64(n))
			}
			offset += int64(n)
		}
	})
}

// BenchmarkPlanes is the speed of laying out a matrix.
func BenchmarkPlanes(b *testing.B) {
	for _, name := range []string{"Q6_K", "Q4_K", "Q8_0"} {
		f, _ := Lookup(name)
		const rows, k = 2048, 2048
		blocks := int64(k / f.BlockElems)
		data := RandomBlocks(f, int(rows*blocks), rand.New(rand.NewPCG(1, 1)))
		r := NewPlaneReader(f, rows, blocks, data)
		out := make([]byte, r.Size())
		b.Run(name+"/pieces", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for range b.N {
				if _, err := r.ReadAt(out, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/whole", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for range b.N {
				Convert(f, rows, blocks, Identity, Planes, data)
			}
		})
	}
}
