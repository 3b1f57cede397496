package target

// Tiles holds the numbers by which products by matrix instructions are priced
// (heuristic/gpu_matrix_price.go). Times are of a warp, work is of tiles of 16 rows by
// 8 tokens by 16 points of the sum.
//
// They were fitted to the times of 6,074 pairs of kernel and plan on an H200: 190 kernels
// of batches of 2 to 128 sequences and of prompts of 128 to 512 tokens, of eight models in
// exact, int8 and f16 (docs/bench/h200-matrix-pairs.jsonl.gz). How many operations
// decode a weight, how many instructions multiply a tile, and what a cache delivers made no
// difference that the times showed.
type Tiles struct {
	Start        float64 // ns, from the end of the kernel before to the first instruction after the wait
	Latency      float64 // ns of a step: its loads, which a warp waits for
	Operation    float64 // ns of an operation in a warp's own chain
	Issue        float64 // ns of an operation, of what a multiprocessor issues for all warps
	Rows         float64 // operations for the rows of a tile, whatever decodes their weights
	Tokens       float64 // operations for the tokens of a tile
	Panel        float64 // of what a block decodes for all of its warps, against what a warp decodes for itself
	Registers    float64 // of a thread, besides what it has loaded and its sums
	Accumulators float64 // registers for each tile
	Loaded       float64 // registers for each that a warp loads for itself
	Panels       float64 // registers for each side of a tile that a block shares
	Joining      float64 // ns, of each tile of each group of warps that share a sum
	Spill        float64 // of the time to issue, for each time that registers do not suffice
}

// tilesNVIDIA are the numbers of NVIDIA GPUs.
func tilesNVIDIA() Tiles {
	return Tiles{
		Start: 448, Latency: 587, Operation: 2.7, Issue: 0.333, Rows: 18, Tokens: 8.02, Panel: 0.695,
		Registers: 79.9, Accumulators: 17.7, Loaded: 0.764, Panels: 6.8, Joining: 45.7, Spill: 2.62,
	}
}
