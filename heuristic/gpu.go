package heuristic

import (
	"fmt"

	"tgc/ir"
	"tgc/kernel"
)

// Plans of a GPU: the same findings, mapped to threads. A row of a matvec is
// shared by a warp, whose lanes read neighbouring words.
const (
	gpuBlockRows     = 4   // MV_BLOCKSIZE
	gpuRowsPerThread = 4   // MV_ROWS_PER_THREAD
	gpuBlockThreads  = 128 // of elementwise kernels
	gpuWordWeights   = 4   // weights that a lane decodes from one word
)

// gpuMatvec: LOCAL rows of a block, WARP threads that share a row, UPCAST rows
// of a thread.
func gpuMatvec(a *analysis, weights []*operand) ([]kernel.Opt, string, Record) {
	p := a.plan()
	w := weights[0]
	threads := orDefault(a.knobs.ThreadsPerRow, a.desc.WarpSize)
	k := w.chain[len(w.chain)-1]
	if a.constant(k) {
		p.split(kernel.VECTOR, k, powerOfTwoDivisor(p.left(k), gpuWordWeights))
	}
	for j := len(w.chain) - 1; j >= 0 && threads > 1; j-- {
		if i := w.chain[j]; a.constant(i) {
			n := divisor(p.left(i), threads)
			p.split(kernel.WARP, i, n)
			threads /= n
		}
	}
	rows, block := int64(1), int64(1)
	if i := a.lastStore(w.rows); i >= 0 {
		rows = divisor(p.left(i), orDefault(a.knobs.RowsPerThread, gpuRowsPerThread))
		p.split(kernel.UPCAST, i, rows)
		block = divisor(p.left(i), orDefault(a.knobs.BlockSize, gpuBlockRows))
		p.split(kernel.LOCAL, i, block)
	}
	p.stageInvariant(w)
	p.stageCopies(a.rowsOf(weights), maxStageCopies)
	how := fmt.Sprintf("%d rows of %d threads a block, %d rows a thread", block, orDefault(a.knobs.ThreadsPerRow, a.desc.WarpSize), rows)
	why := fmt.Sprintf("%s streamed once, x %s reused; %s", a.describe(weights), size(a.partnerBytes(w)), how)
	return p.opts, why, appliedTo(w, "streams-weight", how)
}

// gpuMatmul: a tile of 4 x 4 outputs a thread, 8 x 8 threads a block.
func gpuMatmul(a *analysis, weights []*operand, w *operand) ([]kernel.Opt, string, Record) {
	p := a.plan()
	for _, i := range []int{a.lastStore(w.rows), a.lastStore(w.reuse)} {
		if i < 0 {
			continue
		}
		p.split(kernel.UPCAST, i, divisor(p.left(i), 4))
		p.split(kernel.LOCAL, i, divisor(p.left(i), 8))
	}
	why := fmt.Sprintf("%s used for %d outputs each; tile 4 x 4 a thread", a.describe(weights), a.points(w.reuse))
	return p.opts, why, appliedTo(w, "reuses-weight", "tile 4 x 4 a thread")
}

// gpuAttention: threads of a block along the privatised range.
func gpuAttention(a *analysis, tuple *ir.UOp, private []int) ([]kernel.Opt, string, Record) {
	p := a.plan()
	t := a.index[tuple.ReduceRange()]
	if i := a.lastStore(private); i >= 0 {
		p.split(kernel.LOCAL, i, divisor(p.left(i), gpuBlockThreads))
	}
	why := fmt.Sprintf("tuple reduce over up to %d points; threads along the private range", a.size(t))
	return p.opts, why, Record{Axis: a.axes[t].Name, Value: a.size(t), Applied: true, Reason: "private-range"}
}

// gpuReduce: a warp for each reduce.
func gpuReduce(a *analysis, axes []int) ([]kernel.Opt, string, Record) {
	p := a.plan()
	i := axes[len(axes)-1]
	if a.constant(i) {
		p.split(kernel.WARP, i, divisor(p.left(i), int64(a.desc.WarpSize)))
	}
	return p.opts, fmt.Sprintf("a warp for %d points", a.size(i)),
		Record{Axis: a.axes[i].Name, Value: a.size(i), Applied: true, Reason: "rows"}
}

// gpuElementwise: 16 bytes a thread.
func gpuElementwise(a *analysis, i int) ([]kernel.Opt, string, Record) {
	p := a.plan()
	p.split(kernel.VECTOR, i, powerOfTwoDivisor(p.left(i), lanesOf(a.desc)))
	p.split(kernel.LOCAL, i, divisor(p.left(i), gpuBlockThreads))
	return p.opts, fmt.Sprintf("%d points; 16 bytes a thread", a.points(a.axesOf(kernel.StoreAxis))),
		Record{Axis: a.axes[i].Name, Value: a.size(i), Applied: true, Reason: "contiguous"}
}

// orDefault is a knob's value, or the default where it is 0.
func orDefault[T ~int | ~int64](knob int, other T) int64 {
	if knob > 0 {
		return int64(knob)
	}
	return int64(other)
}
