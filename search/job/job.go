package job

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"tgc/nn"
	"tgc/runtime/devices"
)

// Job is a file: all steps of all models in all modes on all devices.
type Job struct {
	Models  []string // files, shapes or graphs
	Steps   []Step   // graphs have none
	Modes   []nn.Numeric
	Devices []string      // empty: the best one present
	Budget  time.Duration // of all
	DB      string        // empty: the usual one
	Log     string        // empty: none
	Context int
	Depth   int // of steps that say none
	Beam    int
	Priced  int
	Seed    uint64
	Fusion  float64 // part of the budget for decisions of the schedule
	// KeepBits, Again and Scratch are the flags of tgc tune.
	KeepBits, Again, Scratch bool
}

// Bounds of a job.
const (
	mostNames  = 64 // in a list
	mostRuns   = 1024
	nameBytes  = 1024
	leastTime  = time.Second
	mostTime   = 30 * 24 * time.Hour
	mostBeam   = 1024
	mostPriced = 1 << 16
)

// Run is one model in one mode on one device.
type Run struct {
	Device string
	Model  string
	Mode   nn.Numeric
}

// IsGraph reports the name of a graph in text form, which has neither steps nor modes.
func IsGraph(model string) bool { return strings.HasSuffix(model, ".uop") }

// Runs lists what a job does, device by device; a graph once.
func (j *Job) Runs() (list []Run) {
	for _, device := range j.Devices {
		for _, model := range j.Models {
			for i, mode := range j.Modes {
				if i == 0 || !IsGraph(model) {
					list = append(list, Run{device, model, mode})
				}
			}
		}
	}
	return list
}

// field is a member of a job file.
type field struct {
	name     string
	required bool
	read     func(j *Job, n *node) error
}

// fields are all members, in the order in which they are documented.
var fields = []field{
	{"models", true, func(j *Job, n *node) error { return names(n, "a model", &j.Models, anyName) }},
	{"steps", false, func(j *Job, n *node) error { return names(n, "a step", &j.Steps, ParseStep) }},
	{"modes", false, func(j *Job, n *node) error { return names(n, "a mode", &j.Modes, nn.ParseNumeric) }},
	{"devices", false, func(j *Job, n *node) error { return names(n, "a device", &j.Devices, deviceName) }},
	{"budget", true, func(j *Job, n *node) error { return n.duration(&j.Budget) }},
	{"db", false, func(j *Job, n *node) error { return n.name("a folder", &j.DB) }},
	{"log", false, func(j *Job, n *node) error { return n.name("a file", &j.Log) }},
	{"ctx", false, func(j *Job, n *node) error { return n.integer(1, MostDepth, &j.Context) }},
	{"depth", false, func(j *Job, n *node) error { return n.integer(0, MostDepth, &j.Depth) }},
	{"beam", false, func(j *Job, n *node) error { return n.integer(1, mostBeam, &j.Beam) }},
	{"priced", false, func(j *Job, n *node) error { return n.integer(0, mostPriced, &j.Priced) }},
	{"seed", false, func(j *Job, n *node) error { return n.seed(&j.Seed) }},
	{"fusion", false, func(j *Job, n *node) error { return n.part(&j.Fusion) }},
	{"keep_bits", false, func(j *Job, n *node) error { return n.truth(&j.KeepBits) }},
	{"again", false, func(j *Job, n *node) error { return n.truth(&j.Again) }},
	{"scratch", false, func(j *Job, n *node) error { return n.truth(&j.Scratch) }},
}

// Parse reads a job file. What it leaves out is as in usual. The error is an *Error.
func Parse(text []byte, usual Job) (*Job, error) {
	root, err := read(text)
	if err != nil {
		return nil, err
	}
	j := usual
	for _, m := range root.members {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == m.name })
		if i < 0 {
			return nil, m.value.wrong("no member of a job, want one of %s", fieldNames())
		}
		if err := fields[i].read(&j, m.value); err != nil {
			return nil, err
		}
	}
	for _, f := range fields {
		if f.required && !slices.ContainsFunc(root.members, func(m member) bool { return m.name == f.name }) {
			return nil, root.wrong("no %q, want it", f.name)
		}
	}
	if n := len(j.Models) * max(len(j.Modes), 1) * max(len(j.Devices), 1); n > mostRuns {
		return nil, root.wrong("%d runs (models x modes x devices), want at most %d", n, mostRuns)
	}
	return &j, nil
}

func fieldNames() string {
	var list []string
	for _, f := range fields {
		list = append(list, f.name)
	}
	return strings.Join(list, ", ")
}

// names reads a list of strings.
func names[T any](n *node, what string, into *[]T, parse func(string) (T, error)) error {
	if n.kind != isList {
		return n.wrong("%s, want a list of strings", n.found())
	}
	if len(n.list) == 0 || len(n.list) > mostNames {
		return n.wrong("%d items, want 1 to %d", len(n.list), mostNames)
	}
	*into = nil
	for _, item := range n.list {
		var text string
		if err := item.name(what, &text); err != nil {
			return err
		}
		v, err := parse(text)
		if err != nil {
			return item.wrong("%v", err)
		}
		*into = append(*into, v)
	}
	return nil
}

func anyName(text string) (string, error) { return text, nil }

func deviceName(text string) (string, error) { return text, devices.Check(text) }

// name reads a string that is not empty, and no control character in it.
func (n *node) name(what string, into *string) error {
	text, ok := n.value.(string)
	switch {
	case !ok:
		return n.wrong("%s, want a string: %s", n.found(), what)
	case text == "" || len(text) > nameBytes:
		return n.wrong("a string of %d bytes, want %s of 1 to %d", len(text), what, nameBytes)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return n.wrong("%s, want %s without control characters", n.found(), what)
	}
	*into = text
	return nil
}

func (n *node) integer(lo, hi int, into *int) error {
	text, _ := n.value.(json.Number)
	v, ok := number(string(text), lo, hi)
	if !ok {
		return n.wrong("%s, want a whole number from %d to %d", n.found(), lo, hi)
	}
	*into = v
	return nil
}

func (n *node) seed(into *uint64) error {
	text, _ := n.value.(json.Number)
	v, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return n.wrong("%s, want a whole number from 0", n.found())
	}
	*into = v
	return nil
}

// part reads a number from 0 on, below 1.
func (n *node) part(into *float64) error {
	text, _ := n.value.(json.Number)
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v >= 0 && v < 1) {
		return n.wrong("%s, want a number from 0 on, below 1", n.found())
	}
	*into = v
	return nil
}

func (n *node) truth(into *bool) error {
	v, ok := n.value.(bool)
	if !ok {
		return n.wrong("%s, want true or false", n.found())
	}
	*into = v
	return nil
}

func (n *node) duration(into *time.Duration) error {
	text, _ := n.value.(string)
	v, err := time.ParseDuration(text)
	if err != nil || v < leastTime || v > mostTime {
		return n.wrong("%s, want a time such as \"90s\", \"30m\" or \"8h\", from %v to %v", n.found(), leastTime, mostTime)
	}
	*into = v
	return nil
}
