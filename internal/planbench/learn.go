package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/search"
	"tgc/target"
)

// What a model is judged by: pairs whose times are apart by more than noise, and the best of a few.
const (
	learnNoise = 0.05
	learnFew   = 16
	learnLeast = 20 // candidates of a kernel that say something
)

// learn fits a model to logs of tgc tune or files of pairs, and says how well it orders the candidates of each kernel
// when it is fitted to the others. It prints the model that is fitted to all.
func (b *bench) learn(ctx context.Context, files []string, out io.Writer) error {
	names, kernels, err := b.timedKernels(ctx, files)
	if err != nil {
		return err
	}
	if len(kernels) < 2 {
		return fmt.Errorf("%d kernels with %d candidates that were measured, want 2", len(kernels), learnLeast)
	}
	var taus, losses, plain []float64
	for i, list := range kernels {
		others := slices.Delete(slices.Clone(kernels), i, i+1)
		m := search.FitModel(others)
		r := search.Ranks(list, m.Score, learnNoise, learnFew)
		byCount := search.Ranks(list, search.Features.Instructions, learnNoise, learnFew)
		taus, losses, plain = append(taus, r.Tau), append(losses, r.Loss), append(plain, byCount.Tau)
		fmt.Fprintf(os.Stderr, "%5.2f %6.1f %%  %5.2f %6.1f %%  %4d  %s\n", r.Tau, 100*r.Loss, byCount.Tau, 100*byCount.Loss, len(list), names[i])
	}
	fmt.Fprintf(os.Stderr, "%d kernels, each left out: tau %.3f (by instructions alone %.3f); the best %d lose %.1f %% at the median, %.1f %% at most\n",
		len(kernels), mean(taus), mean(plain), learnFew, 100*slices.Sorted(slices.Values(losses))[len(losses)/2], 100*slices.Max(losses))
	return json.NewEncoder(out).Encode(search.FitModel(kernels))
}

func mean(list []float64) (sum float64) {
	for _, v := range list {
		sum += v / float64(len(list))
	}
	return sum
}

// timedKernels lowers the measured candidates of files again; a kernel of several files is one for
// each: times of two runs are not compared.
func (b *bench) timedKernels(ctx context.Context, files []string) (names []string, kernels [][]search.Timed, err error) {
	add := func(name string, list []search.Timed) {
		if len(list) >= learnLeast {
			names, kernels = append(names, name), append(kernels, list)
		}
	}
	for _, file := range files {
		text, isLog, err := open(file)
		if err != nil {
			return nil, nil, err
		}
		if isLog {
			err = loggedTimes(ctx, text, add)
		} else {
			err = b.pairedTimes(ctx, text, file, add)
		}
		text.Close()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return names, kernels, nil
}

// loggedTimes reads a log of tgc tune.
func loggedTimes(ctx context.Context, text io.Reader, add func(string, []search.Timed)) error {
	log, err := search.ReadLog(text)
	if err != nil {
		return err
	}
	for _, k := range log {
		desc, err := target.Parse(k.Target)
		if err != nil {
			return err
		}
		ast, err := ir.Parse(ir.NewArena(), k.Text)
		if err != nil {
			return err
		}
		times := make(map[string]float64)
		for _, c := range k.Candidates {
			if c.Status == search.Measured {
				times[c.Plan] = c.Time
			}
		}
		list, err := timedOf(ctx, ast, desc, times)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", k.Kernel, err)
		}
		add(strings.TrimSpace(k.Step()+" "+k.Kernel), list)
	}
	return nil
}

// pairedTimes reads pairs, of each kernel at most as many as -n says.
func (b *bench) pairedTimes(ctx context.Context, text io.Reader, file string, add func(string, []search.Timed)) (err error) {
	pairs, err := readPairs(text, file)
	if err != nil {
		return err
	}
	if b.target, err = target.Parse("ptx:sm_90"); err != nil {
		return err
	}
	b.visit = func(j job, k *engine.Kernel) error {
		times := pairs[kernelKey{j, k.Name}]
		if len(times) < learnLeast {
			return nil
		}
		plans := slices.Sorted(maps.Keys(times))
		for i, plan := range plans { // those that are left are spread over all
			if i*b.most/len(plans) == (i+1)*b.most/len(plans) && len(plans) > b.most {
				delete(times, plan)
			}
		}
		alone, err := engine.Compile(ctx, k.AST, b.target, engine.Config{})
		if err != nil {
			return err
		}
		list, err := timedOf(ctx, alone.Kernels[0].AST, b.target, times)
		add(fmt.Sprint(j, " ", k.Name), list)
		return err
	}
	var jobs []string
	for key := range pairs {
		if job := key.String(); !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	return b.jobs(ctx, jobs)
}

// timedOf describes the candidates of a kernel that were timed, by their plans.
func timedOf(ctx context.Context, ast *ir.UOp, desc *target.Desc, times map[string]float64) (list []search.Timed, err error) {
	vars := search.MiddleOfSymbols(ast)
	plans := slices.Sorted(maps.Keys(times))
	made := make([]*search.Timed, len(plans))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, text := range plans {
		group.Go(func() error {
			p, err := plan.Parse(text)
			if err != nil {
				return err
			}
			arena := ir.NewArena()
			program, err := kernel.LowerWith(ctx, arena, arena.Import(ast), p, desc, engine.ProgramName, nil)
			if err != nil {
				return ctx.Err() // a plan of another version of the compiler
			}
			source, err := engine.Source(program, desc)
			made[i] = &search.Timed{Features: search.FeaturesOf(program, len(source), desc, vars), Time: times[text]}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, m := range made {
		if m != nil {
			list = append(list, *m)
		}
	}
	return list, nil
}
