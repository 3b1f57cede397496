package packed

import "testing"

// TestPiecesApart checks what lanes read of a plane: pieces with one digit fill 64 bytes, where rows have as many
// blocks, and each piece has a place of its own.
func TestPiecesApart(t *testing.T) {
	const least = 64
	for _, f := range All() {
		for i := range f.Fields {
			fd := &f.Fields[i]
			if fd.Apart.Count < 2 {
				continue
			}
			for _, blocks := range []int64{8, 7, 1} {
				place := Planes.Place(f, 3, blocks).Fields[i]
				seen := make(map[int64]bool)
				together := make(map[int64]map[int64]int) // of 64 bytes: pieces by their digit
				for block := range blocks {
					for j := int64(0); j < int64(fd.Count); j += place.Run {
						at := place.At(1, block, j) - place.Base - place.RowStride
						if at < 0 || at >= place.RowStride || at%pieceBytes != 0 || seen[at] {
							t.Fatalf("%s.%s, %d blocks: element %d of block %d at byte %d of its row", f.Name, fd.Name, blocks, j, block, at)
						}
						seen[at] = true
						if together[at/least] == nil {
							together[at/least] = make(map[int64]int)
						}
						together[at/least][j/place.Run/int64(fd.Apart.Unit)%int64(fd.Apart.Count)]++
					}
				}
				for n, digits := range together {
					if blocks%int64(fd.Apart.Blocks) == 0 && len(digits) > 1 {
						t.Errorf("%s.%s, %d blocks: bytes %d to %d have pieces of %d digits, want one", f.Name, fd.Name, blocks, n*least, (n+1)*least, len(digits))
					}
				}
			}
		}
	}
}
