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

// timedKernel is a kernel whose candidates were measured.
type timedKernel struct {
	name, model string
	list        []search.Timed
}

// learn fits a model to logs of tgc tune or files of pairs, and says how well it orders the candidates of each kernel
// when it is fitted to the others, and when it is fitted to those of other models. It prints the one that is fitted to all.
func (b *bench) learn(ctx context.Context, files []string, out io.Writer) error {
	kernels, err := b.timedKernels(ctx, files)
	if err != nil {
		return err
	}
	if len(kernels) < 2 {
		return fmt.Errorf("%d kernels with %d candidates that were measured, want 2", len(kernels), learnLeast)
	}
	ranksOf("each left out", kernels, func(x, y *timedKernel) bool { return x == y }, os.Stderr, true)
	ranksOf("each with all of its model left out", kernels, func(x, y *timedKernel) bool { return x.model == y.model }, os.Stderr, false)
	return json.NewEncoder(out).Encode(search.FitModel(others(kernels, nil)))
}

// others lists the candidates of kernels, but for some.
func others(kernels []*timedKernel, but func(k *timedKernel) bool) (list [][]search.Timed) {
	for _, k := range kernels {
		if but == nil || !but(k) {
			list = append(list, k.list)
		}
	}
	return list
}

// ranksOf says how well models order the candidates of kernels that they have not seen, nor others that are the same.
func ranksOf(what string, kernels []*timedKernel, same func(x, y *timedKernel) bool, out io.Writer, each bool) {
	var taus, losses, plain []float64
	var fitted *timedKernel // to which the model is not
	var m *search.Model
	for _, k := range kernels {
		if fitted == nil || !same(fitted, k) {
			rest := others(kernels, func(x *timedKernel) bool { return same(x, k) })
			if len(rest) == 0 {
				fmt.Fprintf(out, "%s: one model only\n", what)
				return
			}
			fitted, m = k, search.FitModel(rest)
		}
		r := search.Ranks(k.list, m.Score, learnNoise, learnFew)
		byCount := search.Ranks(k.list, search.Features.Instructions, learnNoise, learnFew)
		taus, losses, plain = append(taus, r.Tau), append(losses, r.Loss), append(plain, byCount.Tau)
		if each {
			fmt.Fprintf(out, "%5.2f %6.1f %%  %5.2f %6.1f %%  %4d  %s\n", r.Tau, 100*r.Loss, byCount.Tau, 100*byCount.Loss, len(k.list), k.name)
		}
	}
	slices.Sort(losses)
	fmt.Fprintf(out, "%d kernels, %s: tau %.3f (by instructions alone %.3f); the best %d lose %.1f %% on average, %.1f %% at the median, %.1f %% at most\n",
		len(kernels), what, mean(taus), mean(plain), learnFew, 100*mean(losses), 100*losses[len(losses)/2], 100*losses[len(losses)-1])
}

func mean(list []float64) (sum float64) {
	for _, v := range list {
		sum += v / float64(len(list))
	}
	return sum
}

// timedKernels lowers the measured candidates of files again; a kernel of several files is one for
// each: times of two runs are not compared.
func (b *bench) timedKernels(ctx context.Context, files []string) (kernels []*timedKernel, err error) {
	add := func(k timedKernel) {
		if len(k.list) >= learnLeast {
			kernels = append(kernels, &k)
		}
	}
	for _, file := range files {
		text, isLog, err := open(file)
		if err != nil {
			return nil, err
		}
		if isLog {
			err = loggedTimes(ctx, text, add)
		} else {
			err = b.pairedTimes(ctx, text, file, add)
		}
		text.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return kernels, nil
}

// loggedTimes reads a log of tgc tune.
func loggedTimes(ctx context.Context, text io.Reader, add func(timedKernel)) error {
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
		shape := ""
		if len(k.Candidates) > 0 {
			shape = k.Candidates[0].Shape
		}
		add(timedKernel{strings.TrimSpace(k.Step() + " " + k.Kernel), shape, list})
	}
	return nil
}

// pairedTimes reads pairs, of each kernel at most as many as -n says.
func (b *bench) pairedTimes(ctx context.Context, text io.Reader, file string, add func(timedKernel)) (err error) {
	pairs, err := readPairs(text, file)
	if err != nil {
		return err
	}
	if b.target, err = target.Parse("ptx:sm_90"); err != nil {
		return err
	}
	b.seen = make(map[string]bool) // a kernel of an earlier file is another one
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
		add(timedKernel{fmt.Sprint(j, " ", k.Name), j.shape, list})
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
