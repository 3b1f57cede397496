package train

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"tgc/internal/lists"
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

// ReadHistory reads what WriteCSV wrote.
func ReadHistory(r io.Reader) (History, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("train: history: %w", err)
	}
	if len(rows) == 0 || len(rows[0]) < len(columns) || !slices.Equal(rows[0][:len(columns)], columns) {
		return nil, fmt.Errorf("train: history: the table does not begin with the columns %v", columns)
	}
	names := rows[0][len(columns):]
	var h History
	for i, row := range rows[1:] {
		record, err := readRecord(names, row)
		if err != nil {
			return nil, fmt.Errorf("train: history: line %d: %w", i+2, err)
		}
		h = append(h, record)
	}
	return h, nil
}

func readRecord(names, row []string) (Record, error) {
	var err error
	value := func(cell string) float64 {
		v, e := strconv.ParseFloat(cell, 64)
		if err == nil {
			err = e
		}
		return v
	}
	r := Record{Step: int(value(row[0])), Epoch: value(row[1]), Seconds: value(row[2]), Values: make(map[string]float64)}
	for i, name := range names {
		if cell := row[len(columns)+i]; cell != "" {
			r.Values[name] = value(cell)
		}
	}
	return r, err
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
