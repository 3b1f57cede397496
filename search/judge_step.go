package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
)

// A step with other decisions has other kernels. Each that is new is tried as plans are: by itself, in
// another process, its values against the interpreter's. That together they compute the same is a
// matter of the rules, which random graphs under random decisions prove; here the step's results
// must agree as far as rounding carries at most.

// stepTolerance bounds the difference of results in norm. int8 rounds to 7 bits, layer after layer.
const stepTolerance = 1.0 / 16

// errStepWrong is wrapped by what judge finds.
var errStepWrong = errors.New("wrong values")

// judge compares a step with the one that prices and heuristics make.
func (t *tuning) judge(ctx context.Context, s *engine.Step) error {
	if err := t.judgeKernels(ctx, s); err != nil {
		return err
	}
	return t.judgeResults(ctx, s)
}

// judgeKernels tries those that are new.
func (t *tuning) judgeKernels(ctx context.Context, s *engine.Step) error {
	known := make(map[uint64]bool)
	for _, k := range partsOf(t.decided.Compiled) {
		known[ir.CanonicalHash(k.AST)] = true
	}
	for _, k := range partsOf(s.Compiled) {
		if form := ir.CanonicalHash(k.AST); !known[form] {
			known[form] = true
			if err := t.judgeKernel(ctx, k, s.Compiled.Target.Records); err != nil {
				return fmt.Errorf("kernel %s: %w", k.Name, err)
			}
		}
	}
	return nil
}

// partsOf lists kernels as they are planned.
func partsOf(c *engine.Compiled) (list []*engine.Kernel) {
	for _, k := range c.Kernels {
		if len(k.Parts) > 0 {
			list = append(list, k.Parts...)
		} else {
			list = append(list, k)
		}
	}
	return list
}

func (t *tuning) judgeKernel(ctx context.Context, k *engine.Kernel, records int) error {
	bench := t.options.Bench
	bench.Baseline, bench.Records = k.Plan.String(), records
	tester, err := t.options.Testers(ctx, k.AST, bench)
	if err != nil {
		return err
	}
	defer tester.Close()
	out, err := tester.Try(ctx, []plan.Plan{k.Plan})
	switch {
	case err != nil:
		return err
	case len(out) != 1 || out[0].Status != Measured:
		return fmt.Errorf("%w: %+v", errStepWrong, out)
	}
	return nil
}

// judgeResults runs both steps from the same contents, and leaves the buffers as they were.
func (t *tuning) judgeResults(ctx context.Context, s *engine.Step) error {
	buffers := writtenBuffers(s.Compiled)
	before, err := readAll(ctx, s, buffers)
	if err != nil {
		return err
	}
	var results [2]map[int64][]byte
	for i, step := range []*engine.Step{t.plain, s} {
		if err := step.Run(ctx, t.step.Vars); err != nil {
			return err
		}
		if results[i], err = readAll(ctx, s, buffers); err != nil {
			return err
		}
		for id, data := range before {
			if err := s.Buffer(id).Write(ctx, 0, data); err != nil {
				return err
			}
		}
	}
	for id, dtype := range buffers {
		err := agree(dtype, before[id], results[0][id], results[1][id])
		if t.options.Bench.KeepBits && !bytes.Equal(results[0][id], results[1][id]) {
			err = fmt.Errorf("%w: other bits", errStepWrong)
		}
		if err != nil {
			return fmt.Errorf("buffer %d %s: %w", id, t.step.Compiled.Names[id], err)
		}
	}
	return nil
}

// writtenBuffers are the user's that a step writes, with their types.
func writtenBuffers(c *engine.Compiled) map[int64]ir.DType {
	list := make(map[int64]ir.DType)
	for _, launch := range c.Launches {
		for _, call := range launch {
			for _, p := range writtenSlots(call.Kernel.Program) {
				if b := &c.Schedule.Buffers[call.Args[p.Slot]]; b.UserID >= 0 {
					list[b.UserID] = b.DType
				}
			}
		}
	}
	return list
}

func readAll(ctx context.Context, s *engine.Step, buffers map[int64]ir.DType) (map[int64][]byte, error) {
	all := make(map[int64][]byte)
	for id := range buffers {
		m := s.Buffer(id)
		all[id] = make([]byte, m.Size())
		if err := m.Read(ctx, 0, all[id]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// agree compares what two steps have written of a buffer: numbers that are not as before in either.
// Whole numbers that come from floats may differ where those are near a border; they are not compared.
func agree(dtype ir.DType, before, x, y []byte) error {
	if !dtype.IsFloat() || bytes.Equal(x, y) {
		return nil
	}
	difference, norm := 0.0, 0.0
	size := dtype.Size()
	for i := 0; i+size <= len(x); i += size {
		if bytes.Equal(x[i:i+size], before[i:i+size]) && bytes.Equal(y[i:i+size], before[i:i+size]) {
			continue
		}
		u, v := number(ir.DecodeTable(dtype, string(x[i:i+size]), 0)), number(ir.DecodeTable(dtype, string(y[i:i+size]), 0))
		if math.IsNaN(u) && math.IsNaN(v) {
			continue
		}
		difference, norm = difference+(u-v)*(u-v), norm+u*u
	}
	if !(math.Sqrt(difference) <= stepTolerance*math.Sqrt(norm)) {
		return fmt.Errorf("%w: results differ by %.3g of their norm, want at most %.3g", errStepWrong, math.Sqrt(difference/norm), stepTolerance)
	}
	return nil
}
