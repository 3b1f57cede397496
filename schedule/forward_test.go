package schedule_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/schedule/state"
	"tgc/tensor"
)

// forwardOptions has read forwarding on; blocks is the least number of tiles.
func forwardOptions(blocks int64) schedule.Options {
	opt := schedule.DefaultOptions()
	opt.Off = opt.Off.Without(state.ForwardStores)
	opt.Profile.MinBlocks = blocks
	opt.Profile.LaunchEdge = 1 << 14 // that of a tile takes longer
	return opt
}

// zooModel is a tiny model of the zoo, by name.
func zooModel(name string) arch {
	m := llamaTiny()
	for _, row := range zoo {
		if row.name == name {
			row.edit(&m)
		}
	}
	return m
}

// Where the new key row needs a launch of its own, read forwarding saves it:
// the launches of a layer without and with R0f.
func TestForwardLaunches(t *testing.T) {
	for _, row := range []struct {
		name                        string
		blocks                      int64
		kernels, launches           int
		plainKernels, plainLaunches int
	}{
		{"qwen3", 1, 7, 5, 7, 5}, // as many tiles as heads: the product stores its rows
		{"qwen3", 1 << 20, 8, 5, 8, 6},
		{"olmoe", 16, 9, 7, 9, 7}, // its norm is over all heads
		{"llama", 16, 7, 5, 7, 5}, // a pair is a tile
		{"llama batch", 16, 7, 5, 7, 5},
		{"llama prefill", 16, 7, 5, 7, 5}, // its rows are i32 sums: no region to invert
	} {
		m := zooModel(row.name)
		for _, position := range []int64{0, 3, int64(m.context - m.tokens)} {
			r := modelRig(t, m, position)
			plain := forwardOptions(row.blocks)
			plain.Off = plain.Off.With(state.ForwardStores)
			s := r.plan(plain)
			if kernelCount(s) != row.plainKernels || len(s.Launches) != row.plainLaunches {
				t.Errorf("%s: %d kernels in %d launches without forwarding, want %d in %d", row.name, kernelCount(s), len(s.Launches), row.plainKernels, row.plainLaunches)
			}
			s = r.plan(forwardOptions(row.blocks))
			if kernelCount(s) != row.kernels || len(s.Launches) != row.launches {
				t.Errorf("%s: %d kernels in %d launches with forwarding, want %d in %d\n%s", row.name, kernelCount(s), len(s.Launches), row.kernels, row.launches, s)
			}
			r.check(s, interp.KernelOptions{}, 2e-5)
		}
	}
}

// Rows in the middle of a cache are stored, and all of it is read: rows before and
// after them come from the cache, in which the stored ones may be anything.
func TestForwardRowsInside(t *testing.T) {
	const rows, first, count, heads, head, width = 8, 2, 3, 4, 8, 64
	g := tensor.NewGraph()
	cache, x := g.Input("cache", ir.F32, rows, heads*head), g.Input("x", ir.F32, count, width)
	product := x.Linear(g.Packed("w", "Q8_0", heads*head, width)).Reshape(count, heads, head)
	normed := nn.RMSNorm(product, g.Input("norm", ir.F32, head), 1e-5).Reshape(count, heads*head)
	at := g.Iota(ir.I32, g.Dims(count)[0]).Add(g.Scalar(ir.I32, first)).Unsqueeze(1)
	stored := cache.AssignAt(normed, at, g.Iota(ir.I32, g.Dims(heads * head)[0]))
	g.Keep(stored)
	g.Output("y", stored.Mul(g.Input("z", ir.F32, rows, heads*head)).Sum(0))
	r := newRig(t, g, nil, nil)
	for _, b := range g.Buffers() {
		for i := first * heads * head; b.Name == "cache" && i < (first+count)*heads*head; i++ {
			r.buffers[b.ID].Data[i].F = math.NaN()
		}
	}
	s := r.plan(forwardOptions(1 << 20))
	if !strings.Contains(s.String(), "where(") {
		t.Errorf("no test for the stored rows\n%s", s)
	}
	r.check(s, interp.KernelOptions{}, 2e-5)
	r.reverse = true
	r.check(s, interp.KernelOptions{}, 2e-5)
}

// What reads a stored version to overwrite it, or as an address, takes what is stored
// from the buffer: it waits for the store anyway.
func TestForwardLeavesOtherReaders(t *testing.T) {
	const rows, head, width = 8, 8, 64
	for name, read := range map[string]func(g *tensor.Graph, stored *tensor.Tensor){
		"overwrites": func(g *tensor.Graph, stored *tensor.Tensor) {
			g.Keep(stored.Assign(stored.Mul(g.Input("z", ir.F32, rows, head))))
		},
		"addresses": func(g *tensor.Graph, stored *tensor.Tensor) {
			at := stored.Abs().MulScalar(0).Cast(ir.I32).Add(g.Iota(ir.I32, g.Dims(rows)[0]).Unsqueeze(1))
			g.Keep(g.Input("other", ir.F32, rows, head).AssignAt(stored.Mul(g.Input("z", ir.F32, rows, head)), at, g.Iota(ir.I32, g.Dims(head)[0])))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			cache, x := g.Input("cache", ir.F32, rows, head), g.Input("x", ir.F32, 1, width)
			product := x.Linear(g.Packed("w", "Q8_0", head, width))
			normed := nn.RMSNorm(product, g.Input("norm", ir.F32, head), 1e-5)
			stored := cache.AssignAt(normed, g.Scalar(ir.I32, 2).Reshape(1, 1), g.Iota(ir.I32, g.Dims(head)[0]))
			read(g, stored)
			r := newRig(t, g, nil, nil)
			plain := forwardOptions(1 << 20)
			plain.Off = plain.Off.With(state.ForwardStores)
			s := r.plan(forwardOptions(1 << 20))
			if diff := cmp.Diff(r.plan(plain).String(), s.String()); diff != "" {
				t.Errorf("forwarding changes the kernels (-without +with):\n%s", diff)
			}
			r.check(s, interp.KernelOptions{}, 2e-5)
		})
	}
}
