package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tgc/runtime/devices"
)

func newDevices() *cobra.Command {
	var measure, asJSON bool
	var threads int
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "Show what is present, with limits and measured rates",
		Long: "List the devices of this machine. --measure adds the bandwidth of reads from memory\n" +
			"(GB/s, with one thread and with all) and the peak rate of f32 multiply-adds.",
		Example: "  tgc devices\n  tgc devices --measure --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if threads < 0 || threads > devices.MaxThreads {
				return usagef("--threads %d: want 1 to %d", threads, devices.MaxThreads)
			}
			list, err := devices.List(cmd.Context(), devices.Options{Threads: threads})
			if err != nil {
				return err
			}
			done := working(cmd, "measuring")
			defer done()
			for i := range list {
				if measure {
					if err := devices.Measure(cmd.Context(), &list[i]); err != nil {
						return err
					}
				}
			}
			done()
			if asJSON {
				return printJSON(cmd, list)
			}
			return printDevices(cmd, list)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&measure, "measure", false, "measure bandwidth and arithmetic (some seconds)")
	f.IntVar(&threads, "threads", 0, "CPU workers (default: all cores)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printDevices(cmd *cobra.Command, list []devices.Info) error {
	rows := [][]string{{"DEVICE", "NAME", "THREADS", "TARGET", "LIMITS", "MEASURED"}}
	for _, d := range list {
		limits := d.Absent
		if d.VectorBytes > 0 {
			limits = fmt.Sprintf("%d-byte vectors, L1 %s, L2 %s", d.VectorBytes, byteSize(int64(d.CacheL1)), byteSize(int64(d.CacheL2)))
			if len(d.Contractions) > 0 {
				limits += ", " + strings.Join(d.Contractions, " ")
			}
		}
		rows = append(rows, []string{d.Device, d.Name, fmt.Sprint(d.Threads), d.Target, limits, measuredText(&d)})
	}
	return printTable(cmd.OutOrStdout(), rows)
}

func measuredText(d *devices.Info) string {
	var parts []string
	for _, threads := range slices.Sorted(maps.Keys(d.ReadRate)) {
		parts = append(parts, fmt.Sprintf("%.1f GB/s read by %s", d.ReadRate[threads], threads))
	}
	for _, dtype := range slices.Sorted(maps.Keys(d.Arithmetic)) {
		parts = append(parts, fmt.Sprintf("%.0f GFLOP/s %s", d.Arithmetic[dtype], dtype))
	}
	return strings.Join(parts, ", ")
}
