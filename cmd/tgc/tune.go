package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/nn"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/search"
	"tgc/search/database"
	"tgc/search/job"
)

// tuneFlags are the flags of tune.
type tuneFlags struct {
	device   deviceFlags
	step     string
	steps    string
	tokens   int
	batch    int
	context  int
	depth    int
	beam     int
	budget   time.Duration
	fusion   float64
	seed     uint64
	db       string
	list     bool
	export   string
	imported string
	keepBits bool
	start    string
	plans    string
	again    bool
	log      string
	job      string
	model    string
	priced   int
	json     bool
	spread   spreadFlags

	shared *search.Spread // to workers; nil: this machine searches
}

func newTune() *cobra.Command {
	var o tuneFlags
	cmd := &cobra.Command{
		Use:   "tune MODEL.gguf|SHAPE|GRAPH.uop | --job FILE | --worker URL | --list | --export FILE | --import FILE",
		Short: "Search faster plans for the kernels of a step, and keep them",
		Long: "Try plans for the kernels of a step on the device, those first that take most of the\n" +
			"step, and keep the ones that make the step itself faster. Every later command with the\n" +
			"same database uses them (TGC_IGNORE_DB=1: none does). Kernels that the database has are\n" +
			"not searched again, unless --again says so: a run that was stopped goes on.\n\n" +
			"A candidate's values are checked before its time counts, and candidates run in a process\n" +
			"of their own. BEFORE and AFTER are microseconds of a call with weights that no cache\n" +
			"holds; OUTCOME says what the step gains, or why a kernel keeps its plan.\n\n" +
			"--serve lets other machines with the same kind of device search the kernels (--worker), by\n" +
			"leases: one that is not heard of loses its kernel, and a kernel with which three were lost\n" +
			"is set aside. What they find is tried here before it counts; the step decides here.\n\n" +
			"--export writes the database as text, an entry a line; entries that are imported are\n" +
			"candidates, which the next tune confirms.",
		Example: "  tgc tune llama3.2:1b-q6_k --device cuda --mode int8\n" +
			"  tgc tune model.gguf --budget 5m --beam 8 --db plans\n" +
			"  tgc tune model.gguf --steps 256*decode,prompt:512,batch:4 --budget 10m\n" +
			"  tgc tune graph.uop --device cpu --start scratch --keep-bits\n" +
			"  tgc tune tiny --plans offered.txt      # a plan a line, offered for every kernel\n" +
			"  tgc tune --job night.json --json       # several models, unattended\n" +
			"  tgc tune --job night.json --serve :4222 --token secret --tls-cert c.pem --tls-key k.pem\n" +
			"  tgc tune --worker tls://host:4222 --token secret --tls-ca c.pem --device cuda\n" +
			"  tgc tune --list\n" +
			"  tgc tune --export h200.plans && tgc tune --import h200.plans --db other",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.job != "" || o.spread.worker != "" || o.list || o.export != "" || o.imported != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.spread.check(); err != nil {
				return err
			}
			switch {
			case o.spread.worker != "":
				return o.runWorker(cmd)
			case o.job != "":
				return o.runJob(cmd)
			}
			if len(args) == 0 {
				return o.database(cmd)
			}
			return o.run(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.steps, "steps", "", "steps that are tuned together: decode,prompt:512,batch:4 (TIMES*STEP: it runs so often, STEP@DEPTH)")
	f.StringVar(&o.step, "step", "decode", "the one step: decode (one token a sequence) or prefill")
	f.IntVar(&o.tokens, "tokens", 128, "prefill: tokens fed at once")
	f.IntVarP(&o.batch, "batch", "b", 1, "sequences")
	f.IntVar(&o.context, "ctx", 1024, "positions in the cache, at most the model's")
	f.IntVar(&o.depth, "depth", 128, "position at which the step is timed")
	f.IntVar(&o.beam, "beam", search.DefaultOptions().Beam, "plans of a kernel from which the search goes on")
	f.DurationVar(&o.budget, "budget", 90*time.Second, "time for all kernels")
	f.Float64Var(&o.fusion, "fusion", usualFusion, "part of the budget for what the schedule decides by price: which values kernels share (0: none)")
	f.Uint64Var(&o.seed, "seed", 1, "of the order of candidates and of the values")
	f.StringVar(&o.db, "db", "", "folder of the database (default: TGC_DB, or "+database.DefaultDir()+")")
	f.BoolVar(&o.list, "list", false, "print the entries of the database")
	f.StringVar(&o.export, "export", "", "write the database to a file")
	f.StringVar(&o.imported, "import", "", "read entries of a file into the database, as candidates")
	f.BoolVar(&o.keepBits, "keep-bits", false, "take only plans whose results equal the heuristic's to the bit")
	f.StringVar(&o.start, "start", "heuristic", "from which plans searches start: heuristic or scratch (the empty plan)")
	f.StringVar(&o.plans, "plans", "", "file of plans, one a line, that are offered for every kernel")
	f.BoolVar(&o.again, "again", false, "search kernels that the database has, too")
	f.StringVar(&o.job, "job", "", "file (JSON or YAML) that says what to tune: models, steps, modes, devices, budget, db")
	f.StringVar(&o.model, "model", "", "file of a model of cost (planbench -learn), by which candidates are ordered")
	f.StringVar(&o.log, "log", "", "append a line of JSON for each kernel, candidate and result to a file")
	f.IntVar(&o.priced, "priced", search.DefaultOptions().Priced, "plans that the price likes best, from which searches start")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	o.device.register(f)
	o.device.registerModes(f)
	o.spread.register(f)
	return cmd
}

// usualFusion is the part of the budget for decisions of the schedule.
const usualFusion = 0.2

func (o *tuneFlags) check() error {
	switch {
	case !(o.fusion >= 0 && o.fusion < 1):
		return usagef("tune: --fusion %g, want a part of the budget from 0 on, below 1", o.fusion)
	case o.step != "decode" && o.step != "prefill":
		return usagef("tune: --step %q, want decode or prefill", o.step)
	case o.start != "heuristic" && o.start != "scratch":
		return usagef("tune: --start %q, want heuristic or scratch", o.start)
	case o.tokens < 1 || o.batch < 1 || o.context < 1 || o.depth < 0 || o.beam < 1 || o.priced < 0 || o.budget <= 0:
		return usagef("tune: --tokens, --batch, --ctx, --beam and --budget start at 1, --depth and --priced at 0")
	}
	if o.step == "decode" {
		o.tokens = 1
	}
	return nil
}

func (o *tuneFlags) run(cmd *cobra.Command, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	steps, err := o.stepList(cmd, name)
	if err != nil {
		return err
	}
	end, err := o.coordinate(cmd)
	if err != nil {
		return err
	}
	defer end()
	start := time.Now()
	t, err := o.open(cmd)
	if err != nil {
		return err
	}
	defer t.close()
	reports, err := t.tune(cmd.Context(), tuneRun{name: name, mode: o.device.mode.Numeric, steps: steps, budget: o.budget})
	if err != nil && reports == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	result := &tuneResult{Steps: reports, Seconds: round(time.Since(start).Seconds()), DB: t.config.DB}
	if err := result.print(cmd, o.json, o.steps != ""); err != nil {
		return err
	}
	return cmp.Or(context.Cause(cmd.Context()), err)
}

// stepList is what the flags say of steps; a graph is one by itself.
func (o *tuneFlags) stepList(cmd *cobra.Command, name string) ([]job.Step, error) {
	if job.IsGraph(name) {
		if o.steps != "" {
			return nil, usagef("tune: --steps are those of a model, %s is a graph", name)
		}
		return []job.Step{{}}, nil
	}
	if o.steps == "" {
		return []job.Step{{Batch: o.batch, Tokens: o.tokens, Depth: o.depth}}, nil
	}
	if cmd.Flags().Changed("step") || cmd.Flags().Changed("tokens") {
		return nil, usagef("tune: --steps says what --step and --tokens say of one step")
	}
	steps, err := job.ParseSteps(o.steps)
	if err != nil {
		return nil, usagef("tune: --steps: %v", err)
	}
	return o.complete(steps), nil
}

// complete says what steps leave to the flags.
func (o *tuneFlags) complete(steps []job.Step) []job.Step {
	for i := range steps {
		if steps[i].Batch == 0 {
			steps[i].Batch = o.batch
		}
		if steps[i].Depth < 0 {
			steps[i].Depth = o.depth
		}
	}
	return steps
}

// tuner is a device on which steps are tuned.
type tuner struct {
	flags   *tuneFlags
	cmd     *cobra.Command
	dev     *devices.Device
	config  engine.Config
	options search.TuneOptions
	prefix  string // of what is said
}

func (o *tuneFlags) open(cmd *cobra.Command) (t *tuner, err error) {
	t = &tuner{flags: o, cmd: cmd}
	if t.options, err = o.options(); err != nil {
		return nil, err
	}
	if t.dev, t.config, err = o.device.open(cmd); err != nil {
		return nil, err
	}
	if err := t.configure(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// configure says where plans are kept, and how candidates are tried.
func (t *tuner) configure() (err error) {
	o, config := t.flags, &t.config
	if config.Beam > 0 && !t.cmd.Flags().Changed("beam") {
		t.options.Search.Beam = config.Beam
	}
	config.Plans, config.Steps = nil, nil
	t.options.Config, t.options.Bench.Parallel = *config, config.Parallel
	if o.db != "" {
		config.DB = o.db
	}
	if config.DB == "" {
		return usagef("tune: no folder for the database: --db DIR")
	}
	if t.options.DB = database.Open(config.DB); t.dev.Slow() && o.db == "" {
		note(t.cmd, "%s interprets programs: what is fast on it is not stored but with --db", t.dev.Name())
		t.options.DB, config.DB = nil, ""
	}
	t.options.Say = func(format string, args ...any) { note(t.cmd, "%s", t.prefix+fmt.Sprintf(format, args...)) }
	t.options.Spread = o.shared
	t.options.Testers = childTesters(t.dev, o.device.threads, config.CacheDir)
	if o.log != "" {
		t.options.Log, err = search.OpenLog(o.log, t.dev.Name())
	}
	return err
}

func (t *tuner) close() {
	if t.options.Log != nil {
		_ = t.options.Log.Close() // every line was written
	}
	t.dev.Close()
}

// tuneRun is what is tuned at once.
type tuneRun struct {
	name   string // of a model or a graph
	mode   nn.Numeric
	steps  []job.Step
	budget time.Duration
}

// tune tunes steps and reports each. The error beside reports is that of the database.
func (t *tuner) tune(ctx context.Context, run tuneRun) ([]*tuneReport, error) {
	start := time.Now()
	options := t.options
	options.Budget = run.budget
	layout, err := t.layouts(ctx, run, options)
	if err != nil {
		return nil, err
	}
	opened, free, err := t.steps(ctx, run)
	defer free()
	if err != nil {
		return nil, err
	}
	options.Budget = max(options.Budget-time.Since(start), 0)
	steps := make([]search.NamedStep, len(opened))
	for i := range opened {
		steps[i] = opened[i].NamedStep
	}
	tuned, err := search.TuneSteps(ctx, steps, options)
	if err != nil {
		return nil, err
	}
	reports := make([]*tuneReport, len(tuned))
	var unstored error
	for i := range tuned {
		switch {
		case layout != nil && i == 0: // the step that timed it
			tuned[i].Include(layout)
		case layout != nil:
			tuned[i].Decisions = append(tuned[i].Decisions, layout.TunedDecision)
		}
		reports[i] = opened[i].report(tuned[i], t.config.DB, time.Since(start))
		unstored = cmp.Or(unstored, tuned[i].Unstored)
	}
	return reports, unstored
}

// options are those of the search that flags say.
func (o *tuneFlags) options() (search.TuneOptions, error) {
	t := search.TuneOptions{Search: search.DefaultOptions(), Budget: o.budget, Fusion: o.fusion, Again: o.again}
	t.Search.Beam, t.Search.Seed, t.Search.Scratch, t.Search.Priced = o.beam, o.seed, o.start == "scratch", o.priced
	t.Bench = search.BenchOptions{Seed: o.seed, Limits: search.DefaultLimits(), KeepBits: o.keepBits}
	if o.model != "" {
		f, err := os.Open(o.model)
		if err != nil {
			return t, err
		}
		defer f.Close()
		if t.Bench.Model, err = search.ReadModel(f); err != nil {
			return t, fmt.Errorf("%s: %w", o.model, err)
		}
	}
	if o.plans == "" {
		return t, nil
	}
	text, err := os.ReadFile(o.plans)
	if err != nil {
		return t, err
	}
	for n, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		p, err := plan.Parse(line)
		if err != nil {
			return t, fmt.Errorf("%s:%d: %w", o.plans, n+1, err)
		}
		if len(p.Opts) > 0 {
			t.Search.Extra = append(t.Search.Extra, p)
		}
	}
	return t, nil
}

// childTesters try candidates in processes of their own.
func childTesters(dev *devices.Device, threads int, cacheDir string) search.Testers {
	return func(ctx context.Context, ast *ir.UOp, options search.BenchOptions) (search.Tester, error) {
		return search.StartChild(ctx, search.Spec{Device: dev.Name(), Threads: threads, CacheDir: cacheDir, Kernel: ir.Text(ast), Options: options})
	}
}

// openForChild opens the device of such a process.
func openForChild(ctx context.Context, spec *search.Spec) (runtime.Device, error) {
	dev, _, err := devices.Open(ctx, spec.Device, devices.Options{Threads: spec.Threads, CacheDir: spec.CacheDir})
	if err != nil {
		return nil, err
	}
	return dev.Device, nil
}
