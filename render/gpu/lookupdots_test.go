package gpu

import (
	"math/rand/v2"
	"testing"
)

// What the halves of a table add up to is the table: the byte of one half and the sign of the
// one in its place of the other.
func TestSplitLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table := make([]byte, 16)
	split := 0
	for range 20000 {
		for i := range table {
			table[i] = byte(r.Uint32())
		}
		halves, ok := splitLevels(table)
		if !ok {
			continue
		}
		split++
		for i := range table {
			if got := int(int8(halves[i])) + int(int8(halves[(i+8)%16])>>7); got != int(int8(table[i])) {
				t.Fatalf("table %x: entry %d is %d, want %d: halves %d", table, i, got, int8(table[i]), halves)
			}
		}
	}
	if split < 1000 {
		t.Errorf("%d of 20000 tables were split", split)
	}
	if _, ok := splitLevels(table[:8]); ok {
		t.Error("a table of 8 bytes has no halves")
	}
}
