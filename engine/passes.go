package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/tools/txtar"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/pass"
	"tgc/schedule"
	"tgc/target"
)

// stage is a part of the pipeline: the rows of its tables, and what runs them.
type stage struct {
	rows   []pass.Info
	orders []pass.Order
	run    func(ctx context.Context, s *state) error
	text   textPass // runs one of the rows on a form in text
}

// stages is the pipeline in order. The tables of the stages that have a package
// of their own (schedule, kernel) are there; engine has the rows between them.
var stages = []stage{
	of(graphPasses, graphOnText),
	{schedule.Passes(), schedule.Orders(), runSchedule, scheduleOnText},
	of(kernelPasses, kernelOnText),
	{kernel.Passes(), kernel.Orders(), lowerKernels, lowerOnText},
	of(launchPasses, launchOnText),
}

// of makes a stage of a table over engine's own state.
func of(t *pass.Table[*state], text textPass) stage {
	return stage{t.Infos(), t.Orders, func(ctx context.Context, s *state) error {
		return t.Run(ctx, s, "", s.control)
	}, text}
}

// passes is the compiler's table of passes, checked as a whole when the program
// starts: forms follow from one another, what a row needs is given before it.
var passes, orders = assemble()

func assemble() (rows []pass.Info, orders []pass.Order) {
	for _, st := range stages {
		rows, orders = append(rows, st.rows...), append(orders, st.orders...)
	}
	orders = append(orders, stageOrders...)
	if err := pass.Check(rows, orders); err != nil {
		panic("engine: table of passes: " + err.Error())
	}
	return rows, orders
}

// Passes lists every pass of the compiler, from the tensor graph to programs, in
// the order in which they run.
func Passes() []pass.Info { return slices.Clone(passes) }

// Orders lists the pairs of passes whose order matters, with the reasons.
func Orders() []pass.Order { return slices.Clone(orders) }

// stageOrders are the orders between rows of different stages.
var stageOrders = []pass.Order{
	{Before: "name-kernels", After: "choose-plans", Because: "equal kernels of different layers are planned and lowered once"},
	{Before: "choose-plans", After: "merge-launches", Because: "every part of a merged launch has a plan of its own"},
}

var graphPasses = pass.NewTable(pass.Table[*state]{
	Stage: "engine", Text: graphText,
	Rows: []pass.Row[*state]{
		{Info: pass.Info{
			Name: "verify-graph", From: pass.Tensor, To: pass.Tensor, Required: true,
			Doc: "check the contract of the tensor graph",
			Why: "the graph is the user's: schedule trusts it from here on",
		}, Run: verifyGraph},
	},
})

var kernelPasses = pass.NewTable(pass.Table[*state]{
	Stage: "engine", Text: kernelsText, Verify: verifyKernels,
	Rows: []pass.Row[*state]{
		{Info: pass.Info{
			Name: "name-kernels", From: pass.Kernel, To: pass.Kernel, Required: true,
			Gives: []string{"kernels are unique"},
			Doc:   "rename ranges and parameters by first use, and keep one of equal kernels",
			Why:   "the kernels of all layers become a dozen",
		}, Run: uniqueKernels},
		{Info: pass.Info{
			Name: "choose-plans", From: pass.Kernel, To: pass.Kernel, Required: true,
			Needs: []string{"kernels are unique"}, Gives: []string{"kernels have plans"},
			Doc: "choose a plan for every kernel by package heuristic",
			Why: "a plan is a function of the kernel alone, and lowering carries it out in one substitution",
		}, Run: planKernels},
	},
})

var launchPasses = pass.NewTable(pass.Table[*state]{
	Stage: "engine", Text: programsText, Verify: verifyPrograms,
	Rows: []pass.Row[*state]{
		{Info: pass.Info{
			Name: "merge-launches", From: pass.Program, To: pass.Program,
			Doc: "make one grid of the independent kernels of a launch, on GPUs",
			Why: "a launch of one kernel can start while the one before it ends, and fills more multiprocessors",
		}, Run: mergeLaunches},
	},
})

func graphText(s *state) string { return s.out.arena.Text(s.sink) }

// kernelsText prints the kernels one after the other, each with its plan.
func kernelsText(s *state) string {
	var archive txtar.Archive
	if len(s.out.Kernels) == 0 {
		for _, launch := range s.out.Schedule.Launches {
			for _, k := range launch.Kernels {
				archive.Files = append(archive.Files, txtar.File{Name: k.Name, Data: []byte(s.out.arena.Text(k.AST))})
			}
		}
	}
	for _, k := range s.out.Kernels {
		s.out.arena.TakeOrigins(k.origins)
		text := s.out.arena.Text(k.AST)
		if len(k.Plan.Opts) > 0 {
			text = plannedText(text, k.Plan)
		}
		archive.Files = append(archive.Files, txtar.File{Name: k.Name, Data: []byte(text)})
	}
	return string(txtar.Format(&archive))
}

func programsText(s *state) string {
	var text bytes.Buffer
	for _, k := range s.out.Kernels {
		fmt.Fprintf(&text, "-- %s --\n%s", k.Name, program.PrintOrigins(k.Program))
	}
	return text.String()
}

func verifyKernels(s *state) error {
	for _, k := range s.out.Kernels {
		if err := ir.VerifyKernel(k.AST); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
	}
	return nil
}

func verifyPrograms(s *state) error {
	for _, k := range s.out.Kernels {
		verify := program.Verify
		if s.out.Target.Kind == target.GPU {
			verify = program.VerifyGPU
		}
		if err := verify(k.Program); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
	}
	return nil
}

// eachKernel runs f for every kernel. Where the user asked to stop after a row,
// each kernel stops there.
func eachKernel(ctx context.Context, s *state, f func(k *Kernel) error) error {
	stopped := error(nil)
	for _, k := range s.out.Kernels {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch err := f(k); {
		case errors.Is(err, pass.ErrStopped):
			stopped = err
		case err != nil:
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
	}
	return stopped
}
