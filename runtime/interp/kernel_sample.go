package interp

import (
	"context"
	"slices"

	"tgc/ir"
)

// Sampled is a value that a kernel stores.
type Sampled struct {
	Slot  int
	At    int64 // element
	Value ir.Scalar
}

// SampleKernel evaluates the stores of a kernel at some of their points and writes nothing. A
// point is a number below 1 for each loop of a store, outer before inner: the part of its
// extent that is passed.
func SampleKernel(ctx context.Context, sink *ir.UOp, args []*KernelBuffer, vars map[string]int64, opt KernelOptions, points [][]float64) (list []Sampled, err error) {
	e := newKernelEval(args, vars, opt)
	defer catchFault(&err)
	for _, store := range e.cell(sink).src {
		for _, point := range points {
			if err := ctx.Err(); err != nil {
				return list, err
			}
			if e.moveTo(store, point) {
				list = e.sample(list, store)
			}
		}
	}
	return list, nil
}

// PointsOf finds where a kernel stores some elements of a slot: points for SampleKernel, each with
// its element. Nothing that is stored is evaluated. An element that is stored twice has the last
// of its points; one that is not stored has none.
func PointsOf(ctx context.Context, sink *ir.UOp, args []*KernelBuffer, vars map[string]int64, slot int, elements map[int64]bool) (points map[int64][]float64, err error) {
	e := newKernelEval(args, vars, KernelOptions{Float64: true})
	defer catchFault(&err)
	points = make(map[int64][]float64)
	for _, store := range e.cell(sink).src {
		if store.src[0].node.Arg.(ir.ParamArg).Slot != slot {
			continue
		}
		err := e.visit(ctx, store, nil, func(point []float64) {
			if at, ok := e.offset(store.src[0], store.indices()); ok && elements[at] {
				points[at] = slices.Clone(point)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return points, nil
}

// visit goes through the points of a store, inside the first loops, which are set.
func (e *kernelEval) visit(ctx context.Context, store *kernelCell, point []float64, at func(point []float64)) error {
	ranges := store.ranges()
	if len(point) == len(ranges) {
		at(point)
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	loop := ranges[len(point)]
	n := e.eval(loop.src[0]).I
	for i := range n {
		loop.bound.set(e, i)
		if err := e.visit(ctx, store, append(point, (float64(i)+0.5)/float64(n)), at); err != nil {
			return err
		}
	}
	return nil
}

// moveTo sets the loops of a store; there is no point where one is empty.
func (e *kernelEval) moveTo(store *kernelCell, point []float64) bool {
	if len(point) == 0 {
		return len(store.ranges()) == 0
	}
	for depth, loop := range store.ranges() {
		n := e.eval(loop.src[0]).I
		if n < 1 {
			return false
		}
		loop.bound.set(e, min(int64(point[depth%len(point)]*float64(n)), n-1))
	}
	return true
}

// sample adds what a store writes at the current point.
func (e *kernelEval) sample(list []Sampled, store *kernelCell) []Sampled {
	at, ok := e.offset(store.src[0], store.indices())
	if !ok {
		return list
	}
	slot := store.src[0].node.Arg.(ir.ParamArg).Slot
	return append(list, Sampled{slot, at, e.eval(store.src[1])})
}
