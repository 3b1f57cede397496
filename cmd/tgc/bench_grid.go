package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tgc/llm"
	"tgc/llm/bench"
	"tgc/runtime/devices"
)

// defaultFloor is the share of the bandwidth, in percent, that decoding a model of
// 500 MB or more should reach as a whole.
const defaultFloor = 45

// gridRun measures the rows of a grid, one after another.
type gridRun struct {
	flags *benchFlags
	cmd   *cobra.Command
	model *llm.Model // of the last row: rows of one model often follow one another
	name  string     // of model
	rates map[string]float64
}

// gridResult is what --json prints of a row.
type gridResult struct {
	Row    bench.Row            `json:"row"`
	Mode   string               `json:"mode"`
	Error  string               `json:"error,omitempty"`
	Result *bench.Result        `json:"result,omitempty"`
	Floor  float64              `json:"floor"` // a fraction of the bandwidth
	Below  []bench.KernelResult `json:"below"`
}

func (o *benchFlags) runGrid(cmd *cobra.Command) error {
	for _, flag := range []string{"prompt", "n", "batch", "depth", "mode"} {
		if cmd.Flags().Changed(flag) {
			return usagef("bench: the rows of --grid say what --%s would", flag)
		}
	}
	if o.options.Repeats < 1 {
		return usagef("bench: %d repeats, want at least 1", o.options.Repeats)
	}
	if !(o.floor >= 0) { // nor NaN
		return usagef("--floor %v: want a percentage", o.floor)
	}
	rows, err := o.readGrid()
	if err != nil {
		return err
	}
	g := &gridRun{flags: o, cmd: cmd, rates: map[string]float64{}}
	defer g.close()
	failed := 0
	for i := range rows {
		r, err := g.measure(&rows[i])
		if cmd.Context().Err() != nil {
			return cmd.Context().Err()
		}
		out := gridResult{Row: rows[i], Mode: rows[i].Mode.String(), Result: r, Floor: o.floor / 100, Below: []bench.KernelResult{}}
		if err != nil {
			failed++
			out.Error = err.Error()
			note(cmd, "%s:%d: %v", o.grid, rows[i].Line, err)
		} else if below := r.Below(out.Floor); below != nil {
			out.Below = below
		}
		if err := g.print(&out, i == 0); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("bench: %d of %d rows failed", failed, len(rows))
	}
	return nil
}

func (o *benchFlags) readGrid() ([]bench.Row, error) {
	f, err := os.Open(o.grid)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := bench.ReadGrid(f)
	if err != nil {
		return nil, usagef("%s: %v", o.grid, err)
	}
	for _, r := range rows {
		if r.Device == "" {
			continue
		}
		if err := devices.Check(r.Device); err != nil {
			return nil, usagef("%s: line %d: %v", o.grid, r.Line, err)
		}
	}
	return rows, nil
}

// measure measures one row on a device of its own, so that what a row leaves behind
// slows down no other.
func (g *gridRun) measure(row *bench.Row) (*bench.Result, error) {
	ctx, start := g.cmd.Context(), time.Now()
	if err := g.open(ctx, row.Model); err != nil {
		return nil, err
	}
	load := time.Since(start)
	flags := g.flags.device
	if row.Device != "" {
		flags.name = row.Device
	}
	dev, config, err := flags.open(g.cmd)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	opt, shape := row.Set(g.flags.options), devices.Options{Threads: flags.threads}
	opt.Cache, opt.Config, opt.Load, opt.Start, opt.Threads = flags.kv.CacheType, config, load, start, dev.Threads(shape)
	opt.ReadRate = g.rate(dev.Name(), dev.ReadRate(shape))
	opt.Kernels = opt.Kernels || opt.ReadRate != nil && opt.Decode > 0
	return bench.Run(ctx, g.model, dev, opt)
}

// rate measures the bandwidth of a device once in a run.
func (g *gridRun) rate(device string, measure func(context.Context) (float64, error)) func(context.Context) (float64, error) {
	if measure == nil {
		return nil
	}
	return func(ctx context.Context) (rate float64, err error) {
		if rate, known := g.rates[device]; known {
			return rate, nil
		}
		if rate, err = measure(ctx); err == nil {
			g.rates[device] = rate
		}
		return rate, err
	}
}

// open makes a model the current one.
func (g *gridRun) open(ctx context.Context, name string) (err error) {
	if g.model != nil && g.name == name {
		return nil
	}
	if err := g.close(); err != nil {
		return err
	}
	g.model, err = openModel(ctx, name, openFile)
	g.name = name
	return err
}

func (g *gridRun) close() error {
	m := g.model
	if g.model = nil; m == nil {
		return nil
	}
	return m.Close()
}

// print prints a row as soon as it is measured, so that an interrupted run shows what
// it has; the columns have fixed widths therefore.
func (g *gridRun) print(r *gridResult, first bool) error {
	w := g.cmd.OutOrStdout()
	if g.flags.json {
		if r.Result != nil && !g.flags.options.Kernels {
			r.Result.Kernels = nil
		}
		return printJSON(g.cmd, r)
	}
	const columns = "%-6s %-8s %5v %6v %24s %10s %24s %8s %9s  %s\n"
	var b strings.Builder
	if first {
		fmt.Fprintf(&b, columns, "MODE", "DEVICE", "BATCH", "PROMPT", "TOK/S", "N@DEPTH", "TOK/S", "OF READ", "COMPILE S", "MODEL")
	}
	row, decode := &r.Row, fmt.Sprintf("%d@%d", r.Row.Decode, r.Row.Depth)
	if r.Result == nil {
		fmt.Fprintf(&b, columns, r.Mode, row.Device, row.Batch, row.Prompt, "failed", decode, "failed", "-", "-", row.Model)
	} else {
		fmt.Fprintf(&b, columns, r.Mode, r.Result.Device, row.Batch, row.Prompt, ratesText(r.Result.Prompt.Rates), decode, ratesText(r.Result.Decode.Rates),
			fmt.Sprintf("%.1f %%", 100*r.Result.Fraction), fmt.Sprintf("%.2f", r.Result.Compile), row.Model)
	}
	for _, k := range r.Below {
		fmt.Fprintf(&b, "  below: %.1f %% of the bandwidth, %d x %.4g us, %.1f MB, %s: %s (%s)\n",
			100*k.Fraction, k.Count, k.Time/float64(k.Count), float64(k.Memory)/1e6, k.Role, k.Name, strings.Join(k.Plan, "; "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
