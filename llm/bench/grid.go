package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tgc/nn"
)

// GridForm is a line of a grid.
const GridForm = "MODEL MODE DEVICE BATCH PROMPT N DEPTH"

// Row is one line of a grid: what to measure of which model.
type Row struct {
	Line   int        `json:"line"` // in the file, from 1
	Model  string     `json:"model"`
	Mode   nn.Numeric `json:"-"`
	Device string     `json:"device"` // empty: the best one present
	Batch  int        `json:"batch"`
	Prompt int        `json:"prompt"`
	Decode int        `json:"n"`
	Depth  int        `json:"depth"`
}

// String is the row as a line of a grid.
func (r *Row) String() string {
	device := r.Device
	if device == "" {
		device = anyDevice
	}
	return fmt.Sprintf("%s %s %s %d %d %d %d", r.Model, r.Mode, device, r.Batch, r.Prompt, r.Decode, r.Depth)
}

// anyDevice stands for the device that a row leaves open.
const anyDevice = "-"

// ReadGrid reads a grid: a row a line, in the form GridForm; # begins a comment. The
// error names every line that is wrong.
func ReadGrid(r io.Reader) ([]Row, error) {
	var rows []Row
	var wrong []error
	scanner := bufio.NewScanner(r)
	for line := 1; scanner.Scan(); line++ {
		text, _, _ := strings.Cut(scanner.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		row, err := parseRow(fields)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", line, err))
			continue
		}
		row.Line = line
		rows = append(rows, row)
	}
	switch err := errors.Join(append(wrong, scanner.Err())...); {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, fmt.Errorf("no rows; a line is %s", GridForm)
	}
	return rows, nil
}

func parseRow(fields []string) (Row, error) {
	if want := len(strings.Fields(GridForm)); len(fields) != want {
		return Row{}, fmt.Errorf("%d fields, want %d: %s", len(fields), want, GridForm)
	}
	row := Row{Model: fields[0], Device: fields[2]}
	if row.Device == anyDevice {
		row.Device = ""
	}
	var err error
	if row.Mode, err = nn.ParseNumeric(fields[1]); err != nil {
		return Row{}, err
	}
	for i, number := range []*int{&row.Batch, &row.Prompt, &row.Decode, &row.Depth} {
		if *number, err = strconv.Atoi(fields[3+i]); err != nil {
			return Row{}, fmt.Errorf("%q is no number", fields[3+i])
		}
	}
	if row.Batch < 1 {
		return Row{}, fmt.Errorf("%d sequences, want at least 1", row.Batch)
	}
	opt := row.Set(Options{Repeats: 1})
	return row, opt.Check()
}

// Set returns options with what the row says.
func (r *Row) Set(o Options) Options {
	o.Batch, o.Prompt, o.Decode, o.Depth, o.Mode = r.Batch, r.Prompt, r.Decode, r.Depth, r.Mode
	return o
}

// LeastBytes is what a kernel reads from memory, in bytes a call, for its rate to be
// held against the bandwidth: the edges of a launch are most of the time of smaller ones.
const LeastBytes = 1_000_000

// Below lists the kernels of a decode step, of those that read LeastBytes of weights
// and cache or more, that read them at less than a fraction of the device's bandwidth,
// the slowest first. There are none where that is not known.
func (r *Result) Below(fraction float64) []KernelResult {
	var list []KernelResult
	if r.ReadRate == 0 {
		return nil
	}
	for _, k := range r.Kernels {
		if k.Memory >= LeastBytes && k.Fraction < fraction {
			list = append(list, k)
		}
	}
	return list
}
