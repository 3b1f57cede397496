package interp

import (
	"context"

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

// moveTo sets the loops of a store; there is no point where one is empty.
func (e *kernelEval) moveTo(store *kernelCell, point []float64) bool {
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
