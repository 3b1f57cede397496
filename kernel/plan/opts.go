package plan

import (
	"fmt"
	"slices"
	"strconv"

	"tgc/ir/program"
	"tgc/target"
)

// OptKind is the kind of an Opt. Everything about a kind stands in optTable.
type OptKind uint8

// The kinds.
const (
	TC OptKind = iota
	UPCAST
	UNROLL
	LOCAL
	GROUP
	WARP
	VECTOR
	SWAP
	STAGE
	PRELOAD
	PREFETCH
	ROLL
	FMA
	PACK
	MMA
	STREAM
	TILE
	SCATTER
	AHEAD
	CACHE
	ORDER
	REFILL
	REREAD
	SPARE
	ADVANCE
	LATE
	BLOCKS
	REGS
	TRIGGER
	TURNS
	PANEL
	ROTATE
	KEEP
	UNITS
	CHUNK
	LINES
	PARTS
	CHAINS
	FILL
	LOADS
	INLINE
	CLUSTER
	CARVEOUT
	ONCE
	GRID
	WGMMA
	SUMS
	numOptKinds
)

type axisRule uint8

// What the axis of an Opt may be.
const (
	axisNone axisRule = iota
	axisAny
	axisStore
	axisElement // of a store or a stage
	axisReduce
	axisBuffer // p<slot>
)

type amountRule uint8

const (
	amountNone amountRule = iota
	amountOptional
	amountNeeded
)

// OptInfo is a row of the table of Opts.
type OptInfo struct {
	Name          string
	Axis          axisRule
	Amount        amountRule
	role          Role // of the sub-axis that the Opt splits off; NoRole: no split
	thread        Role // of that sub-axis on a GPU, where it is a thread; NoRole: role
	On            targets
	Refusal       string // why the other targets do not accept it
	Doc           string // one sentence
	Before, After string // a loop, for docs/plan.md

	// words stand for the amounts 1, 2, ..; nil: numbers do.
	words []string

	// amounts are those that a target has; nil: all within the bounds.
	amounts func(*target.Desc) []int

	// sets is the option of the program that the Opt, which has no axis, chooses. idle
	// says why an Opt has no effect with what else the plan says; nil: it always may.
	sets program.Option
	idle func(*reading) string

	// read notes the Opt in the plan of its axis or kernel, or says why the kernel
	// does not accept it. nil: the Opt splits off a sub-axis, within the limits, or is
	// noted for its buffer.
	read func(r *reading, p *AxisPlan, opt Opt) error
}

// targets says which targets accept an Opt.
type targets uint8

// Targets that accept an Opt.
const (
	OnAll targets = iota
	OnGPU
	OnCPU
	OnMatrix        // GPUs with the matrix instructions of bf16, f16 and bytes
	OnMatrixOrTiles // those, and CPUs with tile instructions
	OnLaunch        // GPUs whose kernels start before the kernel before has ended
	OnCluster       // GPUs whose blocks form clusters
	OnGroups        // GPUs whose warpgroups multiply matrices in shared memory
)

func (t targets) accept(desc *target.Desc) bool {
	switch t {
	case OnGPU:
		return desc.Kind != target.CPU
	case OnCPU:
		return desc.Kind != target.GPU
	case OnLaunch:
		return desc.StartsEarly()
	case OnCluster:
		return desc.Clusters() > 1
	case OnGroups:
		return desc.Kind == target.GPU && hasMatrices(desc) && desc.HasGroupMatrices()
	case OnMatrix:
		return desc.Kind != target.CPU && hasMatrices(desc)
	case OnMatrixOrTiles:
		return OnMatrix.accept(desc) || desc.HasTiles()
	}
	return t == OnAll
}

// Info returns the kind's row.
func (k OptKind) Info() *OptInfo { return &optTable[k] }

// On reports a target that accepts Opts of the kind.
func (k OptKind) On(desc *target.Desc) bool { return optTable[k].On.accept(desc) }

// OfBuffer reports a kind of Opts of buffers, and whether they have an amount.
func (k OptKind) OfBuffer() (ok, amount bool) {
	return optTable[k].Axis == axisBuffer, k.TakesAmount()
}

// TakesAxis reports a kind of Opts of an axis or buffer.
func (k OptKind) TakesAxis() bool { return optTable[k].Axis != axisNone }

// Sets is the option of the program that Opts of the kind choose; 0: none.
func (k OptKind) Sets() program.Option { return optTable[k].sets }

// Words stand for the amounts 1, 2, .. of Opts of the kind; nil: numbers do.
func (k OptKind) Words() []string {
	if k.Sets() != program.NoOption {
		return k.Sets().Words()
	}
	return optTable[k].words
}

// Amounts are those that a target has for Opts of the kind; nil: all within the option's bounds.
func (k OptKind) Amounts(desc *target.Desc) []int {
	if f := optTable[k].amounts; f != nil {
		return f(desc)
	}
	return nil
}

// TakesAmount reports a kind of Opts that have an amount.
func (k OptKind) TakesAmount() bool { return optTable[k].Amount != amountNone }

// String returns the kind's name in the text form.
func (k OptKind) String() string { return optTable[k].Name }

// ParseOptKind is the inverse of String.
func ParseOptKind(name string) (OptKind, bool) {
	k := slices.IndexFunc(optTable[:], func(row OptInfo) bool { return row.Name == name })
	return OptKind(max(k, 0)), k >= 0
}

// A splitting Opt takes its amount from the low end of what is left of the
// axis: r0 of 2048 with VECTOR r0 32; UNROLL r0 8 becomes 8 serial iterations
// of 8 copies of 32 lanes.
var optTable = [numOptKinds]OptInfo{
	TC: {Name: "TC", Axis: axisReduce, Amount: amountOptional, role: Lane, read: readDot,
		Doc:    "The four low elements of a sum of products of bytes are one dot instruction; on a target without one, what computes the same. Sums of other things take the four as lanes.",
		Before: "for k in 0..256: acc += i32(u8 w[k]) * i32(i8 y[k])",
		After:  "for k in 0..64: acc = dot4(acc, w[4k..], y[4k..])"},
	UPCAST: {Name: "UPCAST", Axis: axisStore, Amount: amountOptional, role: Unroll,
		Doc:    "Compute several elements of a store range in one iteration, with an accumulator each, so that what they share is loaded once.",
		Before: "for n in 0..64: for k: acc += x[k]*w[n,k]",
		After:  "for n in 0..16: for k: acc0 += x[k]*w[4n,k]; acc1 += x[k]*w[4n+1,k]; .."},
	UNROLL: {Name: "UNROLL", Axis: axisAny, Amount: amountOptional, role: Unroll,
		Doc:    "Repeat the body of a reduce (or stage) loop, so that indices become constants and copies share loads.",
		Before: "for k in 0..64: acc += f(k)",
		After:  "for k in 0..16: acc += f(4k); acc += f(4k+1); acc += f(4k+2); acc += f(4k+3)"},
	LOCAL: {Name: "LOCAL", Axis: axisElement, Amount: amountNeeded, role: Serial, thread: Local,
		Doc:    "Threads of a block share elements of a store range; of a stage's range, they fill it together, in shared memory. On a CPU: a serial loop inside the work unit.",
		Before: "for n in 0..64 (grid): store",
		After:  "for n in 0..16 (grid): for i in 0..4 (threads): store 4n+i"},
	GROUP: {Name: "GROUP", Axis: axisReduce, Amount: amountNeeded, role: Serial, thread: Group,
		Doc:    "Threads of a block share the low sub-axis of a reduce and combine through shared memory. On a CPU: a serial loop.",
		Before: "for k in 0..64: acc += f(k)",
		After:  "thread i of 4: for k in 0..16: acc += f(4k+i); combine over i"},
	WARP: {Name: "WARP", Axis: axisReduce, Amount: amountNeeded, role: Serial, thread: Warp,
		Doc:    "As GROUP within one warp, combined with shuffles. On a CPU: a serial loop.",
		Before: "for k in 0..64: acc += f(k)",
		After:  "lane i of 32: for k in 0..2: acc += f(32k+i); shuffle-combine over i"},
	CLUSTER: {Name: "CLUSTER", Axis: axisReduce, Amount: amountNeeded, role: Cluster, On: OnCluster, read: readCluster,
		Refusal: "its blocks share no memory",
		Doc:     "As GROUP among the blocks of a cluster, of which there are 2, 4 or 8: each sums up its part, and leaves it in the shared memory of the first, or of all where several sums are shared so. The grid has so many times as many blocks.",
		Before:  "for k in 0..64: acc += f(k)",
		After:   "block i of 4: for k in 0..16: acc += f(16i+k); combine over i"},
	VECTOR: {Name: "VECTOR", Axis: axisAny, Amount: amountNeeded, role: Lane,
		Doc:    "Points of the range are lanes of SIMD vectors. Of a sum, lanes are folded once at the end (re-associates: class A). Of an extent that they do not divide the last vector starts earlier.",
		Before: "for k in 0..64: acc += x[k]*w[k]",
		After:  "for k in 0..4: acc<16> += x<16>[16k]*w<16>[16k]; fold lanes"},
	SWAP: {Name: "SWAP", Axis: axisStore, Amount: amountNeeded, read: readSwap,
		Doc:    "Exchange the loop order of store axis sI and store axis number amount.",
		Before: "SWAP s0 1: for a: for b: store",
		After:  "for b: for a: store"},
	STAGE: {Name: "STAGE", Axis: axisAny, Amount: amountOptional, read: readStage,
		Doc:    "Of a reduce axis: values in its loop that depend on no store range are computed once per worker into an array. Of a store axis sI: values in reduces that depend on it but on no other store range inside the work unit are computed into an array once per tile of it (decoded weights; where lanes run along the axis mere loads too, and what packed weights are decoded to has the rows of a vector side by side); with an amount, for at most that many elements of the innermost reduces, anew in each iteration of the outer ones. Of a store axis of an MMA, or of the elements of a TILE: its factors, in the instruction's types, are read from tiles in shared memory that the threads of the block fill together.",
		Before: "for n (grid): for k: acc += (x[k]*g[k]) * w[n,k]",
		After:  "for k: y[k] = x[k]*g[k]      (prologue)\nfor n (grid): for k: acc += y[k] * w[n,k]"},
	PRELOAD: {Name: "PRELOAD", Axis: axisBuffer, Amount: amountNone, On: OnGPU,
		Refusal: "a CPU has no wait between kernels that loads could be moved ahead of",
		Doc:     "Issue the first loads of a weight buffer ahead of the grid-dependency wait, and those of rows that come later when the ones before have been used, in loops and without. Loads whose addresses the kernel before has computed come right after the wait.",
		Before:  "wait; w = load W; ..",
		After:   "w = load W; wait; .."},
	PREFETCH: {Name: "PREFETCH", Axis: axisBuffer, Amount: amountNeeded,
		Doc:    "One prefetch for each 64-byte line of a streamed buffer, amount bytes ahead of where the loop reads.",
		Before: "for b: use W[b]",
		After:  "for b: prefetch &W[b] + 8192 (+64, ..); use W[b]"},
	ONCE: {Name: "ONCE", Axis: axisBuffer, Amount: amountNone, On: OnCPU, read: readOnce,
		Refusal: "CACHE says what its caches do with loads",
		Doc:     "Lines of a buffer that a PREFETCH before asks for come to the first cache alone: each is read once, and would leave the second one for the third.",
		Before:  "for b: prefetch &W[b] + 8192; use W[b]",
		After:   "for b: prefetch &W[b] + 8192 past the second cache; use W[b]"},
	ROLL: {Name: "ROLL", Axis: axisAny, Amount: amountOptional, role: Serial, read: readRoll,
		Doc:    "Points of the range stay a serial loop (of a store range: inside the work unit); without amount all that is left.",
		Before: "for t in 0..128 (grid): store",
		After:  "for t in 0..128 (serial, in one work unit): store"},
	GRID: {Name: "GRID", Axis: axisStore, Amount: amountNeeded, role: Grid, read: readGrid,
		Doc:    "So many work units take points of a store range in turn whose extent is known only where the kernel runs, and which is a loop of one unit otherwise. A range of constant extent has what is left of it on the grid without the Opt.",
		Before: "for n in 0..length: store",
		After:  "for u in 0..64 (grid): for n in 0..ceil(length/64): store 64n+u"},
	FMA: {Name: "FMA", Axis: axisNone, read: readFMA,
		Doc:    "A product that feeds a sum is rounded once, with the sum (class A); sums may use several accumulators.",
		Before: "acc = acc + a*b",
		After:  "acc = fma(a, b, acc)"},
	PACK: {Name: "PACK", Axis: axisReduce, Amount: amountOptional, read: readPack,
		Doc:    "Along a reduce axis that reads packed bytes, lanes are 32-bit words and the four bytes of a word are copies: masks and shifts work on words, each byte is converted where it stands, times 2^8p, against activations staged times 2^-8p. Scales leave the sum over a word, minima the sums over all words that share them (class A). The Opt decides all sub-axes of the axis within a block, and of blocks that have fewer words how many lie side by side: the amount is the number of words, without it those of a register.",
		Before: "for k: acc += y[k] * (s * f(q[k] - 32))",
		After:  "for b: w = word<16>(W[b]); acc = fma(s, -32*Y4[b] + f(w & 0xff)*y0[b] + f(w & 0xff00)*y1[b] + .., acc)"},
	MMA: {Name: "MMA", Axis: axisReduce, Amount: amountOptional, role: Tiled, thread: Matrix, On: OnMatrixOrTiles, read: readMatrix,
		Refusal: refusedMatrix,
		Doc:     "A warp of a GPU sums 16 elements for 16 rows and 8 columns in matrix instructions. Two store axes give it their low sub-axes by LOCAL 8; UPCAST 2 and by UPCAST 2; LOCAL 4. With an amount, 32, a lane has eight neighbouring elements, not four. Floats are split into bf16 terms that hold all their bits, f64 (from sm_90 on, without STAGE) are taken as they are, integers of several bytes (without STAGE) into bytes, and the sums around become one loop (class A). Lanes (VECTOR) of the rows, the columns or the sum are refused there: an instruction takes each thread's own numbers. The elements of a TILE may be the columns of one sum and what the next one sums up: attention. On a CPU with tile instructions (AMX) the amount, up to 64, is how many of the lowest elements one sums, for 16 rows, which are lanes and have a STAGE, and up to 16 columns, which are copies; what it leaves in memory is multiplied with scales and added in registers.",
		Before:  "for m in 0..16: for n in 0..8: for k in 0..256: acc[m,n] += x[m,k]*y[n,k]",
		After:   "for k in 0..16: acc[16,8] = mma(x[.., 16k..], y[.., 16k..], acc)"},
	WGMMA: {Name: "WGMMA", Axis: axisNone, On: OnGroups, read: readGroups, idle: noGroups,
		Refusal: "it has no matrix instruction of a warpgroup",
		Doc:     "The matrix instructions of an MMA are those of four warps together, a warpgroup, for 64 rows and up to 256 columns. Rows begin with LOCAL 8; UPCAST 2; LOCAL 4, and columns with UPCAST 2; LOCAL 4; UPCAST, whose amount is how many times eight columns an instruction has. Both axes have a STAGE: the instruction reads its factors from tiles in shared memory itself.",
		Before:  "for n in 0..16: for k in 0..4: acc[16,8n..] = mma(x[.., 16k..], y[8n.., 16k..], acc)",
		After:   "for k in 0..4: acc[64,128] = wgmma(x[.., 16k..], y[.., 16k..], acc)"},
	STREAM: {Name: "STREAM", Axis: axisBuffer, Amount: amountNone,
		Doc:    "Store the buffer past the caches: it is larger than they are, so that nothing of it would be found there again, and lines need not be read before they are written.",
		Before: "store z[n..]",
		After:  "store z[n..] past the caches"},
	TILE: {Name: "TILE", Axis: axisReduce, Amount: amountOptional, read: readTile,
		Doc:    "What the Opts before it take of the axis is a tile of a softmax: maximum and sums of its elements are plain reduces, and the running sums are rescaled once a tile (class A). With an amount, 1, on a CPU: elements that fill no tile follow the tiles one after the other, so that nothing in a tile is masked.",
		Before: "for n: (m, l) = combine((m, l), (s[n], 1))",
		After:  "for N: m' = max_t s[T*N+t]; (m, l) = combine((m, l), (m', sum_t exp2(c*(s[T*N+t] - m'))))"},
	SCATTER: {Name: "SCATTER", Axis: axisStore, Amount: amountNone, read: readScatter,
		Doc:    "Terms of a fold that count at one point of the axis are added to that point, one after the other, in place; ROLL says which points a work unit has. On a GPU LOCAL says how the threads of a block share its points: all of them look for the terms of the block, and each adds those of its own.",
		Before: "for k: for c: z[k,c] = sum_j (k == x[j] ? y[j,c] : 0)",
		After:  "for k: for c: z[k,c] = 0\nfor j: for c: z[x[j],c] += y[j,c]"},
	AHEAD: {Name: "AHEAD", Amount: amountNeeded, On: OnGPU, sets: program.Ahead, idle: noWeightEarly,
		Refusal: refusedEarly,
		Doc:     "Registers of a thread that may wait for weights loaded early, ahead of the wait and of the next rows in loops.",
		Before:  "w0 = load W[0..16]; w1 = load W[16..32]; wait; ..",
		After:   "w0 = load W[0..16]; wait; ..; w1 = load W[16..32]"},
	CACHE: {Name: "CACHE", Axis: axisBuffer, Amount: amountNeeded, On: OnGPU, words: program.LoadPolicies(), read: readCache,
		Refusal: "loads of a CPU have no policy",
		Doc:     "What caches do with loads of a packed weight: const, past the checks for what others write; stream, so and leaving nothing in the first level; l2, past the first level; wide, as stream, and the second level fetches 256 bytes around it (from sm_80 on). Without the Opt, of weights that are loaded early: stream for loads of 16 bytes and more, const for others.",
		Before:  "w = load W",
		After:   "w = load W, leaving nothing in the first level"},
	ORDER: {Name: "ORDER", Amount: amountNeeded, On: OnLaunch, sets: program.Order, idle: unordered, Refusal: refusedLaunch,
		Doc:    "Registers of loads before the wait after which the assembler may move none of those that follow up: rows come in their order. As many as AHEAD or more: the assembler orders all.",
		Before: "w0 = load W[0..16]; w1 = load W[16..32]; wait; ..",
		After:  "w0 = load W[0..16]; fence; w1 = load W[16..32]; fence; wait; .."},
	REFILL: {Name: "REFILL", Amount: amountNeeded, On: OnGPU, sets: program.Refill, idle: noWeightEarly, Refusal: refusedEarly,
		Doc:    "Weights that find no register before the wait are loaded into those of weights that have been used, or (off) where their rows stand.",
		Before: "w0 = load W[0..16]; wait; use w0; w0 = load W[16..32]; use x; use w0",
		After:  "w0 = load W[0..16]; wait; use w0; use x; w0 = load W[16..32]; use w0"},
	REREAD: {Name: "REREAD", Amount: amountNeeded, On: OnGPU, sets: program.Reread, idle: noWeightEarly, Refusal: refusedEarly,
		Doc:    "Activations that rows share are read anew for each, or held in registers over all of them. Without the Opt, as leaves registers to weights loaded early.",
		Before: "x = load X; for n: w = load W[n]; use w, x",
		After:  "for n: w = load W[n]; x = load X; use w, x"},
	SPARE: {Name: "SPARE", Amount: amountNeeded, On: OnGPU, sets: program.Spare, idle: noWeightEarly, Refusal: refusedEarly,
		Doc:    "Registers of a thread that the kernel seems to need and the assembler does without: with more, more weights are loaded early.",
		Before: "w0 = load W[0..16]; wait; ..; w1 = load W[16..32]",
		After:  "w0 = load W[0..16]; w1 = load W[16..32]; wait; .."},
	ADVANCE: {Name: "ADVANCE", Amount: amountNeeded, On: OnGPU, sets: program.Advance, Refusal: "a CPU has no barriers",
		Doc:    "Registers of a thread that may hold loads when its block first meets at a barrier: loads of activations after it are issued before it while there are any left.",
		Before: "x = load X; ..; barrier; y = load Y; use y",
		After:  "x = load X; y = load Y; ..; barrier; use y"},
	BLOCKS: {Name: "BLOCKS", Amount: amountNeeded, On: OnGPU, sets: program.Blocks, idle: tooManyThreads, Refusal: "its workers are its cores",
		Doc:    "Blocks that fit a multiprocessor at once: the assembler gives a thread its share of the registers. Without the Opt, as many as have 512 threads, of kernels with matrix instructions 256; one at least.",
		Before: "256 registers a thread: 2 blocks of 128 threads",
		After:  "128 registers a thread: 4 blocks of 128 threads"},
	REGS: {Name: "REGS", Amount: amountNeeded, On: OnGPU, sets: program.Regs, idle: blocksSaySo, Refusal: "its compiler gives out registers",
		Doc:    "Registers of a thread, at most. Without the Opt, as for BLOCKS.",
		Before: "256 registers a thread: 2 blocks of 128 threads fit a multiprocessor",
		After:  "REGS 96: 5 blocks of 128 threads fit"},
	CARVEOUT: {Name: "CARVEOUT", Amount: amountNeeded, On: OnGPU, sets: program.Carveout, Refusal: "its caches are no memory of a program's",
		amounts: func(desc *target.Desc) []int { return desc.Carveouts },
		Doc:     "KB of a multiprocessor's first cache that are shared memory while the kernel runs; what its blocks need is set aside in any case. The rest caches loads. Kernels that divide the cache in different ways do not run side by side. Without the Opt, the driver chooses.",
		Before:  "256 KB: 100 shared by blocks, 156 of first cache",
		After:   "CARVEOUT 16: 16 shared by blocks, 240 of first cache"},
	TRIGGER: {Name: "TRIGGER", Amount: amountNeeded, On: OnLaunch, sets: program.Trigger, Refusal: refusedLaunch,
		Doc:    "Where a block lets the next kernel start, which then waits itself: first of all, after the loads before the wait, after the wait, or when it ends. All but the first leave the order of those loads to the assembler.",
		Before: "start next; w = load W; wait; ..",
		After:  "w = load W; start next; wait; .."},
	TURNS: {Name: "TURNS", Amount: amountNeeded, On: OnMatrix, sets: program.Turns, idle: noTiles, Refusal: refusedMatrix,
		Doc:    "Sets of tiles in shared memory. With two, where they fit, one is filled while matrix instructions compute with the other.",
		Before: "fill tile 0; for i: barrier; compute with tile i%2, filling tile (i+1)%2 meanwhile",
		After:  "for i: barrier; fill tile; barrier; compute with tile"},
	PANEL: {Name: "PANEL", Amount: amountNeeded, On: OnMatrix, sets: program.Panel, idle: noTiles, Refusal: refusedMatrix,
		Doc:    "Registers of a thread that hold what the next iteration's tiles in shared memory are made of.",
		Before: "x, y = load; for i: fill tiles with x, y; x, y = load for i+1; compute",
		After:  "x = load; for i: y = load; fill tiles with x, y; x = load for i+1; compute"},
	ROTATE: {Name: "ROTATE", Amount: amountNeeded, On: OnGPU, sets: program.Rotate, idle: noWeightEarly, Refusal: refusedEarly,
		Doc:    "When a loop loads the weights of its next iteration: first of all, after the last use of this one's, or in that iteration. Without the Opt, early where registers hold both and activations are read anew, else late.",
		Before: "w = load W[0]; for i: use w, x; w = load W[i+1]; use x",
		After:  "w = load W[0]; for i: v = load W[i+1]; use w, x; use x; w = v"},
	KEEP: {Name: "KEEP", Amount: amountNeeded, On: OnGPU, sets: program.Keep, idle: noWeightEarly, Refusal: refusedEarly,
		Doc:    "Registers that a loop along rows must leave over for its weights to be loaded an iteration ahead.",
		Before: "w = load W[0]; for i: sum += w*x; w = load W[i+1]",
		After:  "for i: w = load W[i]; sum += w*x"},
	UNITS: {Name: "UNITS", Amount: amountNeeded, sets: program.Units,
		Doc:    "The order of work units towards whose end loops are longer, as under a causal mask: the long ones first (on a CPU, long and short in turn), or as they are numbered.",
		Before: "start the units 7, 6, .., 0",
		After:  "start the units 0, 1, .., 7"},
	CHUNK: {Name: "CHUNK", Amount: amountNeeded, On: OnCPU, sets: program.Chunk, Refusal: "each of its blocks takes one work unit",
		Doc:    "Work units of which each worker takes a multiple: rows that share cache lines or pages stay with one worker.",
		Before: "3 workers take 7, 7 and 6 units of 20",
		After:  "CHUNK 4: they take 8, 8 and 4"},
	LINES: {Name: "LINES", Amount: amountNeeded, sets: program.Lines, idle: noPrefetch,
		Doc:    "Lines of a stream that one iteration prefetches, at most.",
		Before: "for b: prefetch &W[b] + 8192 (+64, +128, +192); use W[b]",
		After:  "for b: prefetch &W[b] + 8192 (+64); use W[b]"},
	PARTS: {Name: "PARTS", Amount: amountNeeded, On: OnGPU, sets: program.Parts, Refusal: refusedThreads,
		Doc:    "Parts of a sum that threads have left in shared memory are combined without a loop, if they are no more.",
		Before: "acc = part[0]; for i in 1..16: acc += part[i]",
		After:  "acc = part[0] + part[1] + part[2] + .."},
	CHAINS: {Name: "CHAINS", Amount: amountNeeded, On: OnCPU, sets: program.Chains, Refusal: "the parts of its loops are combined by threads",
		Doc:    "Accumulators of a maximum, minimum or product among which the copies of its loop take turns (of a product, class A).",
		Before: "for b: m = max(m, x[2b]); m = max(m, x[2b+1])",
		After:  "for b: m0 = max(m0, x[2b]); m1 = max(m1, x[2b+1])\nm = max(m0, m1)"},
	FILL: {Name: "FILL", Amount: amountNeeded, On: OnMatrix, sets: program.Fill, idle: noTiles, Refusal: refusedMatrix,
		Doc:    "Points of a tile in shared memory that a thread makes without a loop, at most.",
		Before: "for i in 0..8: tile[i] = f(i)",
		After:  "for i in 0..2: tile[4i] = f(4i); tile[4i+1] = f(4i+1); .."},
	LOADS: {Name: "LOADS", Amount: amountNeeded, On: OnGPU, sets: program.Loads, Refusal: refusedThreads,
		Doc:    "Copies of the loop in which a thread fills its share of a stage or sums up a row for it, at most: loads of so many are in flight.",
		Before: "for i in 0..8: y[i] = x[i]*g[i]",
		After:  "for i in 0..2: y[4i] = x[4i]*g[4i]; y[4i+1] = x[4i+1]*g[4i+1]; .."},
	INLINE: {Name: "INLINE", Amount: amountNeeded, On: OnGPU, sets: program.Inline, Refusal: refusedThreads,
		Doc:    "Operations of a value in a stage, up to which all that fill another stage from it compute it again.",
		Before: "stage y[i] = f(x[i]); barrier; stage z[i] = g(y[i])",
		After:  "stage z[i] = g(f(x[i]))"},
	SUMS: {Name: "SUMS", Amount: amountNeeded, On: OnCPU, sets: program.Sums, Refusal: "its assembler orders the instructions of a loop",
		Doc:    "Whether sums of different packed weights along one range share a loop. Without the Opt they do where registers hold what both need.",
		Before: "for k: g += G[k]*x[k]; u += U[k]*x[k]",
		After:  "for k: g += G[k]*x[k]\nfor k: u += U[k]*x[k]"},
	LATE: {Name: "LATE", Amount: amountNeeded, On: OnGPU, sets: program.Late, idle: noWeightEarly, Refusal: refusedEarly,
		Doc:    "Bytes of weights that a thread loads after a division, from which what follows the sums of rows comes after all rows.",
		Before: "w = load W[0]; a = sum w; z[0] = 1/a; w = load W[1]; b = sum w; z[1] = 1/b",
		After:  "w = load W[0]; a = sum w; w = load W[1]; b = sum w; z[0] = 1/a; z[1] = 1/b"},
}

// Words of Opts for weights that are loaded early.
const (
	refusedEarly   = "a CPU loads no weights ahead of a wait"
	refusedThreads = "its workers share nothing"
	refusedMatrix  = "it has no matrix instruction of a warp"
	refusedLaunch  = "its kernels do not start before the kernel before has ended"
)

// noTiles says why no loop fills tiles for matrix instructions.
func noTiles(r *reading) string {
	matrix, staged := false, false
	for i := range r.plans {
		p := &r.plans[i]
		matrix = matrix || p.Has(Matrix)
		staged = staged || p.Stage && p.Axis.Kind == StoreAxis || p.Tile > 0
	}
	if matrix && staged {
		return ""
	}
	return "no tiles in shared memory, which MMA and STAGE ask for"
}

// noGroups says why no instructions are those of warpgroups.
func noGroups(r *reading) string {
	if why := noTiles(r); why != "" {
		return why
	}
	for i := range r.plans {
		if p := &r.plans[i]; p.Axis.Kind == StoreAxis && IsMatrixSide(p.Segments) && !p.Stage {
			return "the factor of " + p.Axis.Name + " is in no tile in shared memory, which STAGE asks for"
		}
		if p := &r.plans[i]; p.Tile > 0 && p.Has(Matrix) {
			return "the elements of a TILE are multiplied by a warp"
		}
	}
	return ""
}

// unordered says why the order of loads before the wait cannot be kept.
func unordered(r *reading) string {
	if t := r.global.Program[program.Trigger]; t > 1 {
		return "permissions for the next kernel to start keep the order of loads, and TRIGGER says when it may"
	}
	return noWeightEarly(r)
}

// blocksSaySo says that blocks share all registers.
func blocksSaySo(r *reading) string {
	if r.global.Program[program.Blocks] > 0 {
		return "BLOCKS says how many registers a thread has"
	}
	return ""
}

// tooManyThreads compares the blocks that are asked for with what a multiprocessor holds.
func tooManyThreads(r *reading) string {
	const most = 2048
	if threads := Threads(r.sink, r.plans); int64(r.global.Program[program.Blocks])*threads > most {
		return fmt.Sprintf("blocks of %d threads, of which a multiprocessor holds %d", threads, most)
	}
	return ""
}

func noWeightEarly(r *reading) string {
	return r.without(PRELOAD, "no weight is loaded early, which PRELOAD asks for")
}

func noPrefetch(r *reading) string { return r.without(PREFETCH, "no PREFETCH") }

// without gives the words where no buffer has an Opt of the kind.
func (r *reading) without(kind OptKind, words string) string {
	if slices.ContainsFunc(r.global.BufferOpts(), func(opt BufferOpt) bool { return opt.Kind == kind }) {
		return ""
	}
	return words
}

// OptKinds lists every kind in the order of the table.
func OptKinds() []OptKind {
	out := make([]OptKind, numOptKinds)
	for i := range out {
		out[i] = OptKind(i)
	}
	return out
}

// WordElements is the number of elements in a word.
const WordElements = 4

// Opt is one decision of a plan. Axis names a range of the kernel (see Axes)
// or, for PREFETCH, a buffer slot as p0, p1, ..; Amount is a factor or a number
// of bytes, 0 where the Opt takes none ("all that is left").
type Opt struct {
	Kind   OptKind
	Axis   string
	Amount int64
}

// String prints an Opt as Parse reads it: kind, axis, amount.
func (o Opt) String() string {
	s := o.Kind.String()
	if o.Axis != "" {
		s += " " + o.Axis
	}
	if words := o.Kind.Words(); o.Amount > 0 && o.Amount <= int64(len(words)) {
		return s + " " + words[o.Amount-1]
	}
	if o.Amount != 0 || o.Kind == SWAP {
		s += " " + strconv.FormatInt(o.Amount, 10)
	}
	return s
}
