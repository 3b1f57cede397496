package heuristic

import (
	"testing"

	"tgc/target"
)

// Half of a multiprocessor's registers are 64 of each of 512 threads, and what is read at once
// is held; blocks of 256 threads are two at least, whatever they hold.
func TestWholeMultiprocessors(t *testing.T) {
	k := &work{rows: 2048, points: 8192, bytes: 2048 * 8192 / 2, dot: true, uses: 1}
	for _, c := range []struct {
		threads, atOnce, rows int64
		fills                 bool
	}{{512, 64, 4, true}, {512, 32, 1, false}, {256, 64, 4, false}, {256, 256, 8, false}} {
		m := &mapped{mapping: mapping{rows: c.rows}, atOnce: c.atOnce}
		m.wanted = m.registersOf(k, 1)
		if m.fills(float64(c.threads)) != c.fills {
			t.Errorf("%d threads with %d weights of %d rows: want %v", c.threads, c.atOnce, c.rows, c.fills)
		}
	}
}

// Lanes that share the bytes of eight weights, and take one bit or nibble of each, need no three
// times the operations of a thread that takes all of them: words are shifted, not bytes.
func TestLanesShareBytes(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, dot := range []bool{false, true} {
		k := &work{rows: 2048, points: 1536, bytes: 2048 * 1536 / 2, operations: 4 * 1536, dot: dot, uses: 1, sharers: 8}
		each := func(shared int64) float64 {
			m := &mapped{mapping: mapping{rows: 1}, atOnce: 64, scaled: 1, shared: shared}
			operations, _ := m.operations(k, &desc.Threads)
			return operations
		}
		if all, one := each(8), each(1); one > 3*all || one <= all {
			t.Errorf("sums of bytes %v: %v operations, %v where one thread takes all bits", dot, one, all)
		}
	}
}

// Eight lanes read from as many lines as their places lie in: what threads take of a row besides their own run counts as well, and
// lanes of other rows read the same places. A long run counts for itself.
func TestLinesOfLanes(t *testing.T) {
	k := &work{}
	for _, c := range []struct {
		strides []laneStride
		lines   float64
	}{
		{[]laneStride{{32, 4}}, 1},           // a run of 16 bytes
		{[]laneStride{{32, 16}}, 4},          // of 64
		{[]laneStride{{2, 16}, {16, 32}}, 4}, // halves of groups
		{[]laneStride{{2, 32}, {4, 64}}, 8},  // a thread takes what shares bytes, too
		{[]laneStride{{8, 64}}, 8},
		{[]laneStride{{4, 64}}, 4}, // the others have other rows
		{[]laneStride{{1, 64}}, 1},
	} {
		if got := (&mapped{run: 4, strides: c.strides}).lines(k); got != c.lines {
			t.Errorf("lanes %v: %v lines, want %v", c.strides, got, c.lines)
		}
	}
	if got := (&mapped{run: 16, strides: []laneStride{{1, 64}}}).lines(k); got != 4 {
		t.Errorf("a run of 64 bytes: %v lines, want 4", got)
	}
}

// A permute looks up the eight values of a word, whether the thread that has the word wants all of them or half.
func TestLookupsOfSharedWords(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, dot := range []bool{false, true} {
		k := &work{rows: 2048, points: 1536, bytes: 2048 * 1536 / 2, lookups: lookups{permuted: 1536}, dot: dot, uses: 1, sharers: 2}
		each := func(shared int64) float64 {
			m := &mapped{mapping: mapping{rows: 1}, atOnce: 64, scaled: 1, shared: shared}
			operations, _ := m.operations(k, &desc.Threads)
			return operations
		}
		if whole, half := each(2), each(1); half != 2*whole {
			t.Errorf("sums of bytes %v: %v operations a weight, %v where two threads share a word", dot, whole, half)
		}
	}
}

// The rows of a tile in two turns: each use makes both of them before the next use begins, and reads
// and decodes the weights again.
func TestTurnsOfTilesReadAgain(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	cost := func(uses float64, groups int64) price {
		k := &work{rows: 28672, points: 4096, bytes: 28672 * 4096 / 2, operations: 4 * 4096, decoding: 2 * 4096, uses: uses, sums: 4, tile: 32, dot: true, sharers: 1}
		a := &analysis{desc: desc}
		m := &mapped{planner: a.plan(), mapping: mapping{rows: 1, turns: 1}, sharing: 8, groups: groups, blocks: 896, atOnce: 64, loaded: 64, iterations: 8, shared: 1, scaled: 1, apart: 1, run: 16}
		return m.estimate(k, &desc.Threads)
	}
	if one, two := cost(1, 32), cost(1, 16); two.memory > 1.01*one.memory {
		t.Errorf("one use: %.0f ns to read the weights in two turns, %.0f in one", two.memory, one.memory)
	}
	if one, two := cost(4, 32), cost(4, 16); two.memory < 2*one.memory || two.total < 1.5*one.total {
		t.Errorf("four uses: %+v in two turns, %+v in one", two, one)
	}
}

// An output layer on 132 multiprocessors, of which each has two blocks of 256 threads at once: a third block
// of each waits for one of them. Eight rows of a thread in several rounds do not fit its registers, and of a
// single round they only come later.
func TestWavesOfBlocks(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	k := &work{rows: 128256, points: 2048, bytes: 128256 * 1680, operations: 4640, uses: 1, sums: 1, tile: 1, dot: true, sharers: 4, waits: true}
	cost := func(rows, turns int64, blocks float64) price {
		a := &analysis{desc: desc}
		m := &mapped{planner: a.plan(), mapping: mapping{rows: rows, turns: turns, staged: true}, sharing: 16, groups: 16, blocks: blocks, atOnce: 64, loaded: 64, iterations: 2, shared: 4, scaled: 1, apart: 1, run: 16}
		m.wanted = m.registersOf(k, m.iterations)
		return m.estimate(k, &desc.Threads)
	}
	if two, three := cost(4, 8, 264), cost(4, 5, 396); three.total < two.total+three.serial {
		t.Errorf("%+v with two blocks of a multiprocessor, %+v with three", two, three)
	}
	if many, few := cost(2, 16, 264), cost(8, 4, 264); few.total < many.total {
		t.Errorf("%+v with two rows at once, %+v with eight", many, few)
	}
	m := &mapped{planner: (&analysis{desc: desc}).plan(), mapping: mapping{rows: 4}, atOnce: 64, loaded: 64, iterations: 1}
	if once := m.spills(k, &desc.Threads, 128, 100, 1); once > 0 {
		t.Errorf("registers of a single round do not suffice by %.2f", once)
	}
	if often := m.spills(k, &desc.Threads, 128, 100, 2); often <= 0 {
		t.Error("registers of two rounds suffice")
	}
}

// Threads that come back to the lines of more rows than a cache holds read them again: those of 1,024 rows with four threads each, not
// those of 128 with 32, nor rows that are read in one iteration, nor lines that many rows share.
func TestOpenLines(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	cost := func(open float64, sharing, groups, iterations int64) (price, float64) {
		k := &work{rows: 128256, points: 4096, bytes: 128256 * 1760, operations: 9000, uses: 1, sums: 1, tile: 1, dot: true, sharers: 1, waits: true, open: open}
		a := &analysis{desc: desc}
		m := &mapped{planner: a.plan(), mapping: mapping{rows: 8, turns: 1, staged: true}, sharing: sharing, groups: groups, blocks: 128256 / float64(8*groups), atOnce: 32, loaded: 32, iterations: iterations, shared: 1, scaled: 1, apart: 1, run: 16}
		m.wanted = m.registersOf(k, 1)
		return m.estimate(k, &desc.Threads), m.reread(k, &desc.Threads, 1)
	}
	few, again := cost(3.75, 32, 16, 4)
	if again > 0 {
		t.Errorf("128 rows have %.2f times more lines than fit", again)
	}
	if many, again := cost(3.75, 4, 128, 32); again < 4 || many.total < 1.5*few.total {
		t.Errorf("%+v with 1,024 rows, %+v with 128; %.2f times more lines than fit", many, few, again)
	}
	if _, again := cost(3.75, 4, 128, 1); again > 0 {
		t.Errorf("rows that are read at once have %.2f times more lines than fit", again)
	}
	if _, again := cost(0.5, 4, 128, 32); again > 0 {
		t.Errorf("rows of half a line have %.2f times more than fit", again)
	}
}

// What a thread holds that does not fit its registers makes a kernel longer: more rows, more activations of each use, more
// sums; and the less it fits, the longer. Of bytes that are used once nothing is said.
func TestOverflow(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	over := func(dot bool, rows, atOnce int64, uses, sums float64) (overflow, total float64) {
		k := &work{rows: 4096, points: 2048, bytes: 4096 * 2048 * 0.8, operations: 4640, decoding: 4640, uses: uses, sums: sums, tile: 1, dot: dot, sharers: 1, waits: true}
		m := &mapped{planner: (&analysis{desc: desc}).plan(), mapping: mapping{rows: rows, turns: 1, staged: true}, sharing: 32, groups: 16, blocks: 128, atOnce: atOnce, loaded: 64, iterations: 1, shared: 1, scaled: 1, apart: 1, run: 16}
		numbers := desc.Threads
		numbers.SpillFloats, numbers.SpillUses = 0, 0
		return m.overflow(k, &desc.Threads, 128), m.estimate(k, &desc.Threads).total - m.estimate(k, &numbers).total
	}
	for _, c := range []struct {
		dot          bool
		rows, atOnce int64
		uses, sums   float64
		fits         bool
	}{
		{false, 2, 32, 1, 1, true}, {false, 8, 64, 1, 1, false}, {false, 2, 128, 1, 1, false}, {false, 8, 32, 1, 8, false},
		{true, 1, 32, 4, 1, true}, {true, 4, 64, 4, 1, false}, {true, 1, 64, 8, 1, false}, {true, 2, 32, 4, 8, false},
	} {
		overflow, longer := over(c.dot, c.rows, c.atOnce, c.uses, c.sums)
		if fits := overflow == 0; fits != c.fits || (longer == 0) != c.fits {
			t.Errorf("%+v: %.2f too many, %.0f ns longer", c, overflow, longer)
		}
		if more, longest := over(c.dot, 2*c.rows, c.atOnce, c.uses, c.sums); !c.fits && (more <= overflow || longest <= longer) {
			t.Errorf("%+v: twice the rows are %.2f too many after %.2f, %.0f ns after %.0f", c, more, overflow, longest, longer)
		}
	}
	if overflow, longer := over(true, 8, 128, 1, 1); overflow == 0 || longer != 0 {
		t.Errorf("bytes used once: %.2f too many, %.0f ns longer", overflow, longer)
	}
}

// The busiest of 132 multiprocessors has two blocks of 160 and reads them at more than its share of the bandwidth.
func TestBusiestReadsMoreThanItsShare(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	k := &work{rows: 2560, points: 4096, bytes: 2560 * 4096 / 2, operations: 4096, uses: 1, sums: 1, tile: 1, dot: true, sharers: 1, waits: true}
	memory := func(blocks float64, share float64) float64 {
		a := &analysis{desc: desc, knobs: Knobs{Share: share}}
		m := &mapped{planner: a.plan(), mapping: mapping{rows: 1, turns: 1}, sharing: 32, groups: 8, blocks: blocks, atOnce: 32, loaded: 32, iterations: 4, shared: 1, scaled: 1, apart: 1, run: 16}
		return m.estimate(k, &desc.Threads).memory
	}
	all := memory(264, 1)
	if n := memory(160, 1) / all; n < 1.3 || n > 1.5 {
		t.Errorf("160 blocks are read in %.2f times the time of 264", n)
	}
	if n := memory(132, 0.5) / all; n != 2 {
		t.Errorf("half of the device reads in %.2f times the time", n)
	}
}

// Panels of three terms of each factor for 64 rows, 256 tokens and 128 points are 240 KB, which no block has: such a tile would be
// refused when it is lowered.
func TestWarpgroupPanelsFit(t *testing.T) {
	desc, err := target.ForGPU(90, true)
	if err != nil {
		t.Fatal(err)
	}
	tile := matrixTile{rows: 1, rowWarps: 4, tokens: 8, tokenWarps: 4, groups: 1, steps: 6, panels: true, group: true}
	for name, c := range map[string]struct {
		k    matrixWork
		fits bool
	}{
		"floats": {matrixWork{points: 768, matrices: 1, rowTerms: 3, tokenTerms: 3}, false},
		"halves": {matrixWork{points: 768, matrices: 1, rowTerms: 1, halves: true}, true},
		"terms":  {matrixWork{points: 768, matrices: 1, rowTerms: 1, tokenTerms: 2, stored: true}, true},
	} {
		if got := tile.fits(&c.k, desc); got != c.fits {
			t.Errorf("%s: %.0f bytes fit: %t, want %t", name, tile.set(&c.k), got, c.fits)
		}
	}
}

// Sums of integers that a loop over their points holds lie in registers beside those of floats: of 16 tiles a lane has 64 floats, and as
// many integers for each copy and digit. Sums that no loop holds are not counted here.
func TestHeldSumsFit(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tiles, warps, held int64
		matrices           float64
		fits               bool
	}{
		{16, 8, 0, 1, true},
		{16, 8, 2, 1, true},  // 192 registers
		{16, 8, 3, 1, false}, // 256
		{16, 8, 2, 2, false},
		{8, 8, 6, 1, true}, // 224
		{8, 8, 8, 1, false},
		{8, 16, 3, 1, true}, // 128, as many as each of 512 threads has
		{8, 16, 4, 1, false},
		{8, 4, 6, 1, true}, {8, 4, 8, 1, false}, // fewer threads have no more
	} {
		tile := matrixTile{rows: 2, rowWarps: 2, tokens: c.tiles / 2, tokenWarps: c.warps / 2, groups: 1, copies: 2, steps: 8, held: c.held}
		if got := tile.fits(&matrixWork{points: 4096, matrices: c.matrices}, desc); got != c.fits {
			t.Errorf("%d tiles of %.0f matrices, %d sums of integers of each, %d threads: fit %t, want %t", c.tiles, c.matrices, c.held, tile.threads(), got, c.fits)
		}
	}
}

// Panels of warpgroups are made of what lies in memory as they hold it. More points at once are for products of one panel for each
// factor; two sets of them let one be filled while the other is multiplied.
func TestWhatWarpgroupsTake(t *testing.T) {
	desc, err := target.ForGPU(90, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		k                 matrixWork
		fills, more, sets bool // of 64 rows, 128 tokens and 256 points
	}{
		"halves":           {matrixWork{halves: true}, true, true, true},
		"terms in planes":  {matrixWork{stored: true, tokenTerms: 2}, true, false, false},
		"terms in words":   {matrixWork{stored: true, words: true, tokenTerms: 2}, false, false, false},
		"terms made there": {matrixWork{tokenTerms: 3}, false, false, false},
		"doubles":          {matrixWork{plain: true, double: true}, false, false, false},
	} {
		c.k.points, c.k.matrices, c.k.rowTerms = 2048, 1, 1
		tile := matrixTile{rows: 1, rowWarps: 4, tokens: 8, tokenWarps: 2, groups: 1, steps: 8, panels: true, group: true}
		if fills, more, sets := c.k.fillsGroups(), tile.takesMore(&c.k), tile.twoSets(&c.k, desc); fills != c.fills || more != c.more || sets != c.sets {
			t.Errorf("%s: fills panels %t, takes more points %t, has two sets %t", name, fills, more, sets)
		}
	}
}

// Of parts of a grid that cost nearly the same, one whose blocks leave few multiprocessors of the part's share idle is taken; a kernel by
// itself, and a part of which such a way costs more, keeps the cheapest.
func TestFullPartsFirst(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		share  float64
		prices []float64
		want   float64
	}{{1. / 3, []float64{100, 103, 105}, 103}, {1. / 3, []float64{100, 105, 106}, 100}, {1, []float64{100, 103, 105}, 100}} {
		a := &analysis{desc: desc, knobs: Knobs{Share: c.share}}
		list := []*mapped{
			{blocks: 24, price: price{total: c.prices[0]}},
			{blocks: 96, price: price{total: c.prices[1]}},
			{blocks: 97, price: price{total: c.prices[2]}},
		}
		if got := a.fullFirst(list); got[0].price.total != c.want || len(got) != 3 {
			t.Errorf("share %.2f, prices %v: %v of %d ways is first, want %v", c.share, c.prices, got[0].price.total, len(got), c.want)
		}
	}
}

// Blocks of a part of a launch have registers of its share of the multiprocessors, if so many blocks then have what they want, else of all.
func TestRegistersOfAShare(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		share, blocks, wanted float64
		want                  int64
	}{
		{1, 256, 157, 2}, {2. / 3, 256, 157, 3}, {2. / 3, 256, 190, 2}, // 190 for each of three blocks' threads are too many
		{2. / 3, 256, heldRegisters, 0}, {1. / 2, 256, 157, 2}, {1. / 8, 16, 157, 0}, // few enough for all; four blocks have 128; one has what it wants
	} {
		m := &mapped{planner: &planner{analysis: &analysis{desc: desc, knobs: Knobs{Share: c.share}}}, sharing: 16, groups: 8, blocks: c.blocks, wanted: c.wanted}
		if got := m.blocksWithRegisters(); got != c.want {
			t.Errorf("%v of the device, %v blocks that want %v registers: %d blocks at once, want %d", c.share, c.blocks, c.wanted, got, c.want)
		}
	}
}
