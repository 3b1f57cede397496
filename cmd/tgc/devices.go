package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tgc/runtime/devices"
)

func newDevices() *cobra.Command {
	var measure, asJSON bool
	var report, device string
	var threads int
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "Show what is present, with limits and measured rates",
		Long: "List the devices of this machine. --measure adds the bandwidth of reads from memory\n" +
			"(GB/s, with one thread and with all) and the peak rate of f32 multiply-adds. --report brings a\n" +
			"Jetson up, runs a kernel on it and writes a trace of all that: see tgc hcq check.",
		Example: "  tgc devices\n  tgc devices --measure --json\n  tgc devices --report jetson.trace",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if threads < 0 || threads > devices.MaxThreads {
				return usagef("--threads %d: want 1 to %d", threads, devices.MaxThreads)
			}
			if report != "" {
				return writeReport(cmd, device, report)
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
	f.StringVar(&report, "report", "", "write a trace of a Jetson to this file, of a kernel and all before it")
	f.StringVar(&device, "device", "tegra", "what --report is of: tegra or tegra:emu")
	return cmd
}

// writeReport writes the trace of a device, also where something fails.
func writeReport(cmd *cobra.Command, device, path string) error {
	if err := devices.Check(device); err != nil {
		return usagef("--device: %v", err)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	to := bufio.NewWriter(file)
	err = devices.Report(cmd.Context(), device, to)
	if writeErr := errors.Join(to.Flush(), file.Close()); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	if err != nil {
		return fmt.Errorf("%w (the report is in %s)", err, path)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: the values of the kernel and of the copy are right; the report is in %s\n", device, path)
	return nil
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
