package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tgc/internal/lists"
)

// printJSON prints one value as one line of JSON.
func printJSON(cmd *cobra.Command, v any) error {
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printTable prints rows in aligned columns; on a terminal, of at most its width.
func printTable(w io.Writer, rows [][]string) error {
	if file, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil {
			rows = fitted(rows, columns)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, columnGap, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(t, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// columnGap is what stands between the columns of a table.
const columnGap = 2

// fitted cuts cells so that a table is at most so wide: those of the widest columns, down to the
// width of the next. What is cut ends in an ellipsis; --json and a pipe have all of it.
func fitted(rows [][]string, columns int) [][]string {
	var widths []int
	for _, row := range rows {
		for k, cell := range row {
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], utf8.RuneCountInString(cell))
		}
	}
	if len(widths) == 0 {
		return rows
	}
	limit := slices.Max(widths)
	wide := func() (sum int) {
		for _, w := range widths {
			sum += min(w, limit) + columnGap
		}
		return sum - columnGap
	}
	for limit > narrowest && wide() > columns {
		limit--
	}
	return lists.Map(rows, func(row []string) []string {
		return lists.Map(row, func(cell string) string {
			if letters := []rune(cell); len(letters) > limit {
				return string(letters[:limit-1]) + "…"
			}
			return cell
		})
	})
}

// narrowest is the width below which no column is cut.
const narrowest = 8

// byteSize is a size for people, in binary units.
func byteSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, unit := float64(n), 0
	for v >= 1024 && unit < len(units)-1 {
		v /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[unit])
}

// perSecond is a rate, 0 where no time passed; rounded to what is worth
// printing.
func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return round(float64(n) / d.Seconds())
}

// round keeps four significant digits and more of large numbers.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	scale := math.Pow(10, max(0, 3-math.Floor(math.Log10(math.Abs(v)))))
	return math.Round(v*scale) / scale
}

// progressDelay is how long work runs before a bar is worth showing.
const progressDelay = time.Second

// progress returns a callback that draws a bar on a terminal once the work has
// taken a while, and nothing anywhere else.
func progress(cmd *cobra.Command, what string) func(done, total int64) {
	file, ok := cmd.ErrOrStderr().(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	start := time.Now()
	var bar *progressbar.ProgressBar
	return func(done, total int64) {
		if bar == nil {
			if time.Since(start) < progressDelay {
				return
			}
			bar = progressbar.NewOptions64(total,
				progressbar.OptionSetWriter(file), progressbar.OptionSetDescription(what),
				progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish())
		}
		_ = bar.Set64(done) // a bar that cannot be drawn stops nothing
	}
}

// working says on a terminal what is going on, and for how long, once it has taken a while.
// The function that it returns takes the line away; it may be called more than once.
func working(cmd *cobra.Command, what string) (done func()) {
	if !isTerminal(cmd.ErrOrStderr()) {
		return func() {}
	}
	const eraseLine = "\r\x1b[K"
	stop, ended := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressDelay)
		defer tick.Stop()
		shown := false
		for {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(cmd.ErrOrStderr(), eraseLine)
				}
				return
			case <-tick.C:
				shown = true
				fmt.Fprintf(cmd.ErrOrStderr(), "%s%s .. %.0f s", eraseLine, oneLine(what), time.Since(start).Seconds())
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-ended
	})
}

// red is an error's colour, as ECMA-48 has it.
const red = "31"

// paint colours a text where a terminal reads it, unless NO_COLOR is set (no-color.org).
func paint(w io.Writer, colour, text string) string {
	if !isTerminal(w) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// note prints a line for people.
func note(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintln(cmd.ErrOrStderr(), oneLine(fmt.Sprintf(format, args...)))
}
