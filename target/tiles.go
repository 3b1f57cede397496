package target

// Tiles holds the numbers by which products by matrix instructions are priced
// (heuristic/gpu_matrix_price.go). Times are of a warp, work is of tiles of 16 rows by
// 8 tokens by 16 points of the sum.
//
// Those for packed weights that are decoded to floats were fitted to 13,468 pairs of kernel and plan: 237 kernels of batches of 8 and 16 sequences and prompts of
// 64 to 512 tokens, of seven shapes, in exact and int8, on an H100 (docs/bench/h100-tiles-pairs.jsonl.gz, h100-tiles.txt), what is exact of h200-matrix-pairs.jsonl.gz, and
// batches of eight of 18 types since bytes become halves by themselves, like h200-batch8-pairs.jsonl.gz (h200-halves.txt). The cheapest plan takes 1.04 times the
// best's time in the last, 1.07 in the first, as by a fit to it alone. How many
// instructions of floats multiply a tile made no difference that the times showed. Those for F16 and BF16 are of a fit to all of h100-floats-pairs.jsonl.gz
// and what of the first has no panels, 430 kernels (h100-floats.txt); products of halves have numbers of their own since.
type Tiles struct {
	Start        float64 // ns, from the end of the kernel before to the first instruction after the wait
	Latency      float64 // ns of a step: its loads, which a warp waits for
	Cached       float64 // ns of a byte that a block reads, as often as blocks do
	Operation    float64 // ns of an operation in a warp's own chain
	Code         float64 // ns of an operation of the program, which a multiprocessor fetches
	Issue        float64 // ns of an operation, of what a multiprocessor issues for all warps
	Rows         float64 // operations for the rows of a tile, whatever decodes their weights
	Decoding     float64 // for the rows of a tile and each operation on a weight
	Bytes        float64 // for the rows of a tile and each byte of a weight
	Lookup       float64 // operations of a look-up in a table
	Tokens       float64 // operations for the tokens of a tile
	Across       float64 // operations for the rows of a tile whose points do not lie side by side, half of it for the tokens
	Product      float64 // for a tile, whose instructions multiply floats; of bytes, for a tile and instruction
	Scale        float64 // for a tile and scale
	Ragged       float64 // times as many are issued where a sum does not divide into steps: loads are guarded
	Compared     float64 // times as many operations where warps of a group do not share the only loop of a sum evenly: all factors are compared. Set by hand
	Registers    float64 // of a thread, besides what it has loaded and its sums
	Accumulators float64 // registers for each tile and matrix
	Loaded       float64 // registers for each that a warp loads for itself
	Once         float64 // registers that a sum of one step does not need
	Joining      float64 // ns, of each tile of each group of warps that share a sum
	Spill        float64 // of the time to issue, for each time that registers do not suffice

	// Of products of integers of several bytes, which take no more instructions than those of floats: the registers
	// that an assembler gives them.
	IntegerRegisters float64 // of a thread, besides what it has loaded and its sums
	IntegerSums      float64 // for each tile
	IntegerSpill     float64

	// Of products of f64, not fitted: what an H200's instruction takes.
	Double          float64 // operations for a tile
	DoubleRegisters float64 // of a thread, besides what it has loaded and its sums

	// The same of panels, which a block shares.
	PanelLatency      float64 // ns of a step besides: threads of the block wait for each other
	PanelRows         float64 // for the rows of a tile and each matrix, shared by the warps along the tokens
	PanelDecoding     float64 // for the rows of a tile and each operation on a weight, shared as they are
	PanelEntries      float64 // for the rows of a tile and each matrix of entries of tables, shared as they are: two points are looked up at a time
	PanelTerms        float64 // for each term of the tokens of a tile, shared by the warps along the rows
	PanelRead         float64 // for 8 rows or tokens and 16 points that a warp reads, of each term
	PanelRegisters    float64
	PanelAccumulators float64
	PanelLoaded       float64 // registers for each side of a tile and step of 16 points
	PanelSpill        float64
	PanelScale        float64 // for a tile and scale

	// Of warpgroups, whose instructions run by themselves: which part of the lesser of these and all other operations the greater does not hide.
	Overlap     float64
	PanelStored float64 // for each term of the tokens of a tile besides, where threads store it: with one set of panels nothing is copied ahead

	// The same of panels whose rows are floats.
	FloatPanel  float64 // of what a block splits into terms for all of its warps, against what a warp splits for itself; of warpgroups, operations for each term of the rows of a tile
	FloatLoaded float64 // registers for each side of a tile and step of 16 points
	PanelOnce   float64 // registers that a sum of one step does not need
}

// floatTilesNVIDIA are the numbers of NVIDIA GPUs for rows that are floats, f64 or integers of several bytes, fitted to 6,888 pairs
// of 100 products of a library on an H100, 7 of them of f64 and 8 of i32 (docs/bench/h100-products-pairs.jsonl.gz, library-h100.txt): the
// cheapest plan takes 1.12 times the best's time, 1.20 by the numbers before. Registers are near what the assembler says;
// Double and DoubleRegisters are set by hand.
func floatTilesNVIDIA() Tiles {
	return Tiles{
		Start: 1800, Latency: 144, Operation: 4.19, Issue: 0.359, Rows: 25.5, Tokens: 8.56, Across: 4.73, Product: 2.04, Ragged: 1.33, Compared: 2.22,
		Registers: 64.2, Accumulators: 7.85, Loaded: 1.06, Once: 27.2, Joining: 20.3, Spill: 1.71,
		PanelLatency: 339, PanelRead: 2.22, PanelSpill: 5.58, PanelRegisters: 74, PanelAccumulators: 8.05, PanelOnce: 78.7, IntegerSpill: 1.77,
		Double: 5, DoubleRegisters: 100, IntegerRegisters: 51.3, IntegerSums: 17.5,
		FloatPanel: 1.05, FloatLoaded: 4.09,
	}
}

// tilesNVIDIA are the numbers of NVIDIA GPUs for packed weights.
func tilesNVIDIA() Tiles {
	return Tiles{
		Start: 120, Latency: 560, Cached: 2.1e-5, Operation: 2.5, Issue: 0.155, Rows: 7.42, Decoding: 1, Tokens: 11.2, Ragged: 1.37, Compared: 2.22,
		Registers: 69.8, Accumulators: 29, Loaded: 1.1, Joining: 20, Spill: 4.37,
		PanelRows: 25.6, PanelEntries: 59.6, PanelTerms: 7.49, PanelRegisters: 102, PanelAccumulators: 14.2, PanelLoaded: 3, PanelSpill: 7.99,
	}
}

// byteTilesNVIDIA are those for sums of bytes without panels, whose weights are decoded to bytes and whose activations are read as they are: fitted to
// the 2,788 pairs of docs/bench/h200-loads-pairs.jsonl.gz on an H200, 132 kernels of 8 to 128 tokens in int8 and i16, of which 487 pairs were timed in
// their step, and to 2,797 of those for packed weights, 16 kernels in Q8_0 and of LLaMA 8B's sizes. The cheapest plan takes 1.055 times the best's time (1.09
// by the numbers before), and 1.05 (as before) of all older pairs of such sums. Programs that run again and again by themselves find their code in a
// cache, as they do not in a step: pairs of a step alone gave 2.4 as Code.
func byteTilesNVIDIA() Tiles {
	return Tiles{
		Start: 547, Latency: 542, Operation: 2.49, Code: 0.394, Issue: 0.236, Decoding: 7.68, Lookup: 1.44, Tokens: 8.59, Product: 0.989, Scale: 3.27, Ragged: 1.33, Compared: 2.22,
		Registers: 121.6, Accumulators: 12.15, Loaded: 0.911, Joining: 17.3, Spill: 2.86,
	}
}

// plainTilesNVIDIA are those for weights of F16 and BF16.
func plainTilesNVIDIA() Tiles {
	return Tiles{
		Start: 295, Latency: 488, Cached: 2.77e-5, Operation: 2, Issue: 0.182, Rows: 11.7, Decoding: 2.14, Tokens: 10.8, Ragged: 1.4, Compared: 2.22,
		Registers: 73.1, Accumulators: 18.1, Loaded: 0.96, Joining: 34.5, Spill: 2.6,
		PanelRows: 18.3, PanelTerms: 5.63, PanelRead: 2.38, PanelScale: 0.321, PanelRegisters: 175, PanelAccumulators: 13.7, PanelSpill: 2.09,
	}
}

// halfTilesNVIDIA are those for products of halves, packed weights that are rounded to halves too: fitted to 4,294 of the pairs of
// docs/bench/h100-halves-pairs.jsonl.gz, 117 kernels of 32 to 512 tokens; of all 5,514 the cheapest plan takes 1.06 times the best's time.
func halfTilesNVIDIA() Tiles {
	return Tiles{
		Start: 197, Latency: 524, Cached: 2.26e-5, Operation: 0.76, Issue: 0.1, Rows: 20.4, Decoding: 0.945, Bytes: 12.1, Lookup: 84.7, Tokens: 5.64, Ragged: 2.22, Compared: 2.22,
		Registers: 87.3, Accumulators: 8.36, Loaded: 0.12, Joining: 39.5, Spill: 3.14,
		PanelRows: 56.9, PanelDecoding: 1.05, PanelTerms: 9.11, PanelRead: 1.85, PanelRegisters: 84.4, PanelAccumulators: 4.19, PanelLoaded: 0.791, PanelSpill: 8.59,
	}
}

// termTilesNVIDIA are those for packed weights with activations stored as two terms of f16, fitted to the 1,608 pairs of
// docs/bench/h200-terms-pairs.jsonl.gz, 66 kernels of 64 to 512 tokens on an H200: the cheapest plan takes 1.05 times the best's time.
func termTilesNVIDIA() Tiles {
	return Tiles{
		Latency: 632, Operation: 1.66, Issue: 0.137, Rows: 18.7, Decoding: 1.89, Lookup: 7.63, Tokens: 12.8, Product: 2.52, Ragged: 1.25, Compared: 2.22,
		Registers: 69.4, Accumulators: 11.9, Loaded: 1.26, Joining: 52.7, Spill: 3.1,
		PanelRows: 6.95, PanelDecoding: 3.75, PanelTerms: 8.94, PanelRead: 1.43, PanelScale: 3.34, PanelRegisters: 97.6, PanelAccumulators: 6.14, PanelLoaded: 1.85, PanelSpill: 6.77,
	}
}

// floatGroupTilesNVIDIA are those for products of floats (an F16 is two terms of bf16) by warpgroups, fitted to 1,302 pairs of 49 products of a library on an H200
// (docs/bench/h200-floats-pairs.jsonl.gz), and those of F16 and of products in docs/bench/h100-groups-pairs.jsonl.gz: over these 57 kernels the cheapest plan takes
// 1.07 times the best's time, 1.15 by the numbers before, which had four products.
func floatGroupTilesNVIDIA() Tiles {
	return Tiles{
		Start: 4013, Latency: 249, Cached: 2.86e-5, Operation: 0.454, Issue: 0.148, Product: 2.27, Ragged: 1.23, Overlap: 0.354,
		PanelLatency: 344, PanelRows: 9.48, PanelRead: 55, PanelRegisters: 168, PanelSpill: 1.75, FloatPanel: 27.8,
	}
}

// groupTilesNVIDIA are those for packed weights, and BF16, with activations as several terms by warpgroups: fitted to the pairs of exact prompts
// of docs/bench/h200-offsets-pairs.jsonl.gz, plans of warps and of warpgroups on an H200, 96 to 512 tokens, and those of up to 64 of h100-panels-pairs.jsonl.gz.
// Over the 264 kernels of both the cheapest plans take 1.04 times as long as the fastest, 1.08 by the numbers before. Overlap is no part here, but how
// often the lesser counts where there are two sets of panels: multiplying, which the greater does not hide, while with one set storing stands for it.
func groupTilesNVIDIA() Tiles {
	return Tiles{
		Latency: 958, Operation: 0.47, Issue: 0.0801, Product: 0.257, Ragged: 1.13, Overlap: 8.05,
		PanelRows: 16.3, PanelDecoding: 3.93, PanelRead: 20.3, PanelScale: 0.579, PanelStored: 16.8, PanelRegisters: 177, PanelLoaded: 3.54, PanelSpill: 4.45,
	}
}

// halfGroupTilesNVIDIA are those for products of halves by warpgroups, which take up to 256 points at once, fitted on an H100 with the prompts'
// pairs of docs/bench/h100-panels-pairs.jsonl.gz and h100-groups-pairs.jsonl.gz, but those of minima that had one set of panels: of 179
// kernels of halves the cheapest plan takes 1.06 times the best's time.
func halfGroupTilesNVIDIA() Tiles {
	return Tiles{
		Start: 2020, Latency: 680, Operation: 0.175, Issue: 0.125, Product: 1.9, Ragged: 1, Overlap: 0.364,
		PanelLatency: 1050, PanelRows: 54.8, PanelDecoding: 1.27, PanelTerms: 5.98, PanelRead: 62.4, PanelRegisters: 128, PanelSpill: 2.91,
	}
}
