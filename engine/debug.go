package engine

import (
	"context"
	"fmt"
	"io"
	"strings"

	"tgc/ir/program"
	"tgc/render"
	"tgc/schedule"
)

// The levels of Config.Debug. Each prints what the ones before it print, too.
const (
	debugKernels = 1 + iota
	debugPlans
	debugSchedule
	debugPrograms
	debugSource
	debugAssembly
)

// DebugLevel says what a level of Config.Debug adds to those before it.
type DebugLevel struct{ Short, Doc string }

// DebugLevels are the levels, from 1.
var DebugLevels = []DebugLevel{
	debugKernels - 1:  {"kernels and the times of passes", "kernels with their calls, grid and block; the time of every pass that ran"},
	debugPlans - 1:    {"plans", "each kernel's plan, and why the heuristic chose it"},
	debugSchedule - 1: {"schedule", "the kernels as formulas, and what the fusion rules decided, with numbers"},
	debugPrograms - 1: {"programs", "the linear program of each kernel, after all passes"},
	debugSource - 1:   {"source", "what is printed of it: LLVM IR, PTX or CUDA C"},
	debugAssembly - 1: {"machine code of GPUs (with ptxas and nvdisasm)", "the machine code of GPUs, where ptxas and nvdisasm are installed"},
}

// debugText lists the levels on a line.
func debugText() string {
	var list []string
	for i, l := range DebugLevels {
		list = append(list, fmt.Sprintf("%d %s", i+1, l.Short))
	}
	return strings.Join(list, ", ")
}

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
