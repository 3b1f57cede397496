package shape

import (
	"context"
	"slices"

	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/pass"
)

// What steps give and others need.
const (
	axesPlanned   = "every axis has its plan"
	storesSplit   = "ranges of stores are sub-axes"
	tileKnown     = "the sub-axes of a matrix tile are known"
	wordsCut      = "axes of PACK are cut into words"
	allSplit      = "all ranges are sub-axes with roles"
	rangesOrdered = "ranges are in order"
)

// Passes are the steps that carry a plan out, in the order in which they run.
var Passes = pass.NewTable(pass.Table[*State]{
	Stage: "kernel/shape", Rows: rows(), Orders: orders, Text: Text, Verify: Verify,
})

func rows() []pass.Row[*State] {
	return []pass.Row[*State]{
		{Info: pass.Info{Name: "read-plan", From: pass.Kernel, To: pass.Shaped, Gives: []string{axesPlanned}, Required: true,
			Doc: "Distribute the Opts of the plan over the axes of the kernel; a plan that is not legal is refused.",
			Why: "Every other step asks what the plan says about an axis."}, Run: step(readPlan)},
		{Info: shaped("inline-stages", axesPlanned, "",
			"Compute a light value where other stages read it, if nothing else does.",
			"Threads that hold the same elements share the computation, which spares an array and a barrier."), Run: onSink(inlineStages)},
		{Info: shaped("join-offsets", axesPlanned, "",
			"MMA: a sum and a constant times the sum of one of its factors become one sum of products.",
			"A sum of its own takes as many instructions as the product; a small integer with an offset is still one term."), Run: ofMatrix(onSink(joinOffsets))},
		{Info: shaped("inline-matrix-factors", axesPlanned, "",
			"MMA of a TILE: what stages hold of the factors is computed where the tile reads it. The threads are counted again.",
			"The elements of a row are then fragments, in registers."), Run: ofMatrix(inlineMatrixFactors)},
		{Info: shaped("undistribute-scales", axesPlanned, "",
			"STAGE with an amount: factors and offsets that stand outside of inner sums move into them.",
			"Decoded once and used by many tokens, a weight is best one number."), Run: onSink(undistributeScales)},
		{Info: shaped("swap-store-loops", axesPlanned, "",
			"SWAP: exchange the loops of stores.", "The later axis of a store is the inner loop: neighbours along it are computed one after the other."), Run: onSink(swapStoreLoops)},
		{Info: shaped("distribute-factors", axesPlanned, "",
			"FMA and STAGE of a store axis on a CPU: factors of rows outside of inner sums that multiply with such factors move into them.",
			"In a panel scales of blocks and groups are multiplied once for all tokens, and a loop over blocks needs no sums of its own."), Run: onSink(distributeFactors)},
		{Info: shaped("reassociate-products", axesPlanned, "",
			"STAGE or FMA: the factors of summed products are multiplied in groups that depend on the same store ranges.",
			"A group is what an array can hold and what unrolled instances share."), Run: onSink(reassociateProducts)},
		{Info: shaped("join-sums", axesPlanned, "",
			"FMA, and GROUP on a GPU or STAGE of a store axis on a CPU: two sums over the same loops that are added become one.",
			"Of scales and minima warps would combine two numbers of a row in shared memory, and a tile would keep two registers for each of its results."), Run: onSink(joinSums)},
		{Info: shaped("spread-constant-reduces", axesPlanned, "",
			"A reduce that depends on no range of which a block has several points gets axes of its own, shared by all threads of the block.",
			"Shared out as the sums of the rows are, every row of threads would compute it again."), Run: onAxes(spreadConstantReduces)},
		{Info: shaped("stage-invariants", axesPlanned, "",
			"STAGE of a reduce axis: values in its loop that depend on no store range of which a block has several points lie in an array.",
			"They are computed once for a worker or block, not once for each row."), Run: onAxes(stageInvariants)},
		{Info: required(shaped("split-stores", axesPlanned, storesSplit,
			"The ranges of stores become sub-axes with roles.",
			"Stores are split before reduces: which of their sub-axes are grid coordinates decides what may be staged for a tile of them, and where a loop may end.")), Run: step(splitStores)},
		{Info: required(shaped("find-matrix-tile", storesSplit, tileKnown,
			"MMA: find the lanes and unrolled instances of rows and columns.", "What is staged for a tile, and what a matrix instruction takes, is asked of these sub-axes.")), Run: ofMatrix(step(findMatrixTile))},
		{Info: shaped("stage-store-tiles", storesSplit, "",
			"STAGE of a store axis: values in reduces that depend on it, but on no other range within a work unit, lie in an array.",
			"Decoded weights of a tile of rows are used again by every token."), Run: onAxes(stageStoreTiles)},
		{Info: required(shaped("cut-words", axesPlanned, wordsCut,
			"PACK: cut the axis into lanes that are words of packed bytes, and the elements of a word.", "Where words begin is known of the field that is read: a plan cannot say it in amounts.")), Run: step(cutWords)},
		{Info: shaped("bound-loops", storesSplit, "",
			"Note of each reduce axis the element from which on all elements of all reduces over it are identities: the loop ends there.",
			"Of a causal mask half the keys are skipped."), Run: onAxes(boundLoops)},
		{Info: required(shaped("split-reduces", wordsCut, allSplit,
			"The ranges of reduces and stages become sub-axes with roles.", "From here on a range is a loop, lanes or threads, which is what the passes that write sums and the lowering ask.")), Run: step(splitReduces)},
		{Info: required(shaped("find-tile-elements", tileKnown, "",
			"MMA of a TILE: find the sub-axes of the elements that are columns of one sum and what the next one sums up.", "They exist only once the reduces are split.")), Run: ofMatrix(step(findTileElements))},
		{Info: shaped("join-loops", allSplit, "",
			"STAGE of a store axis on a CPU: loops of sums between which nothing is computed become one.",
			"Every loop begins and ends the sums of a whole tile."), Run: onSink(joinLoops)},
		{Info: shaped("sum-words", allSplit, "",
			"PACK: a sum over the elements of a word becomes one over bytes in place, against activations scaled the other way.",
			"One mask and one conversion serve a vector of weights, where widening bytes takes three instructions."), Run: onSink(sumWords)},
		{Info: shaped("sum-bytes-as-floats", allSplit, "",
			"MMA with both factors in shared-memory tiles: sums of products of bytes are computed as floats, as exactly.",
			"No integer is converted for each scale, and a scale and the factor of a row are one number."), Run: ofMatrix(onSink(sumBytesAsFloats))},
		{Info: shaped("collapse-sums", allSplit, "",
			"MMA: a chain of sums, each a factor times the next one, becomes one sum over all its serial sub-axes.",
			"A loop for each sum has accumulators for each: registers that decide how large a tile can be."), Run: ofMatrixOrTiles(onSink(collapseSums))},
		{Info: shaped("separate-integer-sums", allSplit, "",
			"MMA: copies of integer sums around those of the instructions become copies of each of them.",
			"An instruction then goes on with the sum of the copy before it, or takes the points of two copies at once."), Run: ofMatrix(onSink(separateIntegers))},
		{Info: shaped("fill-shared-tiles", allSplit, "",
			"MMA with STAGE: factors are read from tiles in shared memory that the threads of the block fill together.",
			"Each weight is decoded, and each activation split into terms, once for the block."), Run: ofMatrix(step(fillSharedTiles))},
		{Info: shaped("lay-out-softmax", allSplit, "",
			"MMA of a TILE: maximum and sum of the weights fold the elements that a lane has, then the lanes.",
			"A weight then never leaves the lane that has its score."), Run: ofMatrix(step(layOutSoftmax))},
		{Info: required(shaped("scatter-sums", allSplit, "",
			"SCATTER: the terms of a fold that count at one point of the axis are added to that point, in the order of the fold.",
			"One pass over the terms serves all points, where each point would look at every term.")), Run: step(scatterSums)},
		{Info: shaped("skip-unused-loops", allSplit, "",
			"A loop whose results all stand in arms of one condition runs no iteration where the condition does not hold.",
			"Both arms of a WHERE are computed."), Run: onSink(skipUnusedLoops)},
		{Info: required(shaped("order-ranges", allSplit, rangesOrdered,
			"Put the ranges in order, outer before inner, and check that each has a role.",
			"Lowering opens loops in this order.")), Run: step(orderRanges)},
	}
}

// orders are the pairs whose order matters, but for needs and gives.
var orders = []pass.Order{
	{Before: "inline-stages", After: "stage-invariants", Because: "what is computed in place is staged with what reads it"},
	{Before: "join-offsets", After: "inline-matrix-factors", Because: "the sum that is joined is read from a stage, which is inlined afterwards"},
	{Before: "undistribute-scales", After: "reassociate-products", Because: "factors are regrouped where they are multiplied at the end"},
	{Before: "distribute-factors", After: "reassociate-products", Because: "scales of blocks and of groups are one factor of a row"},
	{Before: "distribute-factors", After: "join-sums", Because: "of two sums with scales of their own outside only the outer ones are over one loop"},
	{Before: "reassociate-products", After: "join-sums", Because: "the factors of a product are regrouped where it is all that is summed"},
	{Before: "inline-matrix-factors", After: "spread-constant-reduces", Because: "stages that are gone ask for no threads: they are counted again"},
	{Before: "reassociate-products", After: "stage-store-tiles", Because: "a product is staged whose factors depend on the staged axis alone"},
	{Before: "spread-constant-reduces", After: "stage-invariants", Because: "a constant in an array would be computed by one row of threads"},
	{Before: "stage-invariants", After: "split-stores", Because: "it adds stages whose ranges are split with the reduces; sub-axes of stores would count as ranges of their own"},
	{Before: "stage-store-tiles", After: "split-reduces", Because: "it adds stages, whose ranges are split with the reduces"},
	{Before: "stage-store-tiles", After: "cut-words", Because: "the words of a packed field that is staged are cut where the stage is filled"},
	{Before: "bound-loops", After: "split-reduces", Because: "the extent of the loop that is left is the bound"},
	{Before: "sum-bytes-as-floats", After: "collapse-sums", Because: "a scale and a float sum are one product, which the collapsed chain takes apart"},
	{Before: "sum-words", After: "collapse-sums", Because: "sums over words are sums like any other"},
	{Before: "collapse-sums", After: "fill-shared-tiles", Because: "a tile holds the unrolled instances of the loop around it, which is one loop afterwards"},
	{Before: "fill-shared-tiles", After: "lay-out-softmax", Because: "tiles are of the elements in their own order"},
	{Before: "lay-out-softmax", After: "skip-unused-loops", Because: "what is used is known when all reduces are in place"},
}

// shaped describes a step from one shaped kernel to another.
func shaped(name, needs, gives, doc, why string) pass.Info {
	info := pass.Info{Name: name, From: pass.Shaped, To: pass.Shaped, Needs: []string{needs}, Doc: doc, Why: why}
	if gives != "" {
		info.Gives = []string{gives}
	}
	return info
}

func required(info pass.Info) pass.Info {
	info.Required = true
	return info
}

type run = func(ctx context.Context, st *State) error

func step(f func(st *State) error) run {
	return func(_ context.Context, st *State) error { return f(st) }
}

func onSink(f func(st *State, sink *ir.UOp) *ir.UOp) run {
	return func(_ context.Context, st *State) error {
		st.Sink = f(st, st.Sink)
		return nil
	}
}

func onAxes(f func(st *State, sink *ir.UOp, axes []Axis) (*ir.UOp, []Axis)) run {
	return func(_ context.Context, st *State) error {
		st.Sink, st.Axes = f(st, st.Sink, st.Axes)
		return nil
	}
}

// ofMatrix runs a step for plans with MMA only, of a GPU.
func ofMatrix(f run) run { return forRoles(f, plan.Matrix) }

// ofMatrixOrTiles runs a step for plans with MMA, of a CPU too.
func ofMatrixOrTiles(f run) run { return forRoles(f, plan.Matrix, plan.Tiled) }

// forRoles runs a step for plans with a sub-axis of one of some roles.
func forRoles(f run, roles ...plan.Role) run {
	return func(ctx context.Context, st *State) error {
		if !slices.ContainsFunc(roles, st.has) {
			return nil
		}
		return f(ctx, st)
	}
}
