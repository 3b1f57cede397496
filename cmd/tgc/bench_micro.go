package main

import (
	"strings"

	"github.com/spf13/cobra"

	"tgc/internal/lists"
	"tgc/internal/microbench"
	"tgc/runtime/devices"
	"tgc/target"
)

// runMicro measures plain kernels on each device.
func (o *benchFlags) runMicro(cmd *cobra.Command) error {
	for _, n := range o.sizes {
		if n < 1 || n > 1<<14 {
			return usagef("--sizes %d: want 1 to %d", n, 1<<14)
		}
	}
	for _, name := range strings.Split(o.device.name, ",") {
		if err := o.microOn(cmd, name); err != nil {
			return err
		}
	}
	return nil
}

func (o *benchFlags) microOn(cmd *cobra.Command, name string) error {
	flags := o.device
	flags.name = name
	dev, config, err := flags.open(cmd)
	if err != nil {
		return err
	}
	defer dev.Close()
	shape := devices.Options{Threads: o.device.threads}
	opt := microbench.DefaultOptions()
	opt.Sizes, opt.Config, opt.Threads = o.sizes, config, dev.Threads(shape)
	opt.ProcessorTime = dev.Target().Kind == target.CPU
	opt.Peak, opt.Read, opt.Copy = dev.PeakRate(shape), dev.ReadRate(shape), dev.CopyRate(shape)
	if cmd.Flags().Changed("repeats") {
		opt.Repeats = o.options.Repeats
	}
	if !dev.Fast() { // an interpreter: sizes at which it ends
		opt.Sizes, opt.Elems = smallest(opt.Sizes, 64), 1<<12
	}
	if err := opt.Check(); err != nil {
		return usagef("bench: %v", err)
	}
	done := working(cmd, "measuring plain kernels")
	r, err := microbench.Run(cmd.Context(), dev, opt)
	done()
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(cmd, r)
	}
	return printTable(cmd.OutOrStdout(), r.Table())
}

// smallest keeps sizes up to a limit, the limit itself if none is left.
func smallest(sizes []int, limit int) []int {
	list := lists.Filter(sizes, func(n int) bool { return n <= limit })
	if len(list) == 0 {
		list = []int{limit}
	}
	return list
}
