package target

// Threads holds the numbers by which ways of mapping work to the threads of a GPU are
// priced (heuristic/gpu_price.go). Those of the zero value stand for a device that has
// no threads.
//
// They were fitted to times of 4,171 pairs of kernel and plan on an H200, matrix-vector
// products of six models in exact and int8 (docs/bench/h200-plans.txt). What scales
// with a device, its bandwidth, its multiprocessors and their rate, is in Cost.
type Threads struct {
	Start         float64 // ns, from the end of the kernel before to the first instruction after the wait
	First         float64 // ns, of the first loads of activations that are not staged
	Launch        float64 // ns a warp of a multiprocessor
	Prologue      float64 // ns, of a block that stages activations
	Staging       float64 // ns a byte of activations that a thread stages
	Crowding      float64 // ns a byte of activations, for each block of a multiprocessor that reads them
	Reading       float64 // ns a byte of activations that a multiprocessor's threads read from caches
	ReadingShared float64 // likewise, from shared memory
	Latency       float64 // ns, of a load from memory
	Iteration     float64 // ns, of an iteration of a loop along a row
	Barrier       float64 // ns, of a sum that warps share
	Bandwidth     float64 // of memory that loads reach, a share
	Sectors       float64 // the time that a byte from the L2 cache takes, against one from memory
	Issue         float64 // of instructions, a share of the rate of multiply-adds
	Busy          float64 // warps of a multiprocessor from which it issues at that rate
	Overlap       float64 // exponent of the norm by which memory, issue and latency add up
	Code          float64 // ns an operation of straight code: instructions are read once
	Registers     float64 // of a thread, besides the weights that it has loaded
	Decoded       float64 // registers, for each operation on a weight of a row that is held
	Held          float64 // registers, for each sum that a thread has of each use of its weights
	Spill         float64 // of the time to read the weights, for each time that registers do not suffice
	Extract       float64 // of the operations on a weight, for each time that the bytes which hold it are read again
	ExtractBytes  float64 // likewise, where the operations are on four bytes at a time
	Guard         float64 // of the time of the rows, where points past the end of a row are left out
	Dot           float64 // operations of a sum of bytes, against what is counted
	Permuted      float64 // operations of a look-up in a table of 16 bytes: 14 instructions for 8 of them, at half the rate
	Table         float64 // of a look-up in a table in memory
	Doubt         float64 // by how much prices of mappings of one kernel are wrong, a share of the price
	DoubtUses     float64 // likewise, where weights have several uses, to which prices were not fitted
}

// threadsNVIDIA are the numbers of NVIDIA GPUs.
func threadsNVIDIA() Threads {
	return Threads{
		Start: 410, First: 113, Launch: 9.5, Prologue: 980, Staging: 1.45, Crowding: 0.055, Reading: 0.02, ReadingShared: 0.0017,
		Latency: 723, Iteration: 112, Barrier: 470, Bandwidth: 0.97, Sectors: 0.82, Issue: 0.68, Busy: 12.6, Overlap: 3.6, Code: 0.073,
		Registers: 6, Decoded: 1.7, Held: 2, Spill: 1.95, Extract: 0.86, ExtractBytes: 2.8, Guard: 0.1, Dot: 1.66, Permuted: 3, Table: 9, Doubt: 0.5, DoubtUses: 2,
	}
}
