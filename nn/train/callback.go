package train

import (
	"bytes"
	"context"

	"tgc/internal/atomicfile"
	"tgc/nn/events"
)

// WriteCSV keeps the history as a table in a file.
func WriteCSV(path string) Callback {
	return func(_ context.Context, r *Run) error {
		var table bytes.Buffer
		if err := r.History.WriteCSV(&table); err != nil {
			return err
		}
		return atomicfile.Write(path, table.Bytes())
	}
}

// WriteSVG keeps a picture of values by step in a file: see History.SVG.
func WriteSVG(path, title string, names ...string) Callback {
	return func(_ context.Context, r *Run) error {
		return atomicfile.Write(path, r.History.SVG(title, names...))
	}
}

// WriteEvents adds each record's values to an event file of TensorBoard in a folder.
func WriteEvents(folder string) Callback {
	var w *events.Writer
	return func(_ context.Context, r *Run) (err error) {
		if w == nil {
			if w, err = events.NewWriter(folder); err != nil {
				return err
			}
		}
		last := r.History.Last()
		return w.Scalars(last.Step, last.Values)
	}
}
