package engine

import (
	"fmt"
	"io"
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
		out.printf("  %s\n", r)
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
