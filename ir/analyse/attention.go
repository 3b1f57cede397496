package analyse

// LanesHoldQueries reports that so many queries of attention are lanes of a CPU's vectors: more lanes have a query than
// have none.
func LanesHoldQueries(queries, lanes int64) bool { return (queries+lanes-1)/lanes*lanes < 2*queries }

// queryRegisters are those of a thread for what attention by matrix instructions keeps between two tiles
// of points: there are 255, of which a tile of keys and values takes a fourth.
const queryRegisters = 192

// HoldsQueries reports that a warp of a GPU has registers for 16 queries of attention by matrix
// instructions: accumulators of so many elements of each output, and the elements of each query that a score is
// the sum over, as three terms of bf16. Its 32 lanes have half a register of an accumulator for each of the
// first and three quarters of one for each of the second.
func HoldsQueries(outputs, elements int64) bool {
	return outputs/2+elements*3/4 <= queryRegisters
}
