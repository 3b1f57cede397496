// Command planbench times candidate plans of the matrix-vector products of models on
// a GPU, each kernel by itself over weights that no cache holds.
//
//	planbench -n 40 "llama3.2:1b-q6_k int8" "qwen3:0.6b-q8_0 exact 4" > pairs.jsonl
//	planbench -score pairs.jsonl -set Threads.Busy=12
//	planbench -score pairs.jsonl.gz -fit 9000
//	planbench -score tune.jsonl -fit 9000     # a log of tgc tune --log
//	planbench -learn tune.jsonl > model.json  # what orders candidates of a search
//	planbench -scratch 2048 "llama3.2:1b-q6_k int8"  # searches from scratch, without a device
//
// With -with, which may be repeated, Opts of passes that no candidate has are timed too:
// every candidate of which they change the code is timed with and without, and their times are
// compared kernel by kernel on stderr. Kernels without candidates have their usual plan:
//
//	planbench -n 12 -with "AHEAD 32" -with "CACHE p* const; ORDER 8" "llama3.2:1b-q6_k int8"
//
// With -step a candidate is timed in the step that has the kernel, beside the step as it is:
//
//	planbench -step -n 120 "llama3.2:1b-q6_k int8" "qwen3:0.6b-q8_0 exact 4" > pairs.jsonl
//
// With -score no device is needed: plans of recorded pairs, or of a log of tgc tune, are priced again and compared
// with their times.
//
// A job is a shape, a mode, a batch and the tokens of each sequence (one each by default), or a product of
// matrices such as product:512x768x1024 (products.go).
// Each line of its output is a pair of kernel and plan: the features of which the price is
// made, the price and the time in microseconds.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tgc/engine"
	"tgc/gguf"
	"tgc/heuristic"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/nn"
	"tgc/render"
	tgcruntime "tgc/runtime"
	"tgc/runtime/devices"
	"tgc/search"
	"tgc/target"
)

func main() {
	most := flag.Int("n", 40, "candidates of a kernel: the cheapest quarter of them, the others at random")
	device := flag.String("device", "cuda", "device")
	spread := flag.Float64("spread", 2.5, "candidates are priced at up to so many times the cheapest")
	seed := flag.Uint64("seed", 1, "seed of the choice of candidates, and of searches from scratch")
	inStep := flag.Bool("step", false, "time candidates in the step that has the kernel, not by itself")
	dry := flag.Bool("dry", false, "list candidates with their features and prices, compile and time none")
	recorded := flag.String("score", "", "file of pairs, or log of tgc tune, whose plans are priced again and compared with their times")
	steps := flag.Int("fit", 0, "with -score: steps by which the numbers of target.Threads and target.Tiles are fitted to the times first, and printed")
	fitted := flag.String("only", "", "with -fit: fit numbers alone whose names begin so: GroupTiles., say")
	set := flag.String("set", "", "with -score: numbers of the target to set, Threads.NAME=NUMBER,Tiles.NAME=NUMBER,..")
	settings := []plan.Plan{{}}
	flag.Func("with", "Opts with which candidates are timed once more where they change the code: \"AHEAD 32; PREFETCH p* 4096\", p* is every buffer", func(text string) error {
		with, err := plan.Parse(text)
		settings = append(settings, with)
		return err
	})
	rehearsals := flag.Int("scratch", 0, "search the priced kernels of jobs from scratch by what is expected of so many plans each, without a device, and print it beside what is expected of the heuristic's")
	on := flag.String("target", "ptx:sm_90a", "with -scratch: the target")
	only := flag.String("kernel", "", "with -scratch: the name of the one kernel")
	learned := flag.Bool("learn", false, "fit the model that orders candidates to the logs of tgc tune and files of pairs that are named (of a kernel -n pairs), print it, and how well it does on each kernel when that is left out")
	flag.Parse()
	b := &bench{settings: settings, most: *most, spread: *spread, seed: *seed, random: rand.New(rand.NewPCG(*seed, 7)), seen: make(map[string]bool), out: json.NewEncoder(os.Stdout), dry: *dry, inStep: *inStep}
	run := func() error { return b.run(context.Background(), *device, flag.Args()) }
	if *recorded != "" {
		run = func() error { return score(context.Background(), b, *recorded, *set, *steps, *fitted) }
	}
	if *learned {
		run = func() error { return b.learn(context.Background(), flag.Args(), os.Stdout) }
	}
	if *rehearsals > 0 {
		run = func() error { return b.scratch(context.Background(), flag.Args(), *on, *rehearsals, *only, os.Stdout) }
	}
	if err := run(); err != nil {
		log.Fatalf("planbench: %v", err)
	}
}

type bench struct {
	most     int
	seed     uint64
	spread   float64
	random   *rand.Rand
	seen     map[string]bool // kernels
	dev      *devices.Device
	target   *target.Desc
	out      *json.Encoder
	dry      bool
	inStep   bool                                // candidates are timed in their step
	settings []plan.Plan                         // Opts with which candidates are timed; the first has none
	visit    func(j job, k *engine.Kernel) error // instead of timing
}

// pair is a line of the output.
type pair struct {
	Shape    string             `json:"shape"`
	Mode     string             `json:"mode"`
	Batch    int                `json:"batch"`
	Tokens   int                `json:"tokens,omitempty"` // of each sequence; 0: one
	Kernel   string             `json:"kernel"`
	Plan     string             `json:"plan"`
	With     string             `json:"with,omitempty"`
	Features map[string]float64 `json:"features"`
	Price    float64            `json:"price_us"`
	Time     float64            `json:"time_us"`
	Rank     int                `json:"rank"`
	Figures  *search.Figures    `json:"code,omitempty"` // of what the assembler made of the plan
}

func (b *bench) run(ctx context.Context, device string, jobs []string) (err error) {
	if b.dev, _, err = devices.Open(ctx, device, devices.Options{}); err != nil {
		return err
	}
	b.target = b.dev.Target()
	return b.jobs(ctx, jobs)
}

// jobs goes through the kernels of jobs.
func (b *bench) jobs(ctx context.Context, jobs []string) (err error) {
	for _, job := range jobs {
		j, err := parseJob(job)
		if err != nil {
			return err
		}
		start, each := time.Now(), b.job
		if b.inStep {
			each = b.stepJob
		}
		if err := each(ctx, j); err != nil {
			return fmt.Errorf("%s: %w", job, err)
		}
		if b.visit == nil {
			log.Printf("%s: %.1f s", job, time.Since(start).Seconds())
		}
	}
	return nil
}

// job is what is compiled for its kernels.
type job struct {
	shape, mode   string
	batch, tokens int // of each sequence
}

// parseJob reads "SHAPE [MODE [BATCH [TOKENS]]]".
func parseJob(text string) (job, error) {
	j := job{mode: "exact", batch: 1, tokens: 1}
	fields := strings.Fields(text)
	for i, into := range []any{&j.shape, &j.mode, &j.batch, &j.tokens} {
		if i >= len(fields) {
			break
		}
		if _, err := fmt.Sscan(fields[i], into); err != nil {
			return j, fmt.Errorf("%s: %s: %w", text, fields[i], err)
		}
	}
	return j, nil
}

func (j job) String() string { return fmt.Sprintf("%s %s %d %d", j.shape, j.mode, j.batch, j.tokens) }

// open opens the model of a job, and says in which mode it runs.
func (j job) open(file func(shape synth.Shape) (*gguf.File, error)) (*llm.Model, nn.Numeric, error) {
	mode, err := nn.ParseNumeric(j.mode)
	if err != nil {
		return nil, mode, err
	}
	shape, err := synth.Lookup(j.shape)
	if err != nil {
		return nil, mode, err
	}
	f, err := file(shape)
	if err != nil {
		return nil, mode, err
	}
	model, err := llm.NewModel(f)
	if err != nil {
		f.Close()
	}
	return model, mode, err
}

// step is the step of a model that a job names.
func (b *bench) step(ctx context.Context, j job) (*engine.Compiled, func(), error) {
	model, mode, err := j.open(func(shape synth.Shape) (*gguf.File, error) { return synth.Outline(ctx, shape) })
	if err != nil {
		return nil, nil, err
	}
	step, err := llm.CompileStep(ctx, model, llm.Variant{Context: 1024, Tokens: j.tokens, Batch: j.batch, Numeric: mode}, 128, b.target, engine.Config{})
	if err != nil {
		model.Close()
		return nil, nil, err
	}
	return step.Compiled, func() { model.Close() }, nil
}

// job goes through the kernels of a job that no earlier one had.
func (b *bench) job(ctx context.Context, j job) error {
	compiled, free, err := b.compiled(ctx, j)
	if err != nil {
		return err
	}
	defer free()
	for _, k := range compiled.Kernels {
		parts := k.Parts
		if len(parts) == 0 {
			parts = []*engine.Kernel{k}
		}
		for _, part := range parts {
			if text := ir.Text(part.AST); !b.seen[text] {
				b.seen[text] = true
				if b.visit != nil {
					if err := b.visit(j, part); err != nil {
						return fmt.Errorf("kernel %s: %w", part.Name, err)
					}
					continue
				}
				if err := b.kernel(ctx, j, part); err != nil {
					return fmt.Errorf("kernel %s: %w", part.Name, err)
				}
			}
		}
	}
	return nil
}

// kernel times candidates of one kernel.
func (b *bench) kernel(ctx context.Context, j job, k *engine.Kernel) error {
	alone, err := engine.Compile(ctx, k.AST, b.target, engine.Config{})
	if err != nil {
		return err
	}
	arena := ir.NewArena()
	ast := arena.Import(alone.Kernels[0].AST)
	all, err := heuristic.Candidates(arena, ast, alone.Target, heuristic.Knobs{})
	if err != nil || len(all) == 0 && len(b.settings) == 1 {
		return err
	}
	if len(all) == 0 {
		all = []heuristic.Candidate{{Plan: alone.Kernels[0].Plan}}
	}
	ranks := b.choose(all)
	wanted := b.wanted(ast, alone.Target, all, ranks, pair{Shape: j.shape, Mode: j.mode, Batch: j.batch, Tokens: j.tokens, Kernel: k.Name})
	if b.dry {
		for _, l := range wanted {
			if err := b.out.Encode(l.pair); err != nil {
				return err
			}
		}
		return nil
	}
	if err := lowerAll(ctx, ast, alone.Target, "kernel", wanted); err != nil {
		return err
	}
	programs, pairs := different(wanted)
	log.Printf("%s %s: %d candidates, %d lowered", j, k.Name, len(all), len(programs))
	execs, pairs, err := b.load(ctx, programs, pairs)
	if err != nil {
		return err
	}
	calls, err := search.NewCalls(ctx, b.dev, alone, 1, search.RandomContents(alone, b.random.Uint64()))
	if err != nil {
		return err
	}
	defer calls.Free()
	vars := map[string]int64{}
	for _, u := range ir.Toposort(ast) {
		if v, ok := u.Arg.(ir.VarArg); ok && u.Op == ir.OpVar {
			vars[v.Name] = min(v.Hi, max(v.Lo, 128))
		}
	}
	if len(execs) > 0 { // clocks and caches before the first that counts
		if _, err := calls.Time(ctx, execs[0], vars, 0); err != nil {
			return err
		}
	}
	for i, exec := range execs {
		if pairs[i].Time, err = calls.Time(ctx, exec, vars, 0); err != nil {
			return err
		}
		pairs[i].Figures = search.FiguresOf(exec, alone.Target, 0, vars)
		if err := b.out.Encode(pairs[i]); err != nil {
			return err
		}
	}
	for _, line := range compareSettings(pairs) {
		log.Printf("%s %s %s", j, k.Name, line)
	}
	return nil
}

// lowered is a candidate with some settings, and its program.
type lowered struct {
	pair    pair
	plan    plan.Plan
	program *program.Program // nil: refused
	source  string
}

// wanted are the chosen candidates, each without settings and with those that it lacks.
func (b *bench) wanted(ast *ir.UOp, desc *target.Desc, all []heuristic.Candidate, ranks []int, of pair) []*lowered {
	var list []*lowered
	for _, i := range ranks {
		c := all[i]
		for _, with := range b.settings {
			chosen := c.Plan.Extend(ast, with.Opts, desc)
			if len(with.Opts) > 0 && len(chosen.Opts) == len(c.Plan.Opts) {
				continue
			}
			p := of
			p.Plan, p.With, p.Features, p.Price, p.Rank = chosen.String(), with.String(), c.Features, c.Price/1000, i
			list = append(list, &lowered{pair: p, plan: chosen})
		}
	}
	return list
}

// lowerAll lowers candidates on all cores, each in an arena of its own.
func lowerAll(ctx context.Context, ast *ir.UOp, desc *target.Desc, name string, list []*lowered) error {
	printer, err := render.For(desc)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, l := range list {
		group.Go(func() error {
			arena := ir.NewArena()
			p, err := kernel.LowerWith(ctx, arena, arena.Import(ast), l.plan, desc, name, nil)
			if err != nil {
				log.Printf("%s: %v: %v", l.pair.Kernel, l.plan, err)
				return ctx.Err()
			}
			l.program = p
			l.source, err = printer.Source(p)
			return err
		})
	}
	return group.Wait()
}

// different are the programs of candidates, and of those with settings only where these
// change the code.
func different(list []*lowered) (programs []*program.Program, pairs []pair) {
	plain := ""
	for _, l := range list {
		if l.pair.With == "" {
			plain = l.source
		}
		if l.program != nil && (l.pair.With == "" || l.source != plain) {
			programs, pairs = append(programs, l.program), append(pairs, l.pair)
		}
	}
	return programs, pairs
}

// load loads programs; those that the device refuses are left out.
func (b *bench) load(ctx context.Context, programs []*program.Program, pairs []pair) (execs []tgcruntime.Executable, loaded []pair, err error) {
	if execs, err = b.dev.Load(ctx, programs); err == nil {
		return execs, pairs, nil
	}
	for i := range programs {
		one, err := b.dev.Load(ctx, programs[i:i+1])
		if err != nil {
			log.Printf("%s: %s: %v", pairs[i].Kernel, pairs[i].Plan, err)
			continue
		}
		execs, loaded = append(execs, one...), append(loaded, pairs[i])
	}
	return execs, loaded, ctx.Err()
}

// choose picks candidates: the cheapest quarter of those wanted, the others at random
// among all that are priced at up to spread times the cheapest.
func (b *bench) choose(list []heuristic.Candidate) []int {
	n := 0
	for n < len(list) && list[n].Price <= b.spread*list[0].Price {
		n++
	}
	first := min(b.most/4, n)
	out := lists.Upto(first)
	for _, i := range b.random.Perm(n - first)[:min(b.most-first, n-first)] {
		out = append(out, first+i)
	}
	slices.Sort(out)
	return out
}
