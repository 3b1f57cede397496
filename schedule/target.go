package schedule

import (
	"tgc/packed"
	"tgc/target"
)

// matrixTokens is the number of columns of a matrix instruction (m16n8).
const matrixTokens = 8

// storedScores are 256 MB of f32.
const storedScores = 64 << 20

// laneOutputs are 128 vectors in memory beside the tile of scores in registers.
const laneOutputs = 128

// earlyElems are 32 registers of a block's 256 threads; twice as many hold a key and a value.
const earlyElems = 32 * 256

// scaledTokens is from how many uses of a weight on scaled activations pay.
const scaledTokens = 64

// planeTokens is from how many uses of a weight on warpgroups, which read planes, multiply terms faster than warps: exact prompts of
// 64 tokens of twelve models took 0.92 to 1.29 times as long with them on an H100, 1.05 on average, of 96 tokens those of six
// 0.84 to 1.03 times, 0.96 on average (docs/bench/h100-panels.txt).
const planeTokens = 96

// OptionsFor is how a target is scheduled: the options of its kind with the
// numbers of its description.
func OptionsFor(desc *target.Desc) Options {
	if desc.Kind != target.GPU {
		opt := CPUOptions()
		opt.Profile.Workers = int64(max(desc.Cost.Workers, 1))
		opt.Profile.GridSplits, opt.Profile.Parallel = opt.Profile.Workers, opt.Profile.Workers
		opt.Profile.Lanes = int64(max(desc.VectorBytes/4, 1))
		if desc.VectorBytes >= 64 {
			opt.Profile.LaneOutputs = laneOutputs
		}
		opt.Profile.Launch = int64(desc.Cost.Launch / max(desc.Cost.Op, 1))
		opt.Profile.ByteDots, opt.Profile.BytePairs = desc.ByteDots(), desc.BytePairs()
		if desc.TileDot("bf16", "bf16") != nil {
			opt.Profile.FloatTiles = int64(desc.CacheL2Bytes) / 4 * 3 // the rest is for panels and results
		}
		if desc.Records > 0 {
			opt.Profile.RecordRows, opt.Profile.RecordBits = packed.RecordRows, int64(desc.Records)
		}
		return opt
	}
	opt := DefaultOptions()
	if desc.Matrix("i8", "i8", 16, matrixTokens, 16) {
		opt.Profile.MatrixTokens, opt.Profile.StoredScores = matrixTokens, storedScores
	}
	if desc.Matrix("f16", "f16", 16, matrixTokens, 16) {
		opt.Profile.ScaledTokens = scaledTokens
		if desc.HasGroupMatrices() {
			opt.Profile.PlaneTokens = planeTokens
		}
	}
	opt.Profile.TileReuse = CPUOptions().Profile.TileReuse
	// A tile is a block's work: with fewer tiles than multiprocessors most of the
	// device would wait (a head of 128 rows: 35 us fused, 5 apart).
	opt.Profile.MinBlocks = int64(desc.Cost.Workers)
	opt.Profile.Workers = int64(desc.Cost.Workers)
	opt.Profile.BlockRows, opt.Profile.BlockElements = desc.Tuning.BlockRows, desc.Tuning.BlockElements
	if desc.StartsEarly() {
		opt.Profile.EarlyElems = earlyElems
		opt.Profile.Clusters = desc.Clusters()
	}
	return opt
}
