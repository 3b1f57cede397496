package target

import "math"

// Threads holds the numbers by which ways of mapping work to the threads of a GPU are
// priced (heuristic/gpu_price.go). Those of the zero value stand for a device that has
// no threads.
//
// They were fitted to the times of 12,560 pairs of kernel and plan on an H200,
// matrix-vector products of 15 models in exact and int8 with one to four uses of a weight
// (go run ./internal/planbench -score docs/bench/h200-pairs.jsonl.gz -fit 9000). The file
// has 682 more, timed with these numbers: a fit to all chooses better by the times of
// pairs and made whole steps 1.5 % slower. Line was set by output layers, which 4 threads a row read 7 to 20 % slower than 16
// (docs/bench/h200-odd.txt has whole steps). Stage was set by pairs in steps that differ in nothing else, and again, with
// Lanes, Decoding, Using and what a thread holds (SpillFloats to HeldSums), by 6,299 pairs in steps and by whole steps
// (docs/bench/h100-exact.txt). SpillBytes and Last were set by output layers and
// by whole steps (docs/bench/h200-waves.txt). Whole and BlockBytes
// were set by pairs in steps that differ in threads and blocks only, and by whole steps
// (docs/bench/h200-whole.txt). Extract and ExtractBytes were set by whole steps once shifts by
// amounts of a thread were made on words (docs/bench/h200-apart.txt); before that lanes that
// share bytes cost 2.6 and 4 times as much. Placed, Exchange, Late and Turn were set by attention in whole
// steps, over caches of three lengths (docs/bench/h200-clusters.txt), Rows and Query by those of five lengths and models
// (docs/bench/h200-depth.txt). OpenLines and Reread were set by output layers of 25 types with 4 to 32 threads a row, and by whole steps
// (docs/bench/h200-open-lines.txt). QuarterFull was set by the cheapest tiles and threads of 22 products of two tokens,
// timed in steps (docs/bench/h200-halves.txt). What scales with a device,
// its bandwidth, its multiprocessors and their rate, is in Cost.
type Threads struct {
	Start         float64 // ns, from the end of the kernel before to the first instruction after the wait
	Block         float64 // ns a block of the grid
	BlockBytes    float64 // likewise, where each weight is used once, in sums of bytes
	Launch        float64 // ns a warp of a multiprocessor
	Whole         float64 // ns that such a block waits which takes more than half of a multiprocessor, until the kernel before has left
	Ready         float64 // ns a byte that a thread reads before a block has its activations
	Reading       float64 // ns a byte of an activation that a multiprocessor's threads read from caches, for each line that lanes read parts of at once
	ReadingShared float64 // likewise, from shared memory
	Iteration     float64 // ns, of an iteration of a loop along a row
	Shuffle       float64 // ns, of a step by which lanes add up a sum
	Barrier       float64 // ns, of a sum that warps share
	Stage         float64 // ns, until a block has in shared memory what it computes once, if nothing else makes it wait
	Placed        float64 // ns a block of a grid of clusters
	Exchange      float64 // ns, of parts of a sum among the blocks of a cluster
	Late          float64 // ns, of points that a block reads in several turns, since not all of them are on their way before the wait
	Turn          float64 // ns, of each such turn after the first
	Rows          float64 // ns a byte of rows that blocks read for themselves, most of them from the second cache
	Query         float64 // ns, of the parts of one more query whose rows a block shares
	Line          float64 // of the time to read the weights, each time that threads of a row read half as much of a line of memory at once
	OpenLines     float64 // of memory that the first cache of a multiprocessor holds until threads come back to them
	Reread        float64 // of the time to read the weights and of the operations, for each time that more lines are open
	Apart         float64 // of the time to read the weights, for each load of a thread that lies between those of neighbouring lanes
	Scale         float64 // operations of a scale that several threads compute, against what is counted
	Unit          float64 // what one multiprocessor reads at most, in shares of the bandwidth
	Issue         float64 // of instructions, a share of the rate of multiply-adds
	Busy          float64 // warps of a multiprocessor from which it issues at that rate
	Overlap       float64 // exponent of the norm by which times add up that pass beside each other
	Padding       float64 // exponent of the points that a row has with those past its end, against its own
	Registers     float64 // of a thread, besides the weights that it has loaded
	Decoded       float64 // registers, for each operation on a weight of a row that is held
	Held          float64 // registers, for each sum that a thread has of each use of its weights
	Spill         float64 // of the time to read the weights, for each time that registers do not suffice
	SpillBytes    float64 // likewise, where each weight is used once, in sums of bytes, and a thread reads several rounds of them
	SpillFloats   float64 // of the time to read the weights and of the operations, for each time that what a thread with sums of floats holds does not fit
	SpillUses     float64 // likewise, where it uses its weights several times
	FloatBase     float64 // registers of a thread with sums of floats, besides what it holds
	ByteBase      float64 // likewise, with sums of bytes
	HeldWeights   float64 // registers, for each that its weights fill
	HeldElements  float64 // registers, for each that activations fill which it multiplies at once
	HeldSums      float64 // registers, for each of its sums
	Decoding      float64 // operations that decode a weight which several sums of floats use, against what is counted: some take an instruction together
	Using         float64 // those of each use, likewise
	Lanes         float64 // of the operations on weights that sums of floats use once, each time that half as many lanes of a warp share a row
	Last          float64 // of the operations on a thread's last weights, after several rounds: nothing is read beside them
	Extract       float64 // of the operations on a weight, each time that half of those which share bytes are a thread's
	ExtractBytes  float64 // likewise, where the operations are on four bytes at a time
	Dot           float64 // operations of a sum of bytes, against what is counted
	Permuted      float64 // operations of a look-up in a table of 16 bytes: 14 instructions for 8 of them, at half the rate
	Table         float64 // of a look-up in a table in memory
	QuarterFull   float64 // of the price of tiles of matrix instructions that decode weights for a quarter of their tokens, where it is compared with that of threads
}

// Beside is the time of two things that pass beside each other.
func (t *Threads) Beside(x, y float64) float64 {
	return math.Pow(math.Pow(x, t.Overlap)+math.Pow(y, t.Overlap), 1/t.Overlap)
}

// threadsNVIDIA are the numbers of NVIDIA GPUs.
func threadsNVIDIA() Threads {
	return Threads{
		Start: 680, Block: 4.3, BlockBytes: 2, Launch: 53, Whole: 700, Ready: 2.48, Reading: 0.0054, ReadingShared: 0.00275,
		Iteration: 443, Shuffle: 20.9, Barrier: 149, Stage: 1400, Placed: 25, Exchange: 500, Late: 1800, Turn: 700, Rows: 66e-6, Query: 1700, Line: 0.06, OpenLines: 700, Reread: 0.3, Apart: 0.2, Scale: 6, Unit: 1.18, Issue: 1.23, Busy: 16, Overlap: 3.21, Padding: 1.6,
		Registers: 2.72, Decoded: 0.195, Held: 4.37, Spill: 1.09, SpillFloats: 0.4, SpillUses: 1.8, FloatBase: 30, ByteBase: 60, HeldWeights: 0.6, HeldElements: 0.9, HeldSums: 2, Decoding: 0.7, Using: 1.3, Lanes: 0.03, SpillBytes: 0.4, Last: 0.5, Extract: 0.4, ExtractBytes: 0.5, Dot: 1.99, Permuted: 2.65, Table: 19.4, QuarterFull: 1.2,
	}
}
