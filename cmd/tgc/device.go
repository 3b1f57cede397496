package main

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tgc/engine"
	"tgc/llm"
	"tgc/nn"
	"tgc/runtime/devices"
	"tgc/search"
	"tgc/search/database"
)

// deviceFlags are the flags of every command that runs kernels.
type deviceFlags struct {
	name    string
	mode    modeFlag
	kv      cacheFlag
	threads int
	trace   io.Writer // of the device's queue; nil: none
}

func (d *deviceFlags) register(f *pflag.FlagSet) {
	f.StringVar(&d.name, "device", "", "device: "+devices.Names()+" (default: the best one present)")
	f.IntVar(&d.threads, "threads", 0, "CPU workers (default: all cores)")
}

// registerModes adds the flags that choose how numbers are computed.
func (d *deviceFlags) registerModes(f *pflag.FlagSet) {
	registerMode(f, &d.mode)
	registerCache(f, &d.kv)
}

func registerMode(f *pflag.FlagSet, mode *modeFlag) {
	f.Var(mode, "mode", "arithmetic of matrix products: "+strings.Join(nn.NumericNames(), ", "))
}

// modeFlag reads a numeric mode.
type modeFlag struct{ nn.Numeric }

// Set parses a mode's name.
func (m *modeFlag) Set(name string) (err error) {
	m.Numeric, err = nn.ParseNumeric(name)
	return err
}

// Type names the flag's values in help.
func (m *modeFlag) Type() string { return "mode" }

func registerCache(f *pflag.FlagSet, kv *cacheFlag) {
	f.Var(kv, "kv", "type of the key and value cache: "+strings.Join(llm.CacheTypes(), ", "))
}

// cacheFlag reads a type of the cache.
type cacheFlag struct{ llm.CacheType }

// Set parses a type's name.
func (c *cacheFlag) Set(name string) (err error) {
	c.CacheType, err = llm.ParseCacheType(name)
	return err
}

// Type names the flag's values in help.
func (c *cacheFlag) Type() string { return "type" }

// check refuses numbers of threads that there cannot be.
func (d *deviceFlags) check() error {
	if d.threads < 0 || d.threads > devices.MaxThreads {
		return usagef("--threads %d: want 1 to %d", d.threads, devices.MaxThreads)
	}
	return nil
}

// open opens the device and reads the options; it names the device on stderr
// when the user did not choose it.
func (d *deviceFlags) open(cmd *cobra.Command) (*devices.Device, engine.Config, error) {
	config, err := d.config(cmd)
	if err != nil {
		return nil, config, err
	}
	dev, remark, err := devices.Open(cmd.Context(), d.name, devices.Options{Threads: d.threads, CacheDir: config.CacheDir, Trace: d.trace})
	if errors.Is(err, devices.ErrUnknown) {
		return nil, config, usagef("--device: %v", err)
	}
	if err != nil {
		return nil, config, err
	}
	if remark != "" {
		note(cmd, "%s", remark)
	}
	base := config
	if config.Beam > 0 {
		config.Plans = onlineSearch(cmd, dev, d.threads, base)
	}
	if config.StepBeam > 0 {
		config.Steps = stepSearch(cmd, dev, d.threads, base)
	}
	return dev, config, nil
}

// onlineTime is what a search takes of one kernel when it is compiled, stepTime of a step that is
// captured.
const (
	onlineTime = 10 * time.Second
	stepTime   = 90 * time.Second
)

// stepSearch searches the kernels of steps when they are captured: TGC_JITBEAM.
func stepSearch(cmd *cobra.Command, dev *devices.Device, threads int, config engine.Config) *search.InStep {
	s := &search.InStep{Seed: 1}
	o := &s.Tune
	o.Search, o.Budget, o.Config = search.DefaultOptions(), stepTime, config
	o.Search.Beam = config.StepBeam
	o.Bench = search.BenchOptions{Seed: 1, Limits: search.DefaultLimits(), Parallel: config.Parallel}
	o.Testers = childTesters(dev, threads, config.CacheDir)
	o.Say = func(format string, args ...any) { note(cmd, format, args...) }
	if !dev.Slow() {
		o.DB = database.Open(config.DB)
	}
	return s
}

// onlineSearch searches kernels when they are compiled: TGC_BEAM.
func onlineSearch(cmd *cobra.Command, dev *devices.Device, threads int, config engine.Config) *search.Online {
	o := &search.Online{
		Search: search.DefaultOptions(), Bench: search.BenchOptions{Seed: 1, Limits: search.DefaultLimits(), Parallel: config.Parallel},
		Testers: childTesters(dev, threads, config.CacheDir),
		Say:     func(format string, args ...any) { note(cmd, format, args...) },
	}
	if !dev.Slow() {
		o.DB = database.Open(config.DB)
	}
	o.Search.Beam, o.Search.Budget = config.Beam, onlineTime
	return o
}

func (d *deviceFlags) config(cmd *cobra.Command) (engine.Config, error) {
	if err := d.check(); err != nil {
		return engine.Config{}, err
	}
	config, err := readConfig(cmd)
	if err != nil {
		return config, err
	}
	if d.threads > 0 {
		config.Threads = d.threads
	}
	return config, nil
}

// readConfig reads the options of the environment. Plans that were found are in the user's
// folder unless they say otherwise; one that is not used is told of on stderr.
func readConfig(cmd *cobra.Command) (engine.Config, error) {
	config, err := engine.ReadConfig()
	if err != nil {
		return config, usagef("%v", err)
	}
	config.DB = cmp.Or(config.DB, database.DefaultDir())
	config.Warn = func(message string) { note(cmd, "%s", message) }
	return config, nil
}
