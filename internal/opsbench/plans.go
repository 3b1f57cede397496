package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"tgc/engine"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

// printAllPlans prints those of operations; text also prints what each kernel computes.
func printAllPlans(ctx context.Context, w io.Writer, name string, list []operation, text bool) error {
	desc, err := target.Parse(name)
	if err != nil {
		return err
	}
	config, err := engine.ReadConfig()
	if err != nil {
		return err
	}
	var failed []error
	for _, o := range list {
		if err := printPlans(ctx, w, o, desc, config, text); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", o, err))
		}
	}
	return errors.Join(failed...)
}

// printPlans compiles an operation for a target, without a device, and prints what its
// launches do at once: work units and threads of each kernel, what a thread reads and
// writes, and the plan.
func printPlans(ctx context.Context, w io.Writer, o operation, desc *target.Desc, config engine.Config, text bool) error {
	g := tensor.NewGraph()
	g.Output("out", o.build(g, o.size))
	c, err := g.Compile(ctx, desc, config)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s: %d launches\n", o, len(c.Launches)); err != nil {
		return err
	}
	for i, launch := range c.Launches {
		for _, call := range launch {
			k := call.Kernel
			t := trafficOf(k.Program)
			_, err := fmt.Fprintf(w, "%4d  %d x %d threads, each %.0f accesses of %.0f bytes  %s: %s [%v]\n",
				i, k.Program.Units(), k.Program.Threads(), t.accesses, t.bytes, k.Name, k.Why, k.Plan)
			if err == nil && text {
				_, err = fmt.Fprintf(w, "      %s\n", strings.TrimSpace(schedule.KernelText(k.AST)))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// traffic is what a thread reads and writes of buffers. A loop without constant bounds
// counts once, arms of a condition both.
type traffic struct{ accesses, bytes float64 }

func trafficOf(p *program.Program) traffic {
	var t traffic
	t.block(p.Body, 1, make(map[*program.Value]int64))
	return t
}

// block counts a block that is executed so many times.
func (t *traffic) block(b *program.Block, times float64, constants map[*program.Value]int64) {
	if b == nil {
		return
	}
	for i := range b.Instrs {
		in := &b.Instrs[i]
		inner := times
		switch in.Op {
		case program.Const:
			constants[in.Result] = in.Int
		case program.For:
			inner *= tripsOf(in, constants)
		case program.Load, program.Guarded, program.Gather:
			pointer := in.Args[0]
			if in.Op == program.Guarded {
				pointer = in.Args[1]
			}
			t.access(pointer, in.Result.Type, times)
		case program.CopyAsync:
			t.access(in.Args[1], program.Vector(ir.U8, int(in.Int)), times)
		case program.Store, program.Scatter:
			t.access(in.Args[0], in.Args[len(in.Args)-1].Type, times)
		}
		t.block(in.Body, inner, constants)
		t.block(in.Else, inner, constants)
	}
}

func (t *traffic) access(pointer *program.Value, moved program.Type, times float64) {
	if pointer.Type.Space == program.GlobalSpace {
		t.accesses += times
		t.bytes += times * float64(moved.Bytes())
	}
}

// tripsOf is how often a loop runs, 1 where its bounds are no constants.
func tripsOf(loop *program.Instr, constants map[*program.Value]int64) float64 {
	var bounds [3]int64
	for i := range bounds {
		n, ok := constants[loop.Args[i]]
		if !ok {
			return 1
		}
		bounds[i] = n
	}
	return float64(max(bounds[1]-bounds[0]+bounds[2]-1, 0) / max(bounds[2], 1))
}
