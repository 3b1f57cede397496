package train

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"tgc/internal/lists"
	"tgc/nn/plot"
)

// Record is what was measured at a step.
type Record struct {
	Step    int     // steps made
	Epoch   float64 // passes over the data
	Seconds float64 // since the run began, without breaks
	// Values are means since the record before ("loss" and the metrics), means over the
	// validation data ("valid.loss" and so on), and of the step itself the learning rate
	// ("rate") and the norm of the gradients ("norm").
	Values map[string]float64
}

// String is a line: the step, the loss, the other values by name, the time.
func (r Record) String() string {
	text := fmt.Sprintf("step %5d  epoch %.1f  loss %.4f", r.Step, r.Epoch, r.Values["loss"])
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		if name != "loss" {
			text += fmt.Sprintf("  %s %.4g", name, r.Values[name])
		}
	}
	return text + fmt.Sprintf("  %.1f s", r.Seconds)
}

// History is the records of a run in order.
type History []Record

// Names lists the values that records have, sorted.
func (h History) Names() []string {
	known := make(map[string]bool)
	var names []string
	for _, r := range h {
		for name := range r.Values {
			if !known[name] {
				known[name] = true
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// Series are the values of a name with the steps at which they were measured.
func (h History) Series(name string) (steps []int, values []float64) {
	for _, r := range h {
		if v, ok := r.Values[name]; ok {
			steps, values = append(steps, r.Step), append(values, v)
		}
	}
	return steps, values
}

// Last is the last record; without any it is empty.
func (h History) Last() Record {
	if len(h) == 0 {
		return Record{}
	}
	return h[len(h)-1]
}

// The first columns of a table of records.
var columns = []string{"step", "epoch", "seconds"}

// WriteCSV writes a table with a line for each record: step, epoch, seconds, then the
// values by name. Numbers are written so that reading gives the same bits.
func (h History) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	names := h.Names()
	rows := [][]string{append(slices.Clone(columns), names...)}
	for _, r := range h {
		row := []string{strconv.Itoa(r.Step), number(r.Epoch), number(r.Seconds)}
		for _, name := range names {
			cell := ""
			if v, ok := r.Values[name]; ok {
				cell = number(v)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return out.WriteAll(rows)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// ReadHistory reads what WriteCSV wrote. Of the first columns only the steps must be there.
func ReadHistory(r io.Reader) (History, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("train: history: %w", err)
	}
	if len(rows) == 0 || !slices.Contains(rows[0], columns[0]) {
		return nil, fmt.Errorf("train: history: the table has no column %q", columns[0])
	}
	var h History
	for i, row := range rows[1:] {
		record, err := readRecord(rows[0], row)
		if err != nil {
			return nil, fmt.Errorf("train: history: line %d: %w", i+2, err)
		}
		h = append(h, record)
	}
	return h, nil
}

func readRecord(names, row []string) (Record, error) {
	r := Record{Values: make(map[string]float64)}
	for i, cell := range row {
		if cell == "" {
			continue
		}
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil {
			return r, err
		}
		switch names[i] {
		case columns[0]:
			r.Step = int(v)
		case columns[1]:
			r.Epoch = v
		case columns[2]:
			r.Seconds = v
		default:
			r.Values[names[i]] = v
		}
	}
	return r, nil
}

// SVG draws values by step as a picture; without names the losses. Where all are above 0
// the scale is logarithmic.
func (h History) SVG(title string, names ...string) []byte {
	if len(names) == 0 {
		names = slices.DeleteFunc([]string{"loss", "valid.loss"}, func(name string) bool { return !slices.Contains(h.Names(), name) })
	}
	picture := plot.Lines{Title: title, Log: true}
	for _, name := range names {
		steps, values := h.Series(name)
		across := lists.Map(steps, func(step int) float64 { return float64(step) })
		picture.Lines = append(picture.Lines, plot.Line{Name: name, X: across, Y: values})
		picture.Log = picture.Log && !slices.ContainsFunc(values, func(v float64) bool { return v <= 0 })
	}
	return picture.SVG()
}

// Watch is a value of records with the direction that is better.
type Watch struct {
	Name   string
	Larger bool // an accuracy, say; a loss is better when smaller
}

// better reports a value that improves on another one; anything does on NaN.
func (w Watch) better(value, than float64) bool {
	if w.Larger {
		value, than = -value, -than
	}
	return value < than || than != than && value == value
}

// best is the place of the first best value, -1 without any.
func (w Watch) best(values []float64) int {
	best := -1
	for i, v := range values {
		if best < 0 || w.better(v, values[best]) {
			best = i
		}
	}
	return best
}

// Best is the record with the best value.
func (h History) Best(w Watch) (Record, bool) {
	having := lists.Filter(h, func(r Record) bool { _, ok := r.Values[w.Name]; return ok })
	i := w.best(lists.Map(having, func(r Record) float64 { return r.Values[w.Name] }))
	if i < 0 {
		return Record{}, false
	}
	return having[i], true
}
