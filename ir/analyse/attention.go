package analyse

// LanesHoldQueries reports that so many queries of attention are lanes of a CPU's vectors: more lanes have a query than
// have none.
func LanesHoldQueries(queries, lanes int64) bool { return (queries+lanes-1)/lanes*lanes < 2*queries }

// queryRegisters are those of a thread for what attention by matrix instructions keeps between two tiles
// of points: there are 255, of which a tile of keys and values takes a fourth. Beyond freeRegisters some are spilled: 8 heads of 256
// and 2,048 queries on an H200, halves, us of four layers: all outputs at once 2,558, in two parts 2,211; two terms in two parts with spills 4,088, in
// four without 4,248. Scores of parts are made for each of them, so there are two at most.
const (
	queryRegisters  = 192
	freeRegisters   = 176
	mostOutputParts = 2
)

// Terms of a query's elements: bf16 of which three hold a float, or scaled f16 of which two do.
const (
	TermsOfFloat  = 3
	ScaledOfFloat = 2
)

// HoldsQueries reports that a warp of a GPU has registers for 16 queries of attention by matrix
// instructions: accumulators of so many elements of each output, and the elements of each query that a score is
// the sum over, as so many terms of two bytes.
func HoldsQueries(outputs, elements, terms int64) bool {
	return registersOfQueries(outputs, elements, terms) <= queryRegisters
}

// registersOfQueries are those of a warp's 32 lanes: half a register of an accumulator for each output of 16 queries, and a quarter of one for each
// term of an element.
func registersOfQueries(outputs, elements, terms int64) int64 {
	return outputs/2 + elements*terms/4
}

// OutputParts is in how many parts the outputs of attention are where a warp holds the queries, each with tiles of so many
// elements; 0 for none. All are in one where registers are free.
func OutputParts(outputs, elements, terms, tile int64) int64 {
	for _, registers := range []int64{freeRegisters, queryRegisters} {
		for parts := int64(1); parts <= mostOutputParts; parts *= 2 {
			if (parts == 1 || outputs%(parts*tile) == 0) && registersOfQueries(outputs/parts, elements, terms) <= registers {
				return parts
			}
		}
	}
	return 0
}
