package engine

import (
	"fmt"
	"io"

	"tgc/schedule"
)

// Explain prints why the compiled graph looks as it does: the schedule with the
// decisions behind it, then every kernel's plan with the heuristics that were
// applied or declined. The schedule's declined rules are there only if
// Config.Explain was set.
func (c *Compiled) Explain(w io.Writer) error {
	out := &errorWriter{w: w}
	out.printf("schedule\n%s\n", c.Schedule)
	out.printf("fusion rules\n")
	for _, r := range c.Schedule.Records {
		out.printf("  %s%s\n", r, at(r))
	}
	for _, d := range c.Decisions {
		out.printf("  decided (%s): %s\n", d.Origin, d)
	}
	for _, k := range c.Kernels {
		for _, part := range k.Parts {
			out.kernel(part)
		}
		if len(k.Parts) > 0 {
			out.printf("\nkernel %s: the %d kernels above in one grid\n", k.Name, len(k.Parts))
			continue
		}
		out.kernel(k)
	}
	return out.err
}

// at is the key of the value that a record is of, by which it can be decided.
func at(r schedule.Record) string {
	if r.At == "" {
		return ""
	}
	return " #" + r.At
}

func (e *errorWriter) kernel(k *Kernel) {
	e.printf("\nkernel %s\n  why   %s\n  plan  %s\n", k.Name, k.Why, k.Plan)
	for _, r := range k.Records {
		e.printf("  %s\n", r)
	}
}

// errorWriter keeps the first error of several writes.
type errorWriter struct {
	w   io.Writer
	err error
}

func (e *errorWriter) printf(format string, args ...any) {
	if e.err == nil {
		_, e.err = fmt.Fprintf(e.w, format, args...)
	}
}
