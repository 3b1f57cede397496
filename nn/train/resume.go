package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// What the checkpoint of a run holds besides the state of its trainer.
const (
	historyKey = "tgc.history" // as WriteCSV writes it
	dataKey    = "tgc.data"    // what the order of the samples depends on
)

// checkpoint writes the state of the run, if it is to be kept.
func (r *Run) checkpoint(ctx context.Context) error {
	if r.options.Checkpoint == "" {
		return nil
	}
	var history strings.Builder
	if err := r.History.WriteCSV(&history); err != nil {
		return err
	}
	return r.save(ctx, r.options.Checkpoint, map[string]string{historyKey: history.String(), dataKey: r.options.Data.String()})
}

// goOn takes up the run of a checkpoint, if there is one.
func (r *Run) goOn(ctx context.Context) error {
	path := r.options.Checkpoint
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	metadata, err := r.resume(ctx, path)
	if err != nil {
		return err
	}
	text, ok := metadata[historyKey]
	if !ok {
		return fmt.Errorf("%s: it has no history: not a checkpoint of Fit", path)
	}
	if had, have := metadata[dataKey], r.options.Data.String(); had != have {
		return fmt.Errorf("%s: the run took %s; this one takes %s", path, had, have)
	}
	if r.History, err = ReadHistory(strings.NewReader(text)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r.began = r.began.Add(-time.Duration(r.History.Last().Seconds * float64(time.Second)))
	return nil
}
