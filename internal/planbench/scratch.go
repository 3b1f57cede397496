package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tgc/engine"
	"tgc/heuristic"
	"tgc/ir"
	"tgc/search"
	"tgc/target"
)

// rehearsed is a line of what -scratch prints.
type rehearsed struct {
	Job     string  `json:"job"`
	Kernel  string  `json:"kernel"`
	Ratio   float64 `json:"ratio"` // what is expected of the best plan from scratch, beside the heuristic's
	Lowered int     `json:"lowered"`
	Seconds float64 `json:"seconds"`
	Plan    string  `json:"plan"`
	Usual   string  `json:"heuristic"`
}

// scratch rehearses searches from scratch of the kernels of jobs for a target, on a GPU of those that have priced
// plans, by what is expected of programs alone, with so many plans each; only of the kernel of a name, where one is given.
func (b *bench) scratch(ctx context.Context, jobs []string, on string, plans int, only string, out io.Writer) (err error) {
	if b.target, err = target.Parse(on); err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	b.visit = func(j job, k *engine.Kernel) error {
		if only != "" && k.Name != only {
			return nil
		}
		alone, err := engine.Compile(ctx, k.AST, b.target, engine.Config{})
		if err != nil {
			return err
		}
		arena := ir.NewArena()
		list, err := heuristic.Candidates(arena, arena.Import(alone.Kernels[0].AST), b.target, heuristic.Knobs{})
		if err != nil || len(list) == 0 && b.target.Kind == target.GPU {
			return err
		}
		options, start := search.DefaultOptions(), time.Now()
		options.Scratch, options.Expected, options.Seed = true, plans, b.seed
		one := search.Kernel{AST: alone.Kernels[0].AST, Desc: b.target, Plan: alone.Kernels[0].Plan}
		r, err := search.Rehearse(ctx, one, options, search.BenchOptions{Limits: search.DefaultLimits()})
		if err != nil {
			return err
		}
		return lines.Encode(rehearsed{fmt.Sprint(j), k.Name, r.Best / r.Heuristic, r.Lowered, time.Since(start).Seconds(), r.Plan, one.Plan.String()})
	}
	return b.jobs(ctx, jobs)
}
