package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tgc/engine"
	"tgc/heuristic"
	"tgc/ir"
	"tgc/target"
)

// timed are the recorded pairs of one kernel.
type timed struct {
	pair
	times map[string]float64 // by plan
}

// score prices the plans of recorded pairs with the numbers as they are now, some of
// them set, and compares with the times: of each kernel Kendall's tau, and how much
// slower the cheapest of the recorded plans is than the fastest.
func score(ctx context.Context, b *bench, file, set string) error {
	kernels, err := readPairs(file)
	if err != nil {
		return err
	}
	var taus, losses []float64
	b.visit = func(shape, mode string, batch int, k *engine.Kernel) error {
		t := kernels[kernelKey{shape, mode, batch, k.Name}]
		if t == nil {
			return nil
		}
		prices, err := b.prices(ctx, k, set)
		if err != nil {
			return err
		}
		tau, loss := compare(t.times, prices)
		if math.IsNaN(tau) {
			return fmt.Errorf("fewer than three of the %d recorded plans are candidates", len(t.times))
		}
		taus, losses = append(taus, tau), append(losses, loss)
		fmt.Printf("%5.2f %5.2f  %s %s %d %s\n", tau, loss, shape, mode, batch, k.Name)
		return nil
	}
	var jobs []string
	for key := range kernels {
		if job := fmt.Sprintf("%s %s %d", key.shape, key.mode, key.batch); !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	if b.target, err = target.Parse("ptx:sm_90"); err != nil {
		return err
	}
	if err := b.jobs(ctx, jobs); err != nil {
		return err
	}
	if len(losses) == 0 {
		return fmt.Errorf("%s: no kernel of it is compiled any more", file)
	}
	slices.Sort(losses)
	sum, logs := 0.0, 0.0
	for i := range taus {
		sum, logs = sum+taus[i], logs+math.Log(losses[i])
	}
	n := float64(len(taus))
	fmt.Printf("%d kernels: tau %.3f on average; the cheapest plan against the fastest: median %.2f, geometric mean %.3f, worst %.2f\n",
		len(taus), sum/n, losses[len(losses)/2], math.Exp(logs/n), losses[len(losses)-1])
	return nil
}

type kernelKey struct {
	shape, mode string
	batch       int
	kernel      string
}

func readPairs(file string) (map[kernelKey]*timed, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := make(map[kernelKey]*timed)
	d := json.NewDecoder(bufio.NewReader(f))
	for {
		var p pair
		if err := d.Decode(&p); err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		key := kernelKey{p.Shape, p.Mode, p.Batch, p.Kernel}
		if out[key] == nil {
			out[key] = &timed{pair: p, times: make(map[string]float64)}
		}
		out[key].times[p.Plan] = p.Time
	}
}

// prices are those of a kernel's candidates, by plan; the usual one with its doubt.
func (b *bench) prices(ctx context.Context, k *engine.Kernel, set string) (map[string]float64, error) {
	alone, err := engine.Compile(ctx, k.AST, b.target, engine.Config{})
	if err != nil {
		return nil, err
	}
	desc := *alone.Target
	if err := setNumbers(&desc, set); err != nil {
		return nil, err
	}
	arena := ir.NewArena()
	list, err := heuristic.Candidates(arena, arena.Import(alone.Kernels[0].AST), &desc, heuristic.Knobs{})
	prices := make(map[string]float64)
	for _, c := range list {
		if p, ok := prices[c.Plan.String()]; !ok || c.Price < p {
			prices[c.Plan.String()] = c.Price
		}
	}
	return prices, err
}

// setNumbers sets numbers of the target's threads: "Guard=0.5,Doubt=0.2".
func setNumbers(desc *target.Desc, set string) error {
	for _, item := range strings.FieldsFunc(set, func(r rune) bool { return r == ',' }) {
		name, text, _ := strings.Cut(item, "=")
		field := reflect.ValueOf(&desc.Threads).Elem().FieldByName(name)
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !field.IsValid() {
			return fmt.Errorf("-set %s: want NAME=NUMBER of target.Threads", item)
		}
		field.SetFloat(n)
	}
	return nil
}

// compare is Kendall's tau between times and prices of the plans that have both, and the
// time of the cheapest over the shortest; NaN for fewer than three plans.
func compare(times, prices map[string]float64) (tau, loss float64) {
	var plans []string
	for p := range times {
		if _, ok := prices[p]; ok {
			plans = append(plans, p)
		}
	}
	if len(plans) < 3 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(plans)
	agree, pairs := 0.0, 0.0
	cheapest, fastest := plans[0], times[plans[0]]
	for i, p := range plans {
		if prices[p] < prices[cheapest] {
			cheapest = p
		}
		fastest = min(fastest, times[p])
		for _, q := range plans[:i] {
			pairs++
			switch x := (times[p] - times[q]) * (prices[p] - prices[q]); {
			case x > 0:
				agree++
			case x < 0:
				agree--
			}
		}
	}
	return agree / pairs, times[cheapest] / fastest
}
