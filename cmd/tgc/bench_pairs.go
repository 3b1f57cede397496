package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tgc/internal/microbench"
)

// runPairs compares programs of two everyday ops as they come, fused, with the same
// programs fenced by a CONTIGUOUS between the ops.
func (o *benchFlags) runPairs(cmd *cobra.Command, filter string) error {
	for _, n := range o.sizes {
		if n < 4 || n > 1<<12 {
			return usagef("--sizes %d: want 4 to %d", n, 1<<12)
		}
	}
	if o.options.Repeats < 1 {
		return usagef("bench: %d repeats, want at least 1", o.options.Repeats)
	}
	for _, name := range strings.Split(o.device.name, ",") {
		if err := o.pairsOn(cmd, name, filter); err != nil {
			return err
		}
	}
	return nil
}

// pairSize is the size of the matrices where --sizes says none.
const pairSize = 256

func (o *benchFlags) pairsOn(cmd *cobra.Command, name, filter string) error {
	flags := o.device
	flags.name = name
	dev, config, err := flags.open(cmd)
	if err != nil {
		return err
	}
	defer dev.Close()
	sizes := []int{pairSize}
	if cmd.Flags().Changed("sizes") {
		sizes = o.sizes
	}
	list, err := o.programs(sizes, filter)
	if err != nil {
		return err
	}
	var all []*microbench.Compared
	err = microbench.MeasureAll(cmd.Context(), dev, config, list, o.options.Repeats, func(c *microbench.Compared) error {
		for _, side := range []*microbench.Side{&c.Fused, &c.Fenced} {
			side.Price, side.Time = round(side.Price), round(side.Time)
		}
		if o.json {
			return printJSON(cmd, c)
		}
		all = append(all, c)
		return nil
	})
	if err != nil || o.json {
		return err
	}
	return printTable(cmd.OutOrStdout(), pairsTable(all))
}

// programs are those to measure: random ones where a number of them is given, else pairs.
func (o *benchFlags) programs(sizes []int, filter string) ([]microbench.Program, error) {
	var list []microbench.Program
	for _, n := range sizes {
		if o.random > 0 {
			list = append(list, microbench.RandomPrograms(o.random, n)...)
			continue
		}
		list = append(list, microbench.Pairs(n, filter)...)
	}
	list = slices.DeleteFunc(list, func(p microbench.Program) bool { return !strings.Contains(p.Name, filter) })
	if len(list) == 0 {
		return nil, usagef("bench --pairs: no program is named %q; ops are %s", filter, strings.Join(microbench.Ops(), ", "))
	}
	return list, nil
}

// pairsTable lists programs, those first that fusing slows down most.
func pairsTable(all []*microbench.Compared) [][]string {
	slices.SortStableFunc(all, func(x, y *microbench.Compared) int { return cmp.Compare(y.TimeRatio(), x.TimeRatio()) })
	rows := [][]string{{"PAIR", "SIZE", "FUSED US", "FENCED US", "RATIO", "PRICE FUSED", "PRICE FENCED", "RATIO", "KERNELS FUSED", "FENCED"}}
	for _, c := range all {
		rows = append(rows, []string{
			c.Name, fmt.Sprint(c.Size),
			fmt.Sprintf("%.4g", c.Fused.Time), fmt.Sprintf("%.4g", c.Fenced.Time), fmt.Sprintf("%.2f", c.TimeRatio()),
			fmt.Sprintf("%.4g", c.Fused.Price), fmt.Sprintf("%.4g", c.Fenced.Price), fmt.Sprintf("%.2f", c.PriceRatio()),
			fmt.Sprint(len(c.Fused.Kernels)), fmt.Sprint(len(c.Fenced.Kernels)),
		})
	}
	return rows
}
