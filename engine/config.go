package engine

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"tgc/heuristic"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/pass"
	"tgc/schedule"
)

// Config holds every option. It is read once, from the environment and the
// command line; what changes code is part of cache keys.
type Config struct {
	Debug     int                // TGC_DEBUG: what to print on stderr, see debug.go
	CacheDir  string             // TGC_CACHE_DIR: compiled objects and schedules; empty for the user's cache folder
	Threads   int                // CPU workers, 0 for all cores
	Rules     schedule.RuleSet   // rules switched off (TGC_RULES_OFF, names separated by commas)
	Knobs     heuristic.Knobs    // MV, MV_BLOCKSIZE, MV_THREADS_PER_ROW, MV_ROWS_PER_THREAD
	Decide    schedule.Decisions // of rules on values, before those of the database (TGC_DECIDE)
	With      []plan.Opt         // added to the plans of kernels that accept them (TGC_WITH)
	Verify    bool               // run the form's verifier after every pass (TGC_VERIFY)
	RecordsBy *Decision          // what chose Records; nil: the price, or the user
	Records   Records            // TGC_RECORDS: whether packed weights are interleaved (packed.Records)
	Control   *pass.Control      // passes left out, printed, stopped after, counted; may be nil
	Explain   bool               // keep the rules that were declined, for Compiled.Explain
	Finite    Watch              // stop at the first kernel that writes such a value (TGC_FINITE)
	Plans     Plans              // asked for a plan before the database and the heuristics; may be nil
	Schedules *Schedules         // schedules that are kept from one process to the next; may be nil
	DB        string             // TGC_DB: folder of plans that searches have found; empty: none
	IgnoreDB  bool               // TGC_IGNORE_DB
	Beam      int                // TGC_BEAM: who opens a device makes Plans of it, package search has them
	Steps     Steps              // asked for plans when a step is captured; may be nil
	StepBeam  int                // TGC_JITBEAM: who opens a device makes Steps of it
	Parallel  int                // TGC_PARALLEL: candidates that a search compiles at once; 0: one for each processor
	Warn      func(string)       // told of plans that are not used; may be nil
}

// Option is one row of the documented table of options.
type Option struct {
	Name, Doc string
	set       func(c *Config, value string) error
}

// prefix is what names of options begin with.
const prefix = "TGC_"

// Old is the name that the option had before all had one prefix, and that still counts where the
// new one is not set; empty for the others.
func (o Option) Old() string {
	old := strings.TrimPrefix(o.Name, prefix)
	if slices.Contains(withoutPrefix, old) {
		return old
	}
	return ""
}

var withoutPrefix = []string{"MV", "MMA", "MV_BLOCKSIZE", "MV_THREADS_PER_ROW", "MV_ROWS_PER_THREAD"}

// value is what the environment says of the option, and by which name.
func (o Option) value() (name, value string) {
	if v := os.Getenv(o.Name); v != "" || o.Old() == "" {
		return o.Name, v
	}
	return o.Old(), os.Getenv(o.Old())
}

// Options lists every environment variable that tgc reads.
var Options = []Option{
	{"TGC_DEBUG", "what a compilation prints on stderr: " + debugText() + "; and a compiler bug shows its stack", func(c *Config, v string) error { return setInt(&c.Debug, v, 0, len(DebugLevels)) }},
	{"TGC_CACHE_DIR", "folder of compiled objects and schedules; default: tgc in the user's cache folder", func(c *Config, v string) error { c.CacheDir = v; return nil }},
	{"TGC_RULES_OFF", "fusion rules to switch off, by name or key, separated by commas", func(c *Config, v string) error { return c.rulesOff(v) }},
	{"TGC_WITH", "Opts that are added to the plan of every kernel that accepts them: \"AHEAD 32; PREFETCH p* 4096\", p* is every buffer", func(c *Config, v string) error {
		with, err := plan.Parse(v)
		c.With = with.Opts
		return err
	}},
	{"TGC_DECIDE", "what fusion rules do with some values whatever prices say, as tgc compile --explain names them: \"split-grid 9f3a64d1c0ffee12 8; R6p 0123456789abcdef decline\"", func(c *Config, v string) (err error) {
		c.Decide, err = schedule.ParseDecisions(v)
		return err
	}},
	{"TGC_DB", "folder of plans that searches have found (tgc tune); default of the command: tgc/plans in the user's data folder", func(c *Config, v string) error { c.DB = v; return nil }},
	{"TGC_IGNORE_DB", "1 uses no plan of that folder", func(c *Config, v string) error { return setBool(&c.IgnoreDB, v) }},
	{"TGC_BEAM", "search the plan of every kernel when it is compiled, with so many plans from round to round; what is found is stored in TGC_DB", func(c *Config, v string) error { return setInt(&c.Beam, v, 0, 1024) }},
	{"TGC_JITBEAM", "search the kernels of every step when it is captured, with so many plans from round to round, and take what makes the step faster; what is found is stored in TGC_DB", func(c *Config, v string) error { return setInt(&c.StepBeam, v, 0, 1024) }},
	{"TGC_PARALLEL", "how many candidates a search lowers and assembles at once; default: one for each processor", func(c *Config, v string) error { return setInt(&c.Parallel, v, 1, 1024) }},
	{"TGC_RECORDS", "1 interleaves the rows of packed weights for a CPU, 0 reads them in the file's order, 2 to 9 interleaves those of up to so many bits a weight; default: what is faster in the mode, or what tgc tune has found", func(c *Config, v string) error {
		bits := 0
		err := setInt(&bits, v, 0, packed.MostRecordBits)
		switch c.Records = Records(bits); bits {
		case 0:
			c.Records = RecordsNever
		case 1:
			c.Records = RecordsAlways
		}
		return err
	}},
	{"TGC_VERIFY", "1 runs the verifier of the form after every pass", func(c *Config, v string) error { return setBool(&c.Verify, v) }},
	{"TGC_FINITE", "stop at the first kernel that writes a NaN (1), or a NaN or an infinity (2), and name it with the ranges of its inputs; slow", func(c *Config, v string) error { return setInt((*int)(&c.Finite), v, 0, 2) }},
	{"TGC_DEVICE", "device of programs that use the library and name none; default: the best one present", elsewhere},
	{"TGC_LLVM", "path of libLLVM; default: the newest of 15 to 22 that is installed", elsewhere},
	{"TGC_CUDA_PATH", "libcuda, or a folder with it and with ptxas, nvdisasm and libnvrtc", elsewhere},
	{"TGC_CUDA_SOURCE", "what kernels of a GPU are printed as: ptx, or c for CUDA C, which libnvrtc compiles; default: ptx", elsewhere},
	{"TGC_ORACLE", "folder of a larger set of checked answers for tests; default: ../shared/oracle beside the checkout", elsewhere},
	{"TGC_CUDA_SERIAL", "1 waits for every kernel on a GPU, so that a fault names the one at fault", elsewhere},
	{"TGC_MV", "0 switches the matvec heuristic off", func(c *Config, v string) error {
		on := true
		err := setBool(&on, v)
		c.Knobs.NoMatvec = !on
		return err
	}},
	{"TGC_MMA", "0 uses no matrix instructions, of a GPU or CPU", func(c *Config, v string) error {
		on := true
		err := setBool(&on, v)
		c.Knobs.NoMatrices = !on
		return err
	}},
	{"TGC_MV_BLOCKSIZE", "matvec: rows per block", func(c *Config, v string) error { return setInt(&c.Knobs.BlockSize, v, 1, 1024) }},
	{"TGC_MV_THREADS_PER_ROW", "matvec: threads that share a row", func(c *Config, v string) error { return setInt(&c.Knobs.ThreadsPerRow, v, 1, 1024) }},
	{"TGC_MV_ROWS_PER_THREAD", "matvec: rows that a thread holds at once", func(c *Config, v string) error { return setInt(&c.Knobs.RowsPerThread, v, 1, 64) }},
}

// elsewhere marks a variable that finds libraries and tools: the package that
// opens them reads it, since programs without an engine need it too. It changes
// no code that is generated.
func elsewhere(*Config, string) error { return nil }

// control is what a compilation asks of its passes.
func (c *Config) control() *pass.Control {
	control := c.Control.Child()
	control.Verify = control.Verify || c.Verify
	return control
}

// ReadConfig reads the options from the environment.
func ReadConfig() (Config, error) {
	var c Config
	for _, o := range Options {
		if name, v := o.value(); v != "" {
			if err := o.set(&c, v); err != nil {
				return c, fmt.Errorf("%s=%q: %w", name, v, err)
			}
		}
	}
	return c, nil
}

func (c *Config) rulesOff(list string) (err error) {
	c.Rules, err = schedule.ParseRules(list, c.Rules)
	return err
}

func setInt(into *int, v string, lo, hi int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < lo || n > hi {
		return fmt.Errorf("want a number from %d to %d", lo, hi)
	}
	*into = n
	return nil
}

func setBool(into *bool, v string) error {
	switch v {
	case "0", "false", "off":
		*into = false
	case "1", "true", "on":
		*into = true
	default:
		return fmt.Errorf("want 0 or 1")
	}
	return nil
}
