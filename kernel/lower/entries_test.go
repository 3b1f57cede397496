package lower

import (
	"testing"

	"tgc/internal/lists"
	"tgc/ir"
)

// Lanes are runs of neighbours as long as nothing else that decides where they lie changes within one.
func TestEntryLanes(t *testing.T) {
	scalars := func(list ...int64) []ir.Scalar { return lists.Map(list, ir.IntScalar) }
	for _, tt := range []struct {
		name    string
		offsets []int64
		parts   [][]ir.Scalar
		most    int
		want    int
	}{
		{"two codes of four", []int64{0, 1, 2, 3, 0, 1, 2, 3}, [][]ir.Scalar{scalars(0, 0, 0, 0, 1, 1, 1, 1)}, 16, 4},
		{"one code", []int64{0, 1, 2, 3, 4, 5, 6, 7}, nil, 16, 8},
		{"no more than a load", []int64{0, 1, 2, 3, 4, 5, 6, 7}, nil, 4, 4},
		{"codes of two where a second part changes", []int64{0, 1, 2, 3, 0, 1, 2, 3}, [][]ir.Scalar{scalars(0, 0, 0, 0, 1, 1, 1, 1), scalars(5, 5, 6, 6, 5, 5, 6, 6)}, 16, 2},
		{"a code for each lane", []int64{0, 1, 2, 3}, [][]ir.Scalar{scalars(0, 1, 2, 3)}, 16, 1},
		{"not side by side", []int64{0, 2, 4, 6}, nil, 16, 1},
		{"runs of three", []int64{0, 1, 2, 9, 10, 11}, nil, 16, 3},
	} {
		if got := entryLanes(tt.offsets, tt.parts, tt.most); got != tt.want {
			t.Errorf("%s: runs of %d lanes, want %d", tt.name, got, tt.want)
		}
	}
}
