package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tgc/engine"
	"tgc/heuristic"
	"tgc/ir"
	"tgc/search"
	"tgc/search/database"
	"tgc/target"
)

// kernelTimes are the recorded plans of one kernel that are candidates now.
type kernelTimes struct {
	name  string
	plans []timedPlan
}

type timedPlan struct {
	heuristic.Candidate
	us float64 // as it was timed
}

// leastPlans is how many plans of a kernel say something about prices.
const leastPlans = 3

// score prices the plans of recorded pairs with the numbers as they are now, some of
// them set (several lists of them, with semicolons between, one after the other), or
// fitted to the times first, and compares: of each kernel Kendall's tau, and how much
// slower the cheapest of the recorded plans is than the fastest.
func score(ctx context.Context, b *bench, file, set string, steps int, only string) error {
	var err error
	if b.target, err = target.Parse("ptx:sm_90a"); err != nil {
		return err
	}
	kernels, err := b.recorded(ctx, file)
	if err != nil {
		return err
	}
	sets := strings.Split(set, ";")
	for _, set := range sets {
		numbers := *b.target
		if err := setNumbers(&numbers, set); err != nil {
			return err
		}
		if steps > 0 {
			numbers = fit(kernels, numbers, steps, only)
			for _, table := range tablesOf(&numbers) {
				fmt.Printf("%+v\n", table.Interface())
			}
		}
		if len(sets) > 1 {
			fmt.Printf("%s: ", set)
		}
		printScore(kernels, &numbers, len(sets) == 1)
	}
	return nil
}

// printScore prints what numbers are worth, and of each kernel where it is asked for.
func printScore(kernels []kernelTimes, numbers *target.Desc, each bool) {
	var taus, losses []float64
	for _, k := range kernels {
		tau, loss := k.compare(numbers)
		taus, losses = append(taus, tau), append(losses, loss)
		if each {
			fmt.Printf("%5.2f %5.2f  %s\n", tau, loss, k.name)
		}
	}
	slices.Sort(losses)
	sum, logs := 0.0, 0.0
	for i := range taus {
		sum, logs = sum+taus[i], logs+math.Log(losses[i])
	}
	n := float64(len(taus))
	fmt.Printf("%d kernels: tau %.3f on average; the cheapest plan against the fastest: median %.2f, geometric mean %.3f, worst %.2f\n",
		len(taus), sum/n, losses[len(losses)/2], math.Exp(logs/n), losses[len(losses)-1])
}

// recorded finds the plans of a file of pairs, or of a log of tgc tune, among today's candidates.
func (b *bench) recorded(ctx context.Context, file string) ([]kernelTimes, error) {
	text, isLog, err := open(file)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	if isLog {
		return b.logged(text, file)
	}
	times, err := readPairs(text, file)
	if err != nil {
		return nil, err
	}
	return b.paired(ctx, times, file)
}

// logged finds the plans of a log: its kernels are there in text.
func (b *bench) logged(text io.Reader, file string) (out []kernelTimes, err error) {
	log, err := search.ReadLog(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, k := range log {
		times := make(map[string]float64)
		for _, c := range k.Candidates {
			if c.Status == search.Measured {
				times[c.Plan] = c.Time
			}
		}
		found, err := timesOf(k, times)
		if err != nil {
			return nil, fmt.Errorf("%s: kernel %s: %w", file, k.Kernel, err)
		}
		if len(found.plans) >= leastPlans {
			out = append(out, found)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no kernel has %d timed plans that are candidates (tgc tune --priced N tries more of them)", file, leastPlans)
	}
	return out, nil
}

// timesOf finds the candidates of a logged kernel.
func timesOf(k *search.LoggedKernel, times map[string]float64) (found kernelTimes, err error) {
	desc, err := target.Parse(k.Target)
	if err != nil {
		return found, err
	}
	if laid := desc.WithPlanes(); database.BoardOf(laid) == k.Board { // a target's name does not say how weights lie
		desc = laid
	}
	arena := ir.NewArena()
	ast, err := ir.Parse(arena, k.Text)
	if err != nil {
		return found, err
	}
	return candidatesOf(strings.TrimSpace(k.Step()+" "+k.Kernel), arena, ast, desc, times)
}

// candidatesOf are the candidates of a kernel that were timed.
func candidatesOf(name string, arena *ir.Arena, ast *ir.UOp, desc *target.Desc, times map[string]float64) (kernelTimes, error) {
	found := kernelTimes{name: name}
	list, err := heuristic.Candidates(arena, ast, desc, heuristic.Knobs{})
	for _, c := range list {
		if us, ok := times[c.Plan.String()]; ok {
			found.plans = append(found.plans, timedPlan{c, us})
			delete(times, c.Plan.String())
		}
	}
	return found, err
}

// paired finds the plans of pairs: their kernels are compiled again.
func (b *bench) paired(ctx context.Context, times map[kernelKey]map[string]float64, file string) (out []kernelTimes, err error) {
	b.visit = func(j job, k *engine.Kernel) error {
		key := kernelKey{j, k.Name}
		if times[key] == nil {
			return nil
		}
		alone, err := engine.Compile(ctx, k.AST, b.target, engine.Config{})
		if err != nil {
			return err
		}
		arena := ir.NewArena()
		found, err := candidatesOf(fmt.Sprint(j, " ", k.Name), arena, arena.Import(alone.Kernels[0].AST), alone.Target, times[key])
		if err != nil {
			return err
		}
		if len(found.plans) >= leastPlans {
			out = append(out, found)
		}
		return nil
	}
	var jobs []string
	for key := range times {
		if job := key.String(); !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	if err := b.jobs(ctx, jobs); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no kernel of it is compiled any more, or none of its plans is a candidate", file)
	}
	return out, nil
}

type kernelKey struct {
	job
	kernel string
}

// opened is a file that is read, perhaps unpacked.
type opened struct {
	*bufio.Reader
	io.Closer
}

// open opens a file of pairs or a log, and says which of them it is.
func open(file string) (text *opened, isLog bool, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, false, err
	}
	text = &opened{bufio.NewReader(f), f}
	if strings.HasSuffix(file, ".gz") {
		unpacked, err := gzip.NewReader(text.Reader)
		if err != nil {
			f.Close()
			return nil, false, fmt.Errorf("%s: %w", file, err)
		}
		text.Reader = bufio.NewReader(unpacked)
	}
	const begin = `{"record":`
	first, _ := text.Peek(len(begin)) // too short: readPairs says so
	return text, string(first) == begin, nil
}

func readPairs(text io.Reader, file string) (map[kernelKey]map[string]float64, error) {
	out := make(map[kernelKey]map[string]float64)
	d := json.NewDecoder(text)
	for {
		var p pair
		if err := d.Decode(&p); err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		key := kernelKey{job{p.Shape, p.Mode, p.Batch, max(p.Tokens, 1)}, p.Kernel}
		if out[key] == nil {
			out[key] = make(map[string]float64)
		}
		out[key][p.Plan] = p.Time
	}
}

// setNumbers sets numbers of a target: "Threads.Busy=12,Tiles.Latency=300".
func setNumbers(desc *target.Desc, set string) error {
	fields := numbersOf(desc)
	for _, item := range strings.FieldsFunc(set, func(r rune) bool { return r == ',' }) {
		name, text, _ := strings.Cut(item, "=")
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || fields[name] == nil {
			return fmt.Errorf("-set %s: want NAME=NUMBER, NAME one of %s", item, strings.Join(slices.Sorted(maps.Keys(fields)), " "))
		}
		*fields[name] = n
	}
	return nil
}

// numbersOf are the numbers of a target by which plans are priced.
func numbersOf(desc *target.Desc) map[string]*float64 {
	fields := make(map[string]*float64)
	for name, table := range tablesOf(desc) {
		for i := range table.NumField() {
			fields[name+"."+table.Type().Field(i).Name] = table.Field(i).Addr().Interface().(*float64)
		}
	}
	return fields
}

// tablesOf are the tables of such numbers, by the names of their fields.
func tablesOf(desc *target.Desc) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for i, v := 0, reflect.ValueOf(desc).Elem(); i < v.NumField(); i++ {
			switch v.Field(i).Interface().(type) {
			case target.Threads, target.Tiles:
				if !yield(v.Type().Field(i).Name, v.Field(i)) {
					return
				}
			}
		}
	}
}

// compare is Kendall's tau between times and prices, and the time of the cheapest over
// the shortest.
func (k *kernelTimes) compare(desc *target.Desc) (tau, loss float64) {
	agree, pairs := 0.0, 0.0
	cheapest, fastest := 0, math.Inf(1)
	prices := make([]float64, len(k.plans))
	for i, p := range k.plans {
		prices[i] = p.Reprice(desc)
		if prices[i] < prices[cheapest] {
			cheapest = i
		}
		fastest = min(fastest, p.us)
		for j, q := range k.plans[:i] {
			pairs++
			switch x := (p.us - q.us) * (prices[i] - prices[j]); {
			case x > 0:
				agree++
			case x < 0:
				agree--
			}
		}
	}
	return agree / pairs, k.plans[cheapest].us / fastest
}
