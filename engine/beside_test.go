package engine_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/target"
	"tgc/tensor"
)

// promptKernels are the kernels of products of normed tokens in one launch with matrices of a type, of so many rows each.
func promptKernels(t *testing.T, format string, tokens, points int, rows ...int) []*engine.Kernel {
	t.Helper()
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	x := nn.RMSNorm(g.Input("x", ir.F32, tokens, points), g.Input("gamma", ir.F32, points), 1e-5)
	for i, n := range rows {
		name := string(rune('a' + i))
		var w *tensor.Tensor
		if format == "BF16" {
			w = g.Input(name, ir.BF16, n, points).Cast(ir.F32)
		} else {
			w = g.Packed(name, format, n, points)
		}
		g.Output("y"+name, nn.Exact.Linear(x, w))
	}
	c, err := g.Compile(t.Context(), desc, engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	var list []*engine.Kernel
	for _, k := range c.Kernels {
		list = append(list, k)
		list = append(list, k.Parts...)
	}
	return list
}

// A product of few rows is multiplied by warpgroups if it reads sums of groups that one of many rows, of the same activations, has
// stored: by itself it makes them with instructions of its own, for which warpgroups have no panel. Both then are one wave of blocks.
func TestFewRowsReadGroupSums(t *testing.T) {
	groups := func(rows ...int) (n int) {
		for _, k := range promptKernels(t, "Q5_K", 512, 1536, rows...) {
			if len(k.Parts) == 0 && strings.Contains(k.Plan.String(), "WGMMA") {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		rows []int
		want int
	}{{[]int{256}, 0}, {[]int{1536}, 1}, {[]int{256, 1536}, 2}} {
		if got := groups(c.rows...); got != c.want {
			t.Errorf("%d rows: %d products by warpgroups, want %d", c.rows, got, c.want)
		}
	}
}

// Sums of offsets are products by matrix instructions whatever the number of groups: 280 of a row of 8,960 points fill no tiles of 16. Sums of
// activations in groups of 32 fill blocks, though their rows have two points along the innermost axes.
func TestShortRowsOfAPrompt(t *testing.T) {
	var offsets, sums bool
	for _, k := range promptKernels(t, "Q5_K", 512, 8960, 1536) {
		plan := k.Plan.String()
		offsets = offsets || strings.Contains(k.Name, "r_280") && strings.Contains(plan, "MMA")
		if len(k.Parts) == 0 && strings.HasSuffix(k.Name, "_r_32") {
			sums = true
			if threads := k.Program.Block[0]; threads < 128 {
				t.Errorf("%s: blocks of %d threads: %s", k.Name, threads, plan)
			}
		}
	}
	if names := promptNames(promptKernels(t, "Q5_K", 512, 8960, 1536)); !offsets || !sums {
		t.Errorf("offsets by matrix instructions %v, sums of groups %v: %q", offsets, sums, names)
	}
}

// Kernels of a launch that take longer by their shares of a GPU than all of them beside each other are planned for the whole device: what
// they have of it then is what their blocks fill.
func TestPlansBesideEachOther(t *testing.T) {
	const multiprocessors = 132
	for _, c := range []struct {
		format         string
		tokens, points int
		rows           []int
		beside         bool
	}{
		{"BF16", 512, 2048, []int{512, 512, 2048}, false},
		{"Q6_K", 512, 4096, []int{1024, 1024, 4096}, true},
	} {
		shares, filled, n := 0.0, true, 0
		for _, k := range promptKernels(t, c.format, c.tokens, c.points, c.rows...) {
			if len(k.Parts) > 0 || !strings.Contains(k.Plan.String(), "MMA") {
				continue
			}
			blocks := float64(k.Program.Units())
			_, share := k.Price()
			shares, n = shares+share, n+1
			filled = filled && math.Abs(share-min(blocks/multiprocessors, 1)) < 1e-9
		}
		if n != len(c.rows) || filled != c.beside || (math.Abs(shares-1) < 1e-9) == c.beside {
			t.Errorf("%s: %d products, shares of %g in all, those that blocks fill %v, want %v", c.format, n, shares, filled, c.beside)
		}
	}
}

func promptNames(kernels []*engine.Kernel) (names []string) {
	for _, k := range kernels {
		names = append(names, k.Name)
	}
	return slices.Compact(names)
}
