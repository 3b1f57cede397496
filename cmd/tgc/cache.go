package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tgc/internal/cachefile"
)

func newCache() *cobra.Command {
	var clear, asJSON bool
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Show where compiled kernels and schedules are kept and how much there is, or clear them",
		Long: "Compiled kernels, and schedules of models, are kept by content, up to 1 GiB, so that a model starts faster the\n" +
			"next time. TGC_CACHE_DIR names another folder. What is cleared is compiled again when\n" +
			"it is needed; plans that searches have found (TGC_DB) are kept.",
		Example: "  tgc cache\n  tgc cache --clear",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := readConfig(cmd)
			if err != nil {
				return err
			}
			cache := cachefile.Open(config.CacheDir)
			defer cache.Close()
			if !cache.Enabled() {
				return errors.New("cache: there is none: its folder cannot be made (TGC_CACHE_DIR names one)")
			}
			entries, bytes := cache.Usage()
			if clear {
				if err := cache.Clear(); err != nil {
					return fmt.Errorf("cache: %w", err)
				}
			}
			if asJSON {
				return printJSON(cmd, map[string]any{"dir": cache.Dir(), "entries": entries, "bytes": bytes, "cleared": clear})
			}
			what := "%s: %d entries, %s\n"
			if clear {
				what = "%s: %d entries, %s, cleared\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), what, cache.Dir(), entries, byteSize(bytes))
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&clear, "clear", false, "remove what is there")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
