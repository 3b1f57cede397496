package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tgc/engine"
	"tgc/internal/atomicfile"
	"tgc/internal/microbench"
	"tgc/llm/bench"
	"tgc/runtime/devices"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	device  deviceFlags
	options bench.Options
	json    bool
	micro   bool
	pairs   bool
	random  int
	grid    string
	floor   float64 // percent
	svg     string  // files to write; empty: none
	trace   string
	sizes   []int
}

func newBench() *cobra.Command {
	var o benchFlags
	cmd := &cobra.Command{
		Use:   "bench MODEL.gguf|SHAPE | --micro | --pairs [TEXT] | --grid FILE",
		Short: "Measure the speed of prompts and of generation, or of plain kernels",
		Long: "Measure how fast a prompt is fed and how fast tokens are generated (one at a time,\n" +
			"without sampling), beside the bandwidth that memory has on this machine.\n" +
			"--micro measures plain kernels instead: matrix products, elementwise chains, sums,\n" +
			"copies and launches, beside what the machine can do.\n" +
			"--pairs measures programs of two everyday operations on square matrices (softmax,\n" +
			"products, sums, transposes ..), as fusion compiles them and with every step stored:\n" +
			"RATIO is how many times as long the fused form takes, and how many times as much it\n" +
			"costs by the count of its instructions and bytes (PRICE, microseconds). TEXT picks the\n" +
			"pairs that have it in their names; with --random N they are N random programs instead.\n" +
			"--grid measures a list of models and prints, of each, the kernels of a decode step\n" +
			"that read weights and cache at less than --floor of the bandwidth (of those that read\n" +
			"1 MB or more a call). FILE has a row a line, # begins a comment, and - is the device\n" +
			"of --device or the best one:\n\n" +
			"  # " + bench.GridForm + "\n" +
			"  llama3.2:1b-q6_k  int8   cuda  1  512  128  0\n" +
			"  llama:d=960,layers=32,heads=15,kv=5,ff=2560,vocab=49152,quant=q4_1  exact  -  4  0  64  1024\n\n" +
			"A row that fails is reported, and the exit status is then 1 after all others.\n\n" +
			"--kernels prints a table of the step's kernels. On a GPU, US is a call as the step\n" +
			"runs it: the calls of all layers behind one another, each starting while the one\n" +
			"before ends, with their own weights; ALONE is a call between two marks, which holds\n" +
			"the edges of its launch, some microseconds. Elsewhere there is a barrier behind each\n" +
			"call. GB/S is of all bytes read, OF READ of weights and cache only.\n" +
			"--svg draws these kernels: operations a byte against operations a second, under what\n" +
			"memory and arithmetic allow. --trace writes the steps as a timeline that Perfetto\n" +
			"(ui.perfetto.dev) and Chrome (chrome://tracing) show.",
		Example: "  tgc bench model.gguf\n" +
			"  tgc bench llama3.2:1b-q6_k -p 128 -n 64 --threads 2 --json\n" +
			"  tgc bench model.gguf --device cpu,interp --kernels\n" +
			"  tgc bench model.gguf --kernels --svg roofline.svg --trace step.json\n" +
			"  tgc bench --micro --threads 1\n" +
			"  tgc bench --pairs \"softmax +\" --sizes 64,256 --device cpu --json\n" +
			"  tgc bench --grid docs/bench/grid.txt --floor 50 -r 3",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case (o.svg != "" || o.trace != "") && (o.micro || o.pairs || o.grid != ""):
				return usagef("bench: --svg and --trace are of one model")
			case o.micro && o.pairs, o.grid != "" && (o.micro || o.pairs):
				return usagef("bench: one of --micro, --pairs and --grid")
			case o.random < 0, o.random > 0 && !o.pairs:
				return usagef("bench: --random %d: want a number of programs, with --pairs", o.random)
			case o.micro, o.grid != "":
				return cobra.NoArgs(cmd, args)
			case o.pairs:
				return cobra.MaximumNArgs(1)(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.micro {
				return o.runMicro(cmd)
			}
			if o.pairs {
				return o.runPairs(cmd, strings.Join(args, ""))
			}
			if o.grid != "" {
				return o.runGrid(cmd)
			}
			return o.run(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.options.Prompt, "prompt", "p", 512, "tokens of the prompt; 0 for none")
	f.IntVarP(&o.options.Decode, "n", "n", 128, "tokens to generate; 0 for none")
	f.IntVarP(&o.options.Batch, "batch", "b", 1, "sequences that go on together; rates are over all of them")
	f.IntVar(&o.options.Context, "ctx", 0, "positions in the cache (default: as many as are needed)")
	f.IntVar(&o.options.Depth, "depth", 0, "position at which generation starts")
	f.IntVarP(&o.options.Repeats, "repeats", "r", 5, "repeats; median, least and largest are printed")
	f.BoolVar(&o.options.Kernels, "kernels", false, "also print a table of the decode step's kernels")
	f.StringVar(&o.svg, "svg", "", "with --kernels: draw them as a roofline to a file")
	f.StringVar(&o.trace, "trace", "", "write a timeline of the steps to a file, for Perfetto or Chrome")
	f.BoolVar(&o.micro, "micro", false, "measure plain kernels instead of a model")
	f.BoolVar(&o.pairs, "pairs", false, "measure pairs of everyday operations, fused and stored one by one")
	f.IntVar(&o.random, "random", 0, "with --pairs: as many random programs of three to six operations instead")
	f.StringVar(&o.grid, "grid", "", "measure the rows of a file")
	f.Float64Var(&o.floor, "floor", defaultFloor, "with --grid: percent of the bandwidth under which kernels are listed")
	f.IntSliceVar(&o.sizes, "sizes", microbench.DefaultOptions().Sizes, "with --micro: sizes of the square matrix products; with --pairs: of the matrices (default 256)")
	f.BoolVar(&o.json, "json", false, "print one JSON object for each device")
	o.device.register(f)
	o.device.registerModes(f)
	f.Lookup("device").Usage = "devices, separated by commas: " + devices.Names()
	return cmd
}

func (o *benchFlags) run(cmd *cobra.Command, name string) error {
	if err := o.options.Check(); err != nil {
		return usagef("%v", err)
	}
	if o.svg != "" && !o.options.Kernels {
		return usagef("bench: --svg draws what --kernels measures")
	}
	if strings.Contains(o.device.name, ",") && (o.svg != "" || o.trace != "") {
		return usagef("bench: --svg and --trace are of one device")
	}
	if o.options.Batch < 1 {
		return usagef("bench: -b %d, want at least 1", o.options.Batch)
	}
	if _, err := o.device.config(cmd); err != nil {
		return err
	}
	list := strings.Split(o.device.name, ",")
	for _, device := range list {
		if device != "" && devices.Check(device) != nil {
			return usagef("--device: %v", devices.Check(device))
		}
	}
	var results []*bench.Result
	for _, device := range list {
		r, err := o.measure(cmd, name, device)
		if err != nil {
			return err
		}
		if err := o.draw(r); err != nil {
			return err
		}
		if o.json {
			if err := printJSON(cmd, r); err != nil {
				return err
			}
		}
		results = append(results, r)
	}
	if o.json {
		return nil
	}
	return printBench(cmd.OutOrStdout(), results)
}

// draw writes the pictures that are asked for.
func (o *benchFlags) draw(r *bench.Result) error {
	if o.svg != "" {
		if err := atomicfile.Write(o.svg, bench.Roofline(r)); err != nil {
			return err
		}
	}
	if o.trace == "" {
		return nil
	}
	var out bytes.Buffer
	if err := r.WriteTrace(&out); err != nil {
		return err
	}
	if !o.options.Kernels { // they were measured for the timeline alone
		r.Kernels, r.PromptKernels = nil, nil
	}
	return atomicfile.Write(o.trace, out.Bytes())
}

// measure opens the model anew for each device, so that the figures of one do
// not depend on another.
func (o *benchFlags) measure(cmd *cobra.Command, name, device string) (*bench.Result, error) {
	start := time.Now()
	defer working(cmd, strings.TrimSpace("measuring "+name+" "+device))()
	m, err := openModel(cmd.Context(), name, openFile)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	load := time.Since(start)
	flags := o.device
	flags.name = device
	dev, config, err := flags.open(cmd)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	config.Schedules = engine.OpenSchedules(config.CacheDir)
	defer config.Schedules.Close()
	opt := o.options
	opt.Kernels = opt.Kernels || o.trace != ""
	opt.PromptKernels = opt.Kernels
	opt.Mode, opt.Cache, opt.Config, opt.Load, opt.Start = o.device.mode.Numeric, o.device.kv.CacheType, config, load, start
	shape := devices.Options{Threads: o.device.threads}
	opt.Threads = dev.Threads(shape)
	opt.ReadRate = dev.ReadRate(shape)
	return bench.Run(cmd.Context(), m, dev, opt)
}

// modeOf is the numeric mode, and the type of a cache of few bytes.
func modeOf(r *bench.Result) string {
	if r.KV == "" {
		return r.Mode
	}
	return r.Mode + "/" + r.KV
}

func printBench(w io.Writer, results []*bench.Result) error {
	rows := [][]string{{
		"MODEL", "DEVICE", "MODE", "THREADS", "PROMPT", "TOK/S", "DECODE", "TOK/S", "P99 MS",
		"LAUNCHES", "BYTES/STEP", "READ GB/S", "FRACTION", "PEAK", "LOAD S", "COMPILE S", "FIRST S",
	}}
	for _, r := range results {
		rows = append(rows, []string{
			r.Model, r.Device, modeOf(r), fmt.Sprint(r.Threads),
			fmt.Sprint(r.Prompt.Tokens), ratesText(r.Prompt.Rates),
			fmt.Sprintf("%d@%d", r.Decode.Tokens, r.Decode.Depth), ratesText(r.Decode.Rates), fmt.Sprintf("%.4g", r.Decode.P99),
			fmt.Sprint(r.Launches), byteSize(r.Bytes), fmt.Sprintf("%.4g", r.ReadRate), fmt.Sprintf("%.1f %%", 100*r.Fraction),
			byteSize(r.PeakMemory), fmt.Sprintf("%.2f", r.Load), fmt.Sprintf("%.2f", r.Compile), fmt.Sprintf("%.2f", r.FirstToken),
		})
	}
	if err := printTable(w, rows); err != nil {
		return err
	}
	for _, r := range results {
		for _, table := range []struct {
			step    string
			kernels []bench.KernelResult
		}{{"decode", r.Kernels}, {"prompt", r.PromptKernels}} {
			if len(table.kernels) == 0 {
				continue
			}
			if err := printKernels(w, table.step+" on "+r.Device, table.kernels); err != nil {
				return err
			}
		}
	}
	return nil
}

func ratesText(r bench.Rates) string {
	if r.Median == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4g (%.4g-%.4g)", r.Median, r.Min, r.Max)
}

// printKernels prints a table of kernels. Where calls were timed in a chain, US is
// one of them, and ALONE one with the edges of its launch.
func printKernels(w io.Writer, title string, kernels []bench.KernelResult) error {
	chained := slices.ContainsFunc(kernels, func(k bench.KernelResult) bool { return k.Alone > 0 })
	header := []string{"KERNEL (" + title + ")", "COUNT", "US/STEP", "SHARE", "GB/S", "OF READ", "GFLOPS", "ROLE", "ORIGIN", "PLAN"}
	if chained {
		header = slices.Insert(header, 2, "US", "ALONE")
	}
	rows := [][]string{{""}, header}
	cached := false
	for _, k := range kernels {
		fraction := fmt.Sprintf("%.1f %%", 100*k.Fraction)
		if k.Cached {
			fraction += "*"
			cached = cached || k.Fraction > 0
		}
		row := []string{
			k.Name, fmt.Sprint(k.Count), fmt.Sprintf("%.4g", k.Time), fmt.Sprintf("%.1f %%", 100*k.Share),
			fmt.Sprintf("%.4g", k.Rate), fraction, fmt.Sprintf("%.4g", k.GFLOPS), k.Role, string(k.Origin), strings.Join(k.Plan, "; "),
		}
		if chained {
			row = slices.Insert(row, 2, fmt.Sprintf("%.4g", k.Time/float64(k.Count)), fmt.Sprintf("%.4g", k.Alone/float64(k.Count)))
		}
		rows = append(rows, row)
	}
	if err := printTable(w, rows); err != nil || !cached {
		return err
	}
	_, err := fmt.Fprintln(w, "* all calls together read less than twice the last cache: some of it is not read from memory")
	return err
}
