package main

import (
	"bytes"
	"strings"
	"testing"

	_ "tgc/internal/rarecollection"
	"tgc/runtime/devices"
)

// Every family is built, run and measured at its tiny size.
func TestMeasure(t *testing.T) {
	dev, _, err := devices.Open(t.Context(), "interp", devices.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	b := &bench{dev: dev, limit: limitsOf(dev.Target(), 1, 0, 0)}
	for i := range table {
		o := operation{&table[i], table[i].tiny}
		r, err := b.measure(t.Context(), o, 0)
		if err != nil {
			t.Errorf("%s: %v", o, err)
			continue
		}
		if r.Time <= 0 || r.Bound <= 0 || r.Bytes < 1 || len(r.Kernels) == 0 || len(r.Plans) != len(r.Kernels) || len(r.Each) != len(r.Kernels) {
			t.Errorf("%s: %+v", o, r)
		}
		if (o.operations == nil) != (r.Operations == 0) {
			t.Errorf("%s: %g operations", o, r.Operations)
		}
	}
}

// Names are unique and have all sizes; texts choose among them.
func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, o := range named(nil) {
		if name := o.String(); seen[name] || strings.Contains(name, "%!") {
			t.Errorf("%q stands twice, or its format is wrong", name)
		}
		seen[o.String()] = true
	}
	if list := named([]string{"sort 256x256", "top 8 64"}); len(list) != 2 || list[0].String() != "sort 256x256" {
		t.Errorf("got %v", list)
	}
	if len(named([]string{"nothing like it"})) != 0 {
		t.Error("a text that no name has chooses something")
	}
}

// The larger of both limits counts, as many workers compute as there are.
func TestBound(t *testing.T) {
	l := limits{bandwidth: 40, rate: 200}
	for _, row := range []struct{ bytes, operations, want float64 }{{80e6, 0, 2000}, {80e6, 1e9, 5000}, {40e3, 1, 1}} {
		if got := l.bound(row.bytes, row.operations); got != row.want {
			t.Errorf("%g bytes, %g operations: %g us, want %g", row.bytes, row.operations, got, row.want)
		}
	}
	dev, _, err := devices.Open(t.Context(), "interp", devices.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if l := limitsOf(dev.Target(), 2, 7, 100); l != (limits{7, 200}) {
		t.Errorf("got %+v", l)
	}
}

// An exchange network of eight has 24 exchanges.
func TestSortOperations(t *testing.T) {
	if got := sortOperations([]int{3, 8}); got != 3*24*exchangeOperations {
		t.Errorf("got %g", got)
	}
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	r := &result{Name: "sort 2x9", Time: 3, Bound: 2, Ratio: 1.5, Kernels: []string{"map_9"}, Plans: []string{"elementwise [VECTOR]"}, Each: []float64{3}}
	if err := r.print(&out, true); err != nil || !strings.Contains(out.String(), "x   1.5   1 kernels") || !strings.HasSuffix(out.String(), "      3 us  map_9: elementwise [VECTOR]\n") {
		t.Errorf("%v: %q", err, out.String())
	}
}
