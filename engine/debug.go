package engine

import (
	"context"
	"io"

	"tgc/ir/program"
	"tgc/render"
	"tgc/schedule"
)

// The levels of Config.Debug. Each prints what the ones before it print, too.
const (
	debugKernels  = 1 + iota // kernels, launches and the time of every pass
	debugPlans               // plans, and why
	debugSchedule            // kernels as formulas, and the fusion rules behind them
	debugPrograms            // linear programs
	debugSource              // what the renderer prints of them
	debugAssembly            // machine code, where the target's own tools are installed
)

// explainDebug prints what Config.Debug asks for.
func (c *Compiled) explainDebug(ctx context.Context, w io.Writer, level int) error {
	out := &errorWriter{w: w}
	calls := make(map[*Kernel]int)
	for _, launch := range c.Launches {
		for _, call := range launch {
			calls[call.Kernel]++
		}
	}
	out.printf("tgc: %s: %d kernels in %d launches\n", c.Target.Name, len(c.Kernels), len(c.Launches))
	for _, k := range c.Kernels {
		out.printf("tgc:   %4d x %-40s grid %v block %v\n", calls[k], k.Name, k.Program.Grid, k.Program.Block)
	}
	for _, t := range c.Passes {
		out.printf("tgc:   %9.3f ms  %s\n", 1e3*t.Time.Seconds(), t.Name)
	}
	if level >= debugSchedule {
		out.printf("%s\n", c.Schedule)
		for _, r := range c.Schedule.Records {
			out.printf("  %s\n", r)
		}
	}
	for _, k := range c.Kernels {
		if out.err == nil {
			out.err = c.debugKernel(ctx, out, k, level)
		}
	}
	return out.err
}

func (c *Compiled) debugKernel(ctx context.Context, out *errorWriter, k *Kernel, level int) error {
	parts := k.Parts
	if len(parts) == 0 {
		parts = []*Kernel{k}
	}
	if level >= debugPlans {
		out.printf("kernel %s\n", k.Name)
		for _, part := range parts {
			out.printf("  why   %s\n  plan  %s\n", part.Why, part.Plan)
		}
	}
	if level >= debugSchedule {
		for _, part := range parts {
			out.printf("%s\n", schedule.KernelText(part.AST))
		}
	}
	if level >= debugPrograms {
		out.printf("%s\n", program.Print(k.Program))
	}
	if level < debugSource {
		return nil
	}
	renderer, err := render.For(c.Target)
	if err != nil {
		return err
	}
	source, err := renderer.Source(k.Program)
	if err != nil {
		return err
	}
	out.printf("%s\n", source)
	if level < debugAssembly || renderer.Assembly == nil {
		return nil
	}
	assembly, err := renderer.Assembly(ctx, k.Program)
	out.printf("%s\n", assembly)
	return err
}
