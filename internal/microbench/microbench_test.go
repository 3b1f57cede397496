package microbench

import (
	"context"
	"strings"
	"testing"

	_ "tgc/internal/rarecollection"
	"tgc/runtime/interp"
)

// TestRun measures the interpreter, whose speed says nothing: every step is
// there, fractions are of the better of the limits around it.
func TestRun(t *testing.T) {
	asked := 0
	limit := func(context.Context) (float64, error) { asked++; return float64(asked), nil }
	r, err := Run(t.Context(), interp.New(interp.Options{}), Options{Sizes: []int{8}, Elems: 1 << 12, Repeats: 2, Peak: limit, ProcessorTime: true})
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]Figure)
	for _, f := range r.Figures {
		names[f.Name] = f
		if f.Best < f.Median || f.Median <= 0 {
			t.Errorf("%s: best %g, median %g", f.Name, f.Best, f.Median)
		}
	}
	for _, want := range []string{"matmul f32 8", "matmul f16 8", "scale", "sums of columns", "copy to device"} {
		if _, ok := names[want]; !ok {
			t.Errorf("no figure %q", want)
		}
	}
	if f := names["matmul f32 8"]; f.Limit != 2 || f.Fraction != f.Best/2 {
		t.Errorf("limit %g, fraction %g of %g: want the second of two limits", f.Limit, f.Fraction, f.Best)
	}
	if f := names["matmul f32 8"]; f.Processor < 0 {
		t.Errorf("%g by processor time", f.Processor)
	}
	if f := names["scale"]; f.Limit != 0 || f.Fraction != 0 {
		t.Errorf("scale has the limit %g without a rate", f.Limit)
	}
	if r.Launch.P50 <= 0 || r.Launch.P99 < r.Launch.P50 {
		t.Errorf("launch %+v", r.Launch)
	}
	if rows := r.Table(); len(rows) != len(r.Figures)+2 || !strings.Contains(rows[1][7], "matmul") && rows[1][7] == "" {
		t.Errorf("table %v", rows)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, interp.New(interp.Options{}), Options{Sizes: []int{8}, Elems: 1 << 12, Repeats: 1}); err == nil {
		t.Error("a canceled run ended well")
	}
	if err := (&Options{}).Check(); err == nil {
		t.Error("no repeats were accepted")
	}
}
