package target

// Tiles holds the numbers by which products by matrix instructions are priced
// (heuristic/gpu_matrix_price.go). Times are of a warp, work is of tiles of 16 rows by
// 8 tokens by 16 points of the sum.
//
// They were fitted to the times of pairs of kernel and plan on an H200: first of 190 kernels of batches of 2 to 128
// sequences and of prompts of 128 to 512 tokens, of eight models in exact, int8 and f16
// (docs/bench/h200-matrix-pairs.jsonl.gz, 6,074 pairs), then those of panels, and Ragged, to these and to
// 55 kernels of prompts of 128 to 2,048 tokens (h200-panel-pairs.jsonl.gz, 1,175 pairs). How many operations
// decode a weight, how many instructions multiply a tile, and what a cache delivers made no
// difference that the times showed.
type Tiles struct {
	Start        float64 // ns, from the end of the kernel before to the first instruction after the wait
	Latency      float64 // ns of a step: its loads, which a warp waits for
	Operation    float64 // ns of an operation in a warp's own chain
	Issue        float64 // ns of an operation, of what a multiprocessor issues for all warps
	Rows         float64 // operations for the rows of a tile, whatever decodes their weights
	Tokens       float64 // operations for the tokens of a tile
	Ragged       float64 // times as many are issued where a sum does not divide into steps: loads are guarded
	Registers    float64 // of a thread, besides what it has loaded and its sums
	Accumulators float64 // registers for each tile and sum
	Loaded       float64 // registers for each that a warp loads for itself
	Joining      float64 // ns, of each tile of each group of warps that share a sum
	Spill        float64 // of the time to issue, for each time that registers do not suffice

	// Of products of integers of several bytes, which take no more instructions than those of floats: the registers
	// that an assembler gives them.
	IntegerRegisters float64 // of a thread, besides what it has loaded and its sums
	IntegerSums      float64 // for each tile

	// Of products of f64, not fitted: what an H200's instruction takes.
	Double          float64 // operations for a tile
	DoubleRegisters float64 // of a thread, besides what it has loaded and its sums

	// The same of panels, which a block shares.
	PanelAlone        float64 // ns of a step more, where a second set of panels, or what is loaded for it, has no room
	PanelRows         float64 // for the rows of a tile and each matrix, shared by the warps along the tokens
	PanelTerms        float64 // for each term of the tokens of a tile, shared by the warps along the rows
	Fragment          float64 // operations of a warp for each term of the tokens of a tile
	PanelRegisters    float64
	PanelAccumulators float64
	PanelLoaded       float64 // registers for each side of a tile and step of 16 points
	PanelSpill        float64

	// The same of panels whose rows are floats, of which the pairs of prompts have none. What is split is by 220 plans of ten
	// products of a library (docs/bench/library-h200.txt), the registers are as those of the batches were fitted.
	FloatPanel  float64 // of what a block splits into terms for all of its warps, against what a warp splits for itself
	FloatLoaded float64 // registers for each side of a tile and step of 16 points
}

// tilesNVIDIA are the numbers of NVIDIA GPUs.
func tilesNVIDIA() Tiles {
	return Tiles{
		Start: 448, Latency: 587, Operation: 2.7, Issue: 0.333, Rows: 18, Tokens: 8.02, Ragged: 1.16,
		Registers: 79.9, Accumulators: 17.7, Loaded: 0.764, Joining: 45.7, Spill: 2.62,
		Double: 20, DoubleRegisters: 48, IntegerRegisters: 42, IntegerSums: 10,
		PanelAlone: 1124, PanelRows: 24.6, PanelTerms: 6.41, Fragment: 1,
		PanelRegisters: 102.5, PanelAccumulators: 6.16, PanelLoaded: 1.69, PanelSpill: 9.93,
		FloatPanel: 1.5, FloatLoaded: 6.8,
	}
}
