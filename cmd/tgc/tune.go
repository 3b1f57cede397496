package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tgc/engine"
	"tgc/internal/atomicfile"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/llm"
	"tgc/llm/bench"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/search"
	"tgc/search/database"
)

// tuneFlags are the flags of tune.
type tuneFlags struct {
	device   deviceFlags
	step     string
	tokens   int
	batch    int
	context  int
	depth    int
	beam     int
	budget   time.Duration
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
	priced   int
	json     bool
}

func newTune() *cobra.Command {
	var o tuneFlags
	cmd := &cobra.Command{
		Use:   "tune MODEL.gguf|SHAPE|GRAPH.uop | --list | --export FILE | --import FILE",
		Short: "Search faster plans for the kernels of a step, and keep them",
		Long: "Try plans for the kernels of a step on the device, those first that take most of the\n" +
			"step, and keep the ones that make the step itself faster. Every later command with the\n" +
			"same database uses them (TGC_IGNORE_DB=1: none does). Kernels that the database has are\n" +
			"not searched again, unless --again says so: a run that was stopped goes on.\n\n" +
			"A candidate's values are checked before its time counts, and candidates run in a process\n" +
			"of their own. BEFORE and AFTER are microseconds of a call with weights that no cache\n" +
			"holds; OUTCOME says what the step gains, or why a kernel keeps its plan.\n\n" +
			"--export writes the database as text, an entry a line; entries that are imported are\n" +
			"candidates, which the next tune confirms.",
		Example: "  tgc tune llama3.2:1b-q6_k --device cuda --mode int8\n" +
			"  tgc tune model.gguf --budget 5m --beam 8 --db plans\n" +
			"  tgc tune graph.uop --device cpu --start scratch --keep-bits\n" +
			"  tgc tune tiny --plans offered.txt      # a plan a line, offered for every kernel\n" +
			"  tgc tune --list\n" +
			"  tgc tune --export h200.plans && tgc tune --import h200.plans --db other",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.list || o.export != "" || o.imported != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.database(cmd)
			}
			return o.run(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.step, "step", "decode", "decode (one token a sequence) or prefill")
	f.IntVar(&o.tokens, "tokens", 128, "prefill: tokens fed at once")
	f.IntVarP(&o.batch, "batch", "b", 1, "sequences")
	f.IntVar(&o.context, "ctx", 1024, "positions in the cache, at most the model's")
	f.IntVar(&o.depth, "depth", 128, "position at which the step is timed")
	f.IntVar(&o.beam, "beam", search.DefaultOptions().Beam, "plans of a kernel from which the search goes on")
	f.DurationVar(&o.budget, "budget", 90*time.Second, "time for all kernels")
	f.Uint64Var(&o.seed, "seed", 1, "of the order of candidates and of the values")
	f.StringVar(&o.db, "db", "", "folder of the database (default: TGC_DB, or "+database.DefaultDir()+")")
	f.BoolVar(&o.list, "list", false, "print the entries of the database")
	f.StringVar(&o.export, "export", "", "write the database to a file")
	f.StringVar(&o.imported, "import", "", "read entries of a file into the database, as candidates")
	f.BoolVar(&o.keepBits, "keep-bits", false, "take only plans whose results equal the heuristic's to the bit")
	f.StringVar(&o.start, "start", "heuristic", "from which plans searches start: heuristic or scratch (the empty plan)")
	f.StringVar(&o.plans, "plans", "", "file of plans, one a line, that are offered for every kernel")
	f.BoolVar(&o.again, "again", false, "search kernels that the database has, too")
	f.StringVar(&o.log, "log", "", "append a line of JSON for each kernel, candidate and result to a file")
	f.IntVar(&o.priced, "priced", search.DefaultOptions().Priced, "plans that the price likes best, from which searches start")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	o.device.register(f)
	o.device.registerModes(f)
	return cmd
}

func (o *tuneFlags) check() error {
	switch {
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
	options, err := o.options()
	if err != nil {
		return err
	}
	dev, config, err := o.device.open(cmd)
	if err != nil {
		return err
	}
	defer dev.Close()
	if config.Beam > 0 && !cmd.Flags().Changed("beam") {
		options.Search.Beam = config.Beam
	}
	config.Plans, options.Config = nil, config
	if o.db != "" {
		config.DB = o.db
	}
	if config.DB == "" {
		return usagef("tune: no folder for the database: --db DIR")
	}
	if options.DB = database.Open(config.DB); dev.Slow() && o.db == "" {
		note(cmd, "%s interprets programs: what is fast on it is not stored but with --db", dev.Name())
		options.DB, config.DB = nil, ""
	}
	options.Say = func(format string, args ...any) { note(cmd, format, args...) }
	options.Testers = childTesters(dev, o.device.threads, config.CacheDir)
	if o.log != "" {
		if options.Log, err = search.OpenLog(o.log, dev.Name()); err != nil {
			return err
		}
		defer options.Log.Close()
		options.Log.Step = o.logStep(name)
	}
	open := o.model
	if strings.HasSuffix(name, ".uop") {
		open = o.graph
	}
	start := time.Now()
	step, roles, free, err := open(cmd, name, dev, config)
	defer free()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	tuned, err := search.Tune(cmd.Context(), step, options)
	if err != nil {
		return err
	}
	report := o.report(tuned, roles, config.DB, time.Since(start))
	if err := report.print(cmd, o.json); err != nil {
		return err
	}
	return context.Cause(cmd.Context())
}

// logStep names the step in a log.
func (o *tuneFlags) logStep(name string) search.LogStep {
	if strings.HasSuffix(name, ".uop") {
		return search.LogStep{Shape: name}
	}
	return search.LogStep{Shape: name, Mode: o.device.mode.String(), Batch: o.batch, Tokens: o.tokens, Context: o.context, Depth: o.depth}
}

// options are those of the search that flags say.
func (o *tuneFlags) options() (search.TuneOptions, error) {
	t := search.TuneOptions{Search: search.DefaultOptions(), Budget: o.budget, Again: o.again}
	t.Search.Beam, t.Search.Seed, t.Search.Scratch, t.Search.Priced = o.beam, o.seed, o.start == "scratch", o.priced
	t.Bench = search.BenchOptions{Seed: o.seed, Limits: search.DefaultLimits(), KeepBits: o.keepBits}
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

// roles say what kernels of a step are for.
type roles map[*engine.Kernel]string

// model is a step of a model.
func (o *tuneFlags) model(cmd *cobra.Command, name string, dev *devices.Device, config engine.Config) (step search.Step, _ func(c *engine.Compiled) roles, free func(), err error) {
	free = func() {}
	m, err := openModel(cmd.Context(), name, openFile)
	if err != nil {
		return step, nil, free, err
	}
	free = func() { m.Close() }
	rows := min(o.context, m.Config.Context)
	if o.depth+o.tokens > rows {
		return step, nil, free, fmt.Errorf("depth %d and %d tokens do not fit the context of %d", o.depth, o.tokens, rows)
	}
	batch, err := llm.NewBatch(cmd.Context(), m, dev, llm.BatchOptions{Sequences: o.batch, Context: rows, Mode: o.device.mode.Numeric, Config: config})
	if err != nil {
		return step, nil, free, err
	}
	free = func() { batch.Close(); m.Close() }
	if err := batch.Seek(o.depth); err != nil {
		return step, nil, free, err
	}
	loaded, capture, err := batch.Loaded(cmd.Context(), bench.Tokens(o.batch, o.tokens, m.Config.Vocabulary))
	if err != nil {
		return step, nil, free, err
	}
	step = search.Step{Compiled: loaded.Compiled, Vars: loaded.Binding.Vars, Capture: capture}
	return step, func(c *engine.Compiled) roles { return rolesOf(c, loaded.Binding) }, free, nil
}

// graph is a graph in text form.
func (o *tuneFlags) graph(cmd *cobra.Command, name string, dev *devices.Device, config engine.Config) (step search.Step, _ func(c *engine.Compiled) roles, free func(), err error) {
	free = func() {}
	text, err := readInput(cmd, name)
	if err != nil {
		return step, nil, free, err
	}
	root, err := ir.Parse(ir.NewArena(), text)
	if err != nil {
		return step, nil, free, err
	}
	compiled, err := engine.Compile(cmd.Context(), root, dev.Target(), config)
	if err != nil {
		return step, nil, free, err
	}
	step, free, err = search.GraphStep(cmd.Context(), dev, compiled, o.seed)
	return step, func(c *engine.Compiled) roles { return rolesOf(c, engine.Bind(c, step.Vars)) }, free, err
}

func rolesOf(c *engine.Compiled, b engine.Binding) roles {
	var m engine.Manifest
	m.Describe(c, b)
	list := make(roles)
	for i := range m.Kernels {
		list[m.Kernels[i].Compiled()] = bench.Role(&m.Kernels[i])
	}
	return list
}

// tuneReport is what tune --json prints.
type tuneReport struct {
	Kernels []tuneKernel `json:"kernels"`
	Before  float64      `json:"before_tok_s"` // of all sequences; 0 for a graph, or where it was not measured
	After   float64      `json:"after_tok_s"`
	StepUS  [2]float64   `json:"step_us"` // before and after, in turn
	Saved   float64      `json:"saved"`   // part of it, 0 if that is no more than noise
	Seconds float64      `json:"seconds"`
	DB      string       `json:"db"`
}

type tuneKernel struct {
	Name       string                `json:"name"`
	Role       string                `json:"role"`
	Share      float64               `json:"share"`
	Before     float64               `json:"before_us"`
	After      float64               `json:"after_us"`
	PlanBefore string                `json:"plan_before"`
	PlanAfter  string                `json:"plan_after"`
	Candidates int                   `json:"candidates"`
	Rejected   int                   `json:"rejected"`
	Reasons    map[search.Status]int `json:"rejected_as,omitempty"`
	Stored     bool                  `json:"stored"`
	Outcome    string                `json:"outcome"`
}

func (o *tuneFlags) report(t *search.Tuned, rolesIn func(c *engine.Compiled) roles, db string, took time.Duration) *tuneReport {
	r := &tuneReport{Kernels: []tuneKernel{}, StepUS: [2]float64{round(t.Before), round(t.After)}, Saved: round(t.Saved), Seconds: round(took.Seconds()), DB: db}
	if t.Before > 0 && t.After > 0 {
		tokens := float64(o.tokens*o.batch) * 1e6
		r.Before, r.After = round(tokens/t.Before), round(tokens/t.After)
	}
	names := rolesIn(t.Step)
	for _, k := range t.Kernels {
		r.Kernels = append(r.Kernels, tuneKernel{
			Name: k.Kernel.Name, Role: names[k.In], Share: round(k.Share), Before: round(k.Before.Time), After: round(k.After.Time),
			PlanBefore: k.Before.Plan, PlanAfter: k.After.Plan, Candidates: k.Candidates, Rejected: sum(k.Rejected), Reasons: k.Rejected, Stored: k.Stored, Outcome: k.Note,
		})
	}
	return r
}

func (r *tuneReport) print(cmd *cobra.Command, asJSON bool) error {
	if asJSON {
		return printJSON(cmd, r)
	}
	rows := [][]string{{"KERNEL", "ROLE", "SHARE", "BEFORE US", "AFTER US", "CANDIDATES", "REJECTED", "OUTCOME", "PLAN"}}
	for _, k := range r.Kernels {
		rows = append(rows, []string{
			k.Name, k.Role, fmt.Sprintf("%.1f %%", 100*k.Share), fmt.Sprintf("%.4g", k.Before), fmt.Sprintf("%.4g", k.After),
			fmt.Sprint(k.Candidates), reasonsText(k.Reasons), k.Outcome, k.PlanAfter,
		})
	}
	if err := printTable(cmd.OutOrStdout(), rows); err != nil {
		return err
	}
	step := "no plan was taken"
	switch {
	case r.StepUS[0] == 0 && slices.ContainsFunc(r.Kernels, func(k tuneKernel) bool { return k.PlanAfter != k.PlanBefore }):
		step = "stopped before the step was timed"
	case r.StepUS[0] > 0:
		step = fmt.Sprintf("step: %.5g us before, %.5g us after (%.4g and %.4g tokens a second), in turn: %.2f %% less beyond noise", r.StepUS[0], r.StepUS[1], r.Before, r.After, 100*r.Saved)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "\n%s; %.0f s; %s\n", step, r.Seconds, r.DB)
	return err
}

// reasonsText counts rejected candidates.
func reasonsText(reasons map[search.Status]int) string {
	list := []string{fmt.Sprint(sum(reasons))}
	for _, status := range slices.Sorted(maps.Keys(reasons)) {
		list = append(list, fmt.Sprintf("%s %d", status, reasons[status]))
	}
	return strings.Join(list, ", ")
}

func sum(counts map[search.Status]int) (n int) {
	for _, v := range counts {
		n += v
	}
	return n
}

// database lists, exports or imports.
func (o *tuneFlags) database(cmd *cobra.Command) error {
	config, err := readConfig(cmd)
	if err != nil {
		return err
	}
	dir := config.DB
	if o.db != "" {
		dir = o.db
	}
	db := database.Open(dir)
	switch {
	case o.imported != "":
		f, err := os.Open(o.imported)
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := db.Import(f)
		note(cmd, "%d entries imported into %s as candidates", n, dir)
		return err
	case o.export != "":
		return o.exportTo(cmd, db)
	}
	return o.listEntries(cmd, db)
}

func (o *tuneFlags) exportTo(cmd *cobra.Command, db *database.DB) error {
	f, err := atomicfile.Create(o.export)
	if err != nil {
		return err
	}
	defer f.Abort()
	n, bad, err := db.Export(f)
	if err != nil {
		return err
	}
	for _, err := range bad {
		note(cmd, "%v", err)
	}
	note(cmd, "%d entries of %s exported", n, db.Dir())
	return f.Commit()
}

func (o *tuneFlags) listEntries(cmd *cobra.Command, db *database.DB) error {
	list, bad := db.List()
	for _, err := range bad {
		note(cmd, "%v", err)
	}
	if o.json {
		if list == nil {
			list = []database.Entry{}
		}
		return printJSON(cmd, list)
	}
	rows := [][]string{{"KERNEL", "TARGET", "BEFORE US", "AFTER US", "DATE", "REASON", "PLAN"}}
	for _, e := range list {
		if e.Unproven {
			e.Reason = "a candidate from elsewhere: " + e.Reason
		}
		rows = append(rows, []string{e.Kernel, e.Target, fmt.Sprintf("%.4g", e.Before), fmt.Sprintf("%.4g", e.After), e.Date.Format(time.DateOnly), e.Reason, e.Plan})
	}
	return printTable(cmd.OutOrStdout(), rows)
}
