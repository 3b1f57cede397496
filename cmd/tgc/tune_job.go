package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tgc/nn"
	"tgc/search/job"
)

// withJob are the flags that go with --job: the file says all else.
var withJob = map[string]bool{
	"job": true, "json": true, "threads": true,
	"serve": true, "token": true, "tls-cert": true, "tls-key": true, "lease": true,
}

// otherFlags lists the flags that were given, but for some.
func otherFlags(cmd *cobra.Command, some map[string]bool) string {
	var list []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !some[f.Name] {
			list = append(list, "--"+f.Name)
		}
	})
	return strings.Join(list, ", ")
}

// jobResult is what tune --job --json prints.
type jobResult struct {
	Runs    []*jobRun `json:"runs"`
	Seconds float64   `json:"seconds"`
}

// jobRun is one model in one mode on one device.
type jobRun struct {
	Device string        `json:"device"`
	Model  string        `json:"model"`
	Mode   string        `json:"mode"`
	Steps  []*tuneReport `json:"steps,omitempty"`
	Error  string        `json:"error,omitempty"`
	Note   string        `json:"note,omitempty"`
}

// title names a run.
func (r *jobRun) title() string {
	return strings.Join(strings.Fields(r.Device+" "+r.Model+" "+r.Mode), " ")
}

// runJob does what a file says, one run after the other, whatever becomes of each. The time that
// is left is shared by the runs that are left.
func (o *tuneFlags) runJob(cmd *cobra.Command) error {
	j, err := o.readJob(cmd)
	if err != nil {
		return err
	}
	end, err := o.coordinate(cmd)
	if err != nil {
		return err
	}
	defer end()
	start := time.Now()
	result, failed := &jobResult{Runs: []*jobRun{}}, 0
	at := &jobDevice{flags: o, cmd: cmd}
	defer at.close()
	runs := j.Runs()
	for i, run := range runs {
		if cmd.Context().Err() != nil {
			break
		}
		r := &jobRun{Device: run.Device, Model: run.Model, Mode: run.Mode.String()}
		prefix := fmt.Sprintf("[%d/%d %s] ", i+1, len(runs), r.title())
		result.Runs = append(result.Runs, r)
		budget := time.Until(start.Add(j.Budget)) / time.Duration(len(runs)-i)
		if budget <= 0 {
			r.Note = "no time left: the next run of the job goes on"
			continue
		}
		r.Steps, err = at.tune(run, o.jobSteps(j, run), budget, prefix)
		if err != nil && cmd.Context().Err() == nil {
			r.Error = oneLine(err.Error())
			failed++
			note(cmd, "%s%s", prefix, r.Error)
		}
	}
	result.Seconds = round(time.Since(start).Seconds())
	if err := result.print(cmd, o.json); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d runs of the job failed", failed, len(runs))
	}
	return context.Cause(cmd.Context())
}

// readJob reads the file, and sets the flags to what it says.
func (o *tuneFlags) readJob(cmd *cobra.Command) (*job.Job, error) {
	if other := otherFlags(cmd, withJob); other != "" {
		return nil, usagef("tune: --job says what %s would", other)
	}
	f, err := os.Open(o.job)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, job.MostBytes+1))
	if err != nil {
		return nil, err
	}
	j, err := job.Parse(text, job.Job{Modes: []nn.Numeric{0}, Devices: []string{""}, Context: o.context, Depth: o.depth, Beam: o.beam, Priced: o.priced, Seed: o.seed, Fusion: o.fusion})
	if err != nil {
		return nil, fmt.Errorf("%s:%w", o.job, err)
	}
	o.db, o.log, o.context, o.depth, o.beam, o.priced, o.seed = j.DB, j.Log, j.Context, j.Depth, j.Beam, j.Priced, j.Seed
	o.fusion = j.Fusion
	o.keepBits, o.again = j.KeepBits, j.Again
	if j.Scratch {
		o.start = "scratch"
	}
	return j, nil
}

// jobSteps are those of a run; a graph is one by itself.
func (o *tuneFlags) jobSteps(j *job.Job, run job.Run) []job.Step {
	switch {
	case job.IsGraph(run.Model):
		return []job.Step{{}}
	case len(j.Steps) == 0:
		return []job.Step{{Text: "decode", Batch: 1, Tokens: 1, Depth: o.depth}}
	}
	return o.complete(j.Steps)
}

// jobDevice is the device of the runs that are under way, opened once for all of them.
type jobDevice struct {
	flags *tuneFlags
	cmd   *cobra.Command
	name  string
	tuner *tuner
	err   error // why there is none
}

// open opens a device, unless it is open, or has been refused.
func (d *jobDevice) open(name string) error {
	if d.name == name && (d.tuner != nil || d.err != nil) {
		return d.err
	}
	d.close()
	d.name, d.flags.device.name = name, name
	d.tuner, d.err = d.flags.open(d.cmd)
	return d.err
}

func (d *jobDevice) tune(run job.Run, steps []job.Step, budget time.Duration, prefix string) ([]*tuneReport, error) {
	if err := d.open(run.Device); err != nil {
		return nil, err
	}
	d.tuner.prefix = prefix
	return d.tuner.tune(d.cmd.Context(), tuneRun{name: run.Model, mode: run.Mode, steps: steps, budget: budget})
}

func (d *jobDevice) close() {
	if d.tuner != nil {
		d.tuner.close()
	}
	d.tuner, d.err = nil, nil
}

func (r *jobResult) print(cmd *cobra.Command, asJSON bool) error {
	if asJSON {
		return printJSON(cmd, r)
	}
	for _, run := range r.Runs {
		title := run.title()
		if remark := run.Error + run.Note; remark != "" {
			title += ": " + remark
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "== %s\n", title); err != nil {
			return err
		}
		if err := (&tuneResult{Steps: run.Steps}).print(cmd, false, true); err != nil {
			return err
		}
	}
	return nil
}
