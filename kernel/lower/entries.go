package lower

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// Lanes that look up entries of a table, each of some neighbours: a code of IQ3_S stands for four weights, and a
// fragment of a matrix instruction has those of two codes. Where in the table an entry lies is computed; that four lanes
// share it is seen from what is static of the address. An entry is then one load, where a gather of a GPU takes one for each
// lane and keeps the table out of shared memory (opt: share-tables). 1280 x 3584 IQ3_S with eight sequences, `int8`: 208 loads for four matrix
// instructions, 87 so; us a step of four layers on an H200 206 and 138, exact 229 and 161 (docs/bench/h200-entries.txt).

// entryLanes is how many lanes one after another are neighbours, most at most: their static offsets are, and what else decides
// where they lie, given in every lane, is the same.
func entryLanes(offsets []int64, parts [][]ir.Scalar, most int) int {
	inRun := func(first, lane int) bool {
		return offsets[lane] == offsets[first]+int64(lane-first) &&
			!slices.ContainsFunc(parts, func(v []ir.Scalar) bool { return v[lane] != v[first] })
	}
	for n := min(len(offsets), most); n > 1; n-- {
		if len(offsets)%n == 0 && !slices.ContainsFunc(lists.Upto(len(offsets)), func(lane int) bool { return !inRun(lane-lane%n, lane) }) {
			return n
		}
	}
	return 1
}
