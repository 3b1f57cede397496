package state

import (
	"tgc/ir"
	"tgc/packed"
	"tgc/pass"
)

// LookupDecoder finds the decode expression of a GGUF type by its name.
func LookupDecoder(format string) (Decoder, bool) { return packed.Lookup(format) }

// Decoder builds the f32 value of element k of a row of a packed buffer from
// FIELD nodes. packed.Format is one.
type Decoder interface {
	Decode(a *ir.Arena, buf, row, k *ir.UOp) *ir.UOp
}

// Options steer a run. The zero value is not useful: start from
// DefaultOptions or CPUOptions.
type Options struct {
	Off     RuleSet // rules that are switched off
	Profile Profile
	// Decoders finds the decode expression of a packed format by name.
	Decoders func(format string) (Decoder, bool)
	// Decisions are what rules do with some values whatever the prices say.
	Decisions Decisions
	// Explain keeps a Record for every decision, also the declined ones.
	Explain bool
	// Control says which passes are left out, printed, timed and verified; nil
	// asks for nothing.
	Control *pass.Control
}

// Profile holds the integer constants of the cost decisions. They are facts of
// a target, checked in, never measured at run time.
type Profile struct {
	// StageCap is the largest light value, in elements, that a block may
	// compute for itself before its loops.
	StageCap int64
	// StageWork is the largest work, in scalar operations, of such a value.
	StageWork int64
	// StageOps is how many operations for each point it may take in any case: the
	// threads of a block share the points, and a row that is normalised and rounded
	// to two digits takes some 20 a point, which is less than a launch even at
	// StageCap points.
	StageOps int64
	// StageReads is how many elements of memory it may read, 0 for any number: every
	// block reads them again, all at the same lines of L2.
	StageReads int64
	// TileCap is the largest tile, in elements, of a tile epilogue.
	TileCap int64
	// TileReuse is how often a weight may be used (tokens of a prompt) for a
	// tile epilogue to be worth it; 0 is no limit. Past it the product is a
	// matrix product, whose register tiles want rows and tokens as plain store
	// ranges, and one more pass over its result costs next to nothing.
	TileReuse int64
	// MinBlocks is the least number of tiles a weight-reading value must keep
	// when one tile becomes one block's work.
	MinBlocks int64
	// InlineOps is the operation count up to which a pointwise value is always
	// recomputed in its readers.
	InlineOps int64
	// RepeatOps is the same for a value that would be recomputed for every
	// output row and could be staged before the rows instead.
	RepeatOps int64
	// RepeatCap is the largest size, in elements, of a value with operands that
	// is recomputed for every output row: what a block can keep once computed.
	RepeatCap int64
	// BodyOps is the largest number of operations of a kernel that fusion of
	// pointwise values makes. A hundred hide any memory; chains of thousands
	// would make compiling quadratic and gain nothing.
	BodyOps int64
	// TableOps is the number of operations (all readers and points together)
	// above which a value that depends on no buffer is stored once instead of
	// being recomputed: sine tables, say.
	TableOps int64
	// RereadCap is the longest row of stored scores that a softmax reads twice,
	// for the maximum and for the sum, instead of once in a tuple; 0 never does.
	// Lanes of a CPU do not help a tuple: 2048 rows of 1024 take 18 ms on one Zen
	// 5 core, and 1.3 read twice, from cache.
	RereadCap int64
	// StoredScores is the largest number of scores of an attention that are stored between
	// its two products; 0: none are. One Zen 4 core, 8 heads of 512 queries, 512 keys of 160: 14.6 ms, 24.9 with a
	// softmax as they come; of 8 heads, 1 and 2048 of 64: 95 us, 149. Queries that are lanes store none (LanesHoldQueries):
	// 16 heads of 512, 512 keys of 64, 13.9 and 13.0, causal ones 8 of 1024 30.0 and 13.4 (docs/bench/attention-zen4.txt). A GPU with
	// matrix instructions stores those of queries that no warp holds: H100, 8 heads of 512 queries, 512 keys of 160
	// 56 us, 1,284 as they come, 4 of 1,024 of 256 120 and 445 (docs/bench/library-h100.txt).
	StoredScores int64
	// LaneOutputs is how many elements a result may have so that a CPU whose lanes are queries stores no scores; 0:
	// always. 32 registers hold the scores of 16 points, and of more elements the products that store them are the faster
	// ones. With 16 (one Zen 4 core as x86-64-v3) 16 heads of 512, 512 keys of 64 take 14.2 ms stored, 23.0 as they come.
	LaneOutputs int64
	// Parallel is the number of independent points (one block or warp each)
	// that keeps the target busy.
	Parallel int64
	// GridSplits is the largest number of chunks of a split reduce; 0 or 1 never
	// splits. More make the combination the longer half.
	GridSplits int64
	// SumPiece is the longest sum over columns side by side that stays whole; 0 is
	// no limit. A panel of 2048 x 64 f32 is half of a core's 1 MB: 4096 x 4096 x
	// 4096 on one Zen 5 core 172 GFLOP/s whole, 210 in two pieces.
	SumPiece int64
	// PanelRows is how many rows must read a panel: fewer are a register tile or
	// two, which read the matrix itself.
	PanelRows int64
	// GridPiece is the number of elements of a chunk of which there may be more than GridSplits: a
	// block takes longer for it than the combination for one more part. 16 blocks read 64 MB at
	// half of an H200's bandwidth; rows of 128 elements of 2,048 positions in 16 and 32 chunks, Qwen3
	// 0.6B and 1.7B: 1,521 and 1,663, 1,229 and 1,270 tokens a second (docs/bench/h200-depth.txt).
	GridPiece int64
	// GridChunk is the least number of points of a chunk.
	GridChunk int64
	// RowLanes is how many points a row must have at least, so that the threads that
	// fold the row can share them; the last of their turns may be short.
	RowLanes int64
	// LaunchEdge is how many scalar operations of one block fit in the time
	// from one launch to the next that needs it. On an H200 attention over 1,072
	// rows of 64 takes 60 us of a step less in parts, over 560 the same.
	LaunchEdge int64
	// Launch is how many scalar operations a worker does in the time of a launch.
	Launch int64
	// Workers is how many work units run at a time.
	Workers int64
	// Lanes is how many operations of neighbours an instruction does; 1 where threads share
	// them, whatever they read.
	Lanes int64
	// SharedStages says that the units of a block share what depends on some of
	// their loops only: threads of a GPU do, workers of a CPU do not.
	SharedStages bool
	// OneStream says that a worker reads weights as one stream, which it follows from the second or third
	// line on: pieces of several matrices in turn are none. Blocks of a GPU read many at a time.
	OneStream bool
	// IntegerSums limits group-contractions to products with integers, and has it write
	// their offsets as sums of their own: where lanes run along k, only a dot of integers
	// gains by groups, and one with an offset inside would fold its lanes for each.
	IntegerSums bool
	// ByteDots says that the target sums products of unsigned and signed bytes in one
	// instruction: sums of integers are then grouped for many uses of a weight, too.
	ByteDots bool
	// BytePairs says that it does so by pairs in 16 bits, which saturate: an unsigned side above 127 takes
	// three times as long, and a signed one that is not -128 gives its sign to the other.
	BytePairs bool
	// PanelReuse is how often a weight may be used before it is decoded into panels whose
	// lanes are rows (heuristic: matmulPacked). Groups fold no lanes there, so that offsets
	// stay in them, and codes are unsigned. 0: there are no panels.
	PanelReuse int64
	// FloatTiles is how many bytes of activations, stored as terms of BF16, a core's cache holds
	// for tile instructions: of sums that read no more, floats are grouped where weights are
	// decoded into panels. 0: there are no such instructions.
	FloatTiles int64
	// RecordRows is how many rows of packed weights are interleaved in records: lanes are
	// rows there, and a tile of fewer rows has none. 0: rows lie one after the other.
	RecordRows int64
	// RecordBits is the most bits a weight of packed weights whose rows are interleaved.
	RecordBits int64
	// MatrixTokens is how many uses of a weight fill a tile of matrix instructions; these
	// take weights with their offsets, so that sums of activations alone stay where they
	// are and join the product (join-offsets). 0: the target has none.
	MatrixTokens int64
	// BlockRows and BlockElements are up to how many rows of activations, of how many elements in all, each block
	// makes ready for itself, where these are more than one fold of each group. 0: only a single row.
	BlockRows, BlockElements int64
	// ScaledTokens is from how many uses of a weight on activations are scaled to be two terms of F16
	// where matrix instructions take three of BF16 (scale-terms). 0: never.
	ScaledTokens int64
	// PlaneTokens is from how many uses of a weight on the two terms of scaled activations lie in planes of their own, as
	// instructions that read shared memory take them; else both lie in one word, as threads load them. 0: never.
	PlaneTokens int64
	// Clusters is how many blocks may share the points of a softmax in one kernel, at most.
	Clusters int64
	// EarlyElems is how many elements of a buffer a block can have read before the kernel
	// before has ended: buffers that no kernel of the step writes are marked, to be read then.
	// Blocks of a cluster share them. 0: kernels start one after the other.
	EarlyElems int64
	// WeightElems is the size from which a constant-shaped buffer of several
	// rows that no kernel writes counts as a weight.
	WeightElems int64
}

// DefaultOptions is the setting of the worked examples, for targets with an integer
// dot or matrix instruction: every rule but collapse-loops, collapse-axes and cut-loops, because
// threads of a GPU take points of several loops anyway.
func DefaultOptions() Options {
	return Options{
		Off: RuleSet(nil).With(CollapseLoops, CollapseAxes, CutLoops),
		Profile: Profile{
			StageCap: 4096, StageWork: 30000, StageOps: 32, StageReads: 16384, TileCap: 256, MinBlocks: 16,
			InlineOps: 4, RepeatOps: 2, RepeatCap: 16384, BodyOps: 512, TableOps: 1 << 18, WeightElems: 1 << 12,
			Parallel: 1024, GridSplits: 16, GridPiece: 8192, GridChunk: 64, RowLanes: 128, LaunchEdge: 1 << 17, Launch: 1 << 17, Workers: 132, Lanes: 1, SharedStages: true,
		},
		Decoders: LookupDecoder,
	}
}

// CPUOptions is for CPUs. Vector lanes run along k there, so a group scale costs
// nothing inside the loop while hoisting it costs a multiply per token tile: the
// grouped form of sums (see IntegerSums) is for integer activations only. One tuple for
// mean and variance costs a division per element against a second pass over a
// row in cache, so fuse-moments is off, and halves in cache cost their conversion at
// every use. Of long reduces each core takes a part, where there are fewer points than
// cores. A launch costs less than the tests of forward-stores.
func CPUOptions() Options {
	opt := DefaultOptions()
	opt.Off = opt.Off.Without(CollapseLoops, CollapseAxes, CutLoops).With(ForwardStores, FuseMoments, StoreNarrow)
	opt.Profile.IntegerSums, opt.Profile.OneStream = true, true
	opt.Profile.StageOps, opt.Profile.StageReads = 0, 0
	opt.Profile.TileReuse, opt.Profile.PanelReuse = 4, 8
	opt.Profile.GridSplits, opt.Profile.GridPiece, opt.Profile.GridChunk = 0, 1<<30, 1<<14
	opt.Profile.SumPiece, opt.Profile.PanelRows = 2048, 16
	opt.Profile.RereadCap, opt.Profile.StoredScores = 4096, 16<<20
	opt.Profile.RowLanes = 1
	opt.Profile.Lanes = 8
	opt.Profile.Workers, opt.Profile.SharedStages = 1, false
	return opt
}
