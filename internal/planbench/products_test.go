package main

import (
	"fmt"
	"strings"
	"testing"
)

// Jobs that are products of matrices build a graph of the extents and the type they name; others name a model.
func TestProductJobs(t *testing.T) {
	for _, c := range []struct{ job, want, fails string }{
		{job: "product:5x7x9", want: "[5 7]"},
		{job: "turned:5x7x9 f64", want: "[5 7]"},
		{job: "batched:2x5x7x9 i32", want: "[2 5 7]"},
		{job: "conv:2x3x8x4x3", want: "[2 4 6 6]"},
		{job: "product:5x7", fails: "product:5x7: 2 extents, want 3"},
		{job: "conv:5x7xq", fails: "conv:5x7xq: 3 extents, want 5"},
		{job: "product:5xqx7", fails: "product:5xqx7: q: "},
		{job: "product:5x7x9 f8", fails: "type f8, want f32, f64 or i32"},
		{job: "tiny int8"},
	} {
		j, err := parseJob(c.job)
		if err != nil {
			t.Fatal(err)
		}
		g, ok, err := j.product()
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, want %s", c.job, err, c.fails)
		case c.fails == "" && err != nil:
			t.Errorf("%s: %v", c.job, err)
		case ok != (c.want != "" || c.fails != ""):
			t.Errorf("%s: a product is %t", c.job, ok)
		}
		if c.want != "" {
			buffers := g.Buffers()
			if got := fmt.Sprint(buffers[len(buffers)-1].Shape); got != c.want {
				t.Errorf("%s: %s, want %s", c.job, got, c.want)
			}
		}
	}
}
