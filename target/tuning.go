package target

// Tuning holds the numbers of decisions that depend on a device and that no cost
// model makes yet. The zero value decides for the plain way everywhere.
type Tuning struct {
	// SumParts is the largest number of partial sums that a long sum of few results
	// is made of first; below 2 such sums are made in one pass.
	SumParts int

	// Grain, in elements, is what the extents are rounded up to that a run is free
	// to make larger; below 2 they stay as they are.
	Grain int64

	// Rows of a tile of grouped products (TileRows).
	LeastTileRows, MostTileRows int

	// GroupRows is with how many rows for each group on average grouping pays where rows are bytes, FloatGroupRows where
	// they are floats: a row that is multiplied by itself decodes its matrix for floats with more instructions.
	GroupRows, FloatGroupRows float64

	// FullTileRows is up to how many rows tiles have that groups fill on average; 0: MostTileRows.
	FullTileRows int

	// SkipRows says that a product of a tile takes as long as the tile has rows: loops over some of them
	// can end where nothing was put. Threads of a GPU have all of them at once.
	SkipRows bool

	// HalfRows is from how many rows on 8-bit activations and the packed weights beside them are multiplied as
	// bf16, which matrix instructions sum up without the scales of groups; 0: never.
	HalfRows int64
	// ExactRows is from how many rows on activations beside packed weights are multiplied faster as they are than as two digits of 8 bits
	// (docs/bench/h200-i16.txt); 0: never.
	ExactRows int64
	// BlockRows and BlockElements are up to how many rows of activations, of how many elements in all, each block of threads
	// norms and rounds for itself: a kernel that does it for all of them is a launch. 0: only a single row.
	BlockRows, BlockElements int64
	// WideRows is from how many rows on what each of them is multiplied with is converted from f16 once, into a
	// buffer: lanes are rows there, so that an instruction converts one number. 0: never. Attention of 128
	// queries, 32 heads of 64, over 512 rows, 15 layers, two Zen 5 cores: f16 14.8 ms, 8.7 converted once, f32 7.0.
	WideRows int64

	// Steps are the numbers of tokens that steps of a model are compiled for, with the time that they take, largest
	// first, the last of one token: targets on which models run have some. The first is the largest number of rows
	// of activations from which a product with the same weights gains by having more of them at once.
	Steps []Step

	// RunsAhead is the number of runs of a step that are queued before the host
	// looks at what they left; below 1 the host looks after each.
	RunsAhead int

	// ShortCaches are numbers of rows of a long cache, ascending, over which a step of one token is
	// compiled for itself, to go there while the text is short.
	ShortCaches []int

	// IdleThreads is how many threads of a multiprocessor may do nothing since kernels of a launch are merged that have blocks of
	// different widths.
	IdleThreads int

	// RepeatRuns is the number of runs of a step that one graph of the device holds
	// where the step has at least RepeatLaunches launches.
	RepeatRuns, RepeatLaunches int
}

// Step is a number of rows of activations that are fed at once, and the time that it takes beside that of others,
// in any unit.
type Step struct {
	Rows int
	Time float64
}

// Grouped products on every target are tuned as on an H200 with OLMoE in int8. A
// prompt of 512 tokens: 26,600 tokens a second with tiles of 32 rows, 25,900 with 64.
// From how many rows a group on they pay was measured on GPUs alone.
var grouped = Tuning{LeastTileRows: 8, MostTileRows: 32, GroupRows: 4, FloatGroupRows: 4}

// tuningCPU is for devices whose host is the device. Rows of a tile without a token are skipped: OLMoE's
// layers, 128 tokens, one Zen 4 core with AVX2: 243 tokens a second and 353. Sums of few results are made in
// one pass over their values; a new extent costs nothing, nor does a look at the
// results of a run. Products with more than 128 rows at once gain nothing. One Zen 5 core, LLaMA 1B's layers,
// ms of 8, 32 and 128 rows: Q4_K_M int8 6, 20, 57, exact 15, 46, 149; Q6_K int8 13, 23, 60, exact 17, 58, 162;
// 16 rows take about as long as 32:
// a step takes as long as 15 rows of a full one, and then for each of its rows.
func tuningCPU() Tuning {
	t := grouped
	t.Steps = []Step{{128, 143}, {64, 79}, {32, 47}, {8, 23}, {1, 16}}
	t.SkipRows, t.WideRows = true, 8
	return t
}

// tuningGPU: a GPU needs work for all of it, hence partial sums. Each new extent
// costs the host a call for each kernel that has it as an argument, hence the grain.
// A look at the results costs tens of microseconds:
// 1 % of LLaMA-1B's tokens on an H200 with 8 runs a look; a reader of text sees no
// bursts of 16 tokens.
//
// What the device takes from one graph to the next grows with the launches of a graph.
// Four runs a graph, against one, on an H200 with a cache of 1,024 rows: Qwen3 0.6B
// (176 launches) makes 1,583 tokens a second, not 1,531; LLaMA 3.2 1B (88) 2,235 both
// ways; GPT-2 (68) 3,640, not 3,690, because a new extent is told to all kernels of a
// graph.
//
// Over up to 256 rows attention is one kernel, over up to 1,024 where blocks form clusters; over more it is made in parts, of which a
// short text fills few, and another kernel joins them. Positions below 128 in a cache of
// 4,096 rows, int8, tokens a second: LLaMA 3.2 1B 2,250, and 2,591 in one of 128; Qwen3
// 0.6B 1,638 and 2,197; Qwen2.5 1.5B 1,085 and 1,269. Position 300, and in one of 512, 700, and in one of 1,024: LLaMA 8B
// 555 and 600, 554 and 592, LLaMA 1B 2,292 and 2,610, 2,303 and 2,393, Qwen3 0.6B 1,967 and 2,377, 1,907 and 2,178 (docs/bench/h200-steps.txt).
//
// Steps: means of six models in int8 and exact on an H200, where 512 rows take 512 (docs/bench/h200-steps.txt). Between models a step of 64
// takes 131 to 198, one of 256 289 to 373, one of 1,024 711 to 1,012. Sizes of 24, 48, 96, 192, 384 and 768 take 22 % more to 31 % less than
// the next power of two, or than two steps; each is one more to compile. 2,048 rows take 13 % more to 8 % less than twice 1,024, on the mean as long.
//
// Tiles of 32, 64 and 128 rows of groups that have 128, 64, 64 and 32 on average, H200, 512 tokens, thousands a second: 8 experts of 14,336 rows
// (Q4_K_M) exact 75, 88, 82, int8 169, 186, 201; 32 of 2,880 (MXFP4) 42, 49, 44 and 67, 82, 88; 64 of 1,024 (OLMoE) 29.5, 30.1, 24.2 and 55.3,
// 53.8, 52.4; 128 of 768 59, 57, 57 and 113, 103, 103 (docs/bench/h200-families.txt).
//
// Rows of groups by themselves and in tiles of their group, on an H200, thousands of tokens a second of 64 experts of 1,024 rows, 40 of 1,280, 32 of 2,880 and 128
// of 768: exact, 1 row a group on average 9.4 8.6, 14.7 16.4, 8.7 5.8, 17.6 19.8; 1.5 rows 7.7 11.5, 24.0 23.8, 7.3 11.1, 13.7 25.2; 2 rows 10.0 14.1, 20.8 29.8,
// 8.1 13.2, 17.3 31.6. int8, 1.5 rows 16.8 14.7, 30.8 25.1, 15.3 13.8, 35.0 36.5; 2 rows 18.9 18.8, 29.4 33.8, 20.1 22.9, 38.2 42.9; 3 rows 16.2 26.3, 37.6 49.8,
// 21.6 20.6, 32.9 52.7 (docs/bench/h200-mixtures.txt).
//
// Threads without work in merged launches, on an H200, int8, tokens a second apart and merged: OLMoE, 16 sequences, up to 217 for each
// multiprocessor, 6,790 and 7,220; attention of four sequences at 1,500 beside a norm, 496 to 621, Qwen3 4B's ten layers 4,710 and 4,130,
// Qwen3 0.6B 3,520 and 3,180 (docs/bench/h200-launches.txt).
//
// Rows that blocks make ready, on an H200, int8, tokens a second with up to 4,096, 8,192 and 16,384 elements: LLaMA 1B, three sequences, 3,963, 5,617
// and 5,667, LLaMA 8B's six layers, two, 4,206, 4,807 and 4,778, four, 7,148, 7,192 and 6,002 (docs/bench/h200-prologues.txt).
func tuningGPU() Tuning {
	t := grouped
	t.GroupRows, t.FloatGroupRows = 2, 1.5
	t.ShortCaches, t.FullTileRows = []int{256}, 64
	t.IdleThreads = 256
	t.BlockRows, t.BlockElements = 4, 8192
	t.RepeatRuns, t.RepeatLaunches = 4, 128
	t.SumParts, t.Grain, t.RunsAhead = 128, 64, 16
	t.Steps = []Step{{1024, 867}, {512, 512}, {256, 326}, {128, 237}, {64, 164}, {32, 120}, {16, 91}, {8, 76}, {1, 52}}
	return t
}

// PartsOf is the number of equal parts in which a long sum over n values is made:
// the largest divisor of n up to SumParts.
func (t *Tuning) PartsOf(n int) int {
	for parts := min(t.SumParts, n); parts > 1; parts-- {
		if n%parts == 0 {
			return parts
		}
	}
	return 1
}

// BlocksPrepare reports rows of activations, of so many elements in all, that each block of threads makes ready for itself.
func (t *Tuning) BlocksPrepare(rows, elements int64) bool {
	return rows <= t.BlockRows && elements <= t.BlockElements
}

// RoundUp is n rounded up to the grain, but no larger than most (and n itself where
// it is larger already).
func (t *Tuning) RoundUp(n, most int64) int64 {
	if t.Grain < 2 {
		return n
	}
	return max(n, min((n+t.Grain-1)/t.Grain*t.Grain, most))
}

// GraphRuns is the number of runs that a graph holds of a step with some launches.
func (t *Tuning) GraphRuns(launches int) int {
	if t.RepeatRuns < 2 || launches < t.RepeatLaunches {
		return 1
	}
	return t.RepeatRuns
}

// RowsFor is how many of a cache's rows a step of one token is compiled to visit that goes
// to the one of them at position: the fewest of ShortCaches of which the cache has many more, or all.
func (t *Tuning) RowsFor(position, rows int) int {
	for _, n := range t.ShortCaches {
		if position < n && rows >= manyCaches*n {
			return n
		}
	}
	return rows
}

// manyCaches is from how many times so many rows on a cache is long. Positions from 64 on, int8, H200, tokens
// a second over 256 and 512 rows: LLaMA 3.2 1B 2,734 and 2,494, Qwen3 1.7B 1,755 and 1,680, 0.6B 2,485 and
// 2,143 (docs/bench/h200-depth.txt).
const manyCaches = 2

// TileRows is the number of rows of a tile when rows of activations, each of which
// is multiplied with the matrix of one of the groups as bytes or as floats, are ordered by group: twice as
// many as a group has on average, so that most matrices are read once, within
// LeastTileRows and MostTileRows, and as many where that is more, up to FullTileRows. It is 0 where groups are so small that tiles would
// be nearly empty: then each row had better read its own matrix.
func (t *Tuning) TileRows(rows, groups int, bytes bool) int {
	least := t.FloatGroupRows
	if bytes {
		least = t.GroupRows
	}
	if t.LeastTileRows < 1 || float64(rows) < least*float64(groups) {
		return 0
	}
	tile := t.LeastTileRows
	for tile < t.MostTileRows && tile*groups < 2*rows {
		tile *= 2
	}
	for tile < t.FullTileRows && 2*tile*groups <= rows {
		tile *= 2
	}
	return tile
}
