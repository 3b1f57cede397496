package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/tensor"
)

// checkTolerance is how far results may be from the interpreter's, in parts of the largest of them: sums
// are in another order, and gradients of norms are small differences of them.
const checkTolerance = 2e-3

// checkAll compares operations with the interpreter, and returns how many differ.
func checkAll(ctx context.Context, w io.Writer, dev runtime.Device, config engine.Config, list []operation) (differ int, err error) {
	reference, _, err := devices.Open(ctx, "interp", devices.Options{})
	if err != nil {
		return 0, err
	}
	defer reference.Close()
	for _, o := range list {
		worst, err := check(ctx, o, dev, reference, config)
		switch {
		case err != nil:
			differ++
			fmt.Fprintf(w, "%s: %v\n", o, err)
		case !(worst <= checkTolerance):
			differ++
			fmt.Fprintf(w, "%s: differs by %.2g of the largest result\n", o, worst)
		default:
			fmt.Fprintf(w, "%s: ok, %.1g\n", o, worst)
		}
	}
	return differ, nil
}

// check is the largest difference of an operation's results from a reference, in parts of the largest result.
func check(ctx context.Context, o operation, dev, reference runtime.Device, config engine.Config) (worst float64, err error) {
	var results [2][]float64
	for i, d := range []runtime.Device{dev, reference} {
		if results[i], err = resultsOf(ctx, o, d, config); err != nil {
			return 0, err
		}
	}
	largest := 0.0
	for _, v := range results[1] {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			largest = max(largest, math.Abs(v))
		}
	}
	for i, v := range results[0] {
		want := results[1][i]
		if v == want || math.IsNaN(v) && math.IsNaN(want) {
			continue
		}
		if worst = max(worst, math.Abs(v-want)/max(largest, 1e-30)); math.IsNaN(worst) {
			return worst, nil
		}
	}
	return worst, nil
}

// resultsOf runs an operation once.
func resultsOf(ctx context.Context, o operation, dev runtime.Device, config engine.Config) ([]float64, error) {
	g := tensor.NewGraph()
	g.Output("out", o.build(g, o.size))
	f, err := tensor.Compile(ctx, g, dev, config)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for _, info := range f.Buffers() {
		if _, err := fill(ctx, f, info, o.indices()); err != nil {
			return nil, err
		}
	}
	if err := f.Run(ctx, nil); err != nil {
		return nil, err
	}
	raw, err := f.Read(ctx, "out")
	if err != nil {
		return nil, err
	}
	for _, info := range f.Buffers() {
		if info.Name == "out" {
			values := make([]float64, len(raw)/info.DType.Size())
			for i := range values {
				if v := ir.DecodeTable(info.DType, string(raw), i); info.DType.IsFloat() {
					values[i] = v.F
				} else {
					values[i] = float64(v.I)
				}
			}
			return values, nil
		}
	}
	return nil, fmt.Errorf("%s has no result", o)
}
