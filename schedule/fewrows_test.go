package schedule_test

import (
	"slices"
	"testing"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// flips is by how much results differ where a number that is rounded lies between two integers.
const flips = 2e-3

// normedProducts are two products of rounded rows of a norm.
func normedProducts(tokens, k int) *tensor.Graph {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, tokens, k).MulScalar(0.5).Contiguous()
	rows := nn.RMSNorm(x, g.Input("g", ir.F32, k), 1e-5)
	for _, name := range []string{"v", "w"} {
		g.Output("y"+name, nn.Int8.Linear(rows, g.Packed(name, "Q4_0", 40, k)))
	}
	return g
}

// Each block norms and rounds few rows for itself, up to BlockRows of BlockElements in all: products read what no kernel before them
// has made of the rows. Others are stored, their scales and integers by one kernel where matrix instructions multiply them.
func TestBlocksPrepareFewRows(t *testing.T) {
	for _, c := range []struct {
		tokens, k int
		launches  int
		again     bool
	}{
		{1, 256, 2, false}, {2, 256, 2, false}, {4, 256, 2, false}, {3, 512, 3, true}, {5, 256, 3, true}, {8, 1024, 3, true}, {12, 256, 3, true},
	} {
		opt := hopper(t)
		opt.Profile.BlockElements = 1024
		r := newRig(t, normedProducts(c.tokens, c.k), nil, nil)
		s := r.plan(opt)
		if len(s.Launches) != c.launches {
			t.Errorf("%d rows of %d: %d launches, want %d\n%s", c.tokens, c.k, len(s.Launches), c.launches, s)
		}
		again := slices.ContainsFunc(s.Records, func(r schedule.Record) bool {
			return r.Applied && r.Reason == "made again by readers with its loops"
		})
		if again != c.again {
			t.Errorf("%d rows of %d: scales are made again: %t, want %t\n%s", c.tokens, c.k, again, c.again, s)
		}
		r.check(s, interp.KernelOptions{}, flips)
	}
}

// Scales of rows that are rounded by a kernel before a product of whole tiles are stored by it, too, however little work they are: each block
// would read all of the rows again to fold what has been folded.
func TestScalesStandBesideIntegers(t *testing.T) {
	for _, c := range []struct {
		tokens, k int
	}{{8, 960}, {16, 480}, {8, 576}} {
		g := tensor.NewGraph()
		x := g.Input("x", ir.F32, c.tokens, c.k).MulScalar(0.5).Contiguous()
		g.Output("y", nn.Int8.Linear(x, g.Packed("w", "Q8_0", 40, c.k)))
		r := newRig(t, g, nil, nil)
		s := r.plan(hopper(t))
		for _, l := range s.Launches {
			for _, k := range l.Kernels {
				product := slices.ContainsFunc(k.Args, func(i int) bool { return s.Buffers[i].Format != "" })
				largest := analyse.Any(k.AST, func(u *ir.UOp) bool {
					return u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpMax
				})
				if product && largest {
					t.Errorf("%d rows of %d: the product folds their scales\n%s", c.tokens, c.k, s)
				}
			}
		}
		r.check(s, interp.KernelOptions{}, flips)
	}
}

// A block that makes a tile of a product uses each weight once for each row of activations, however many results of the tile are
// read: of two rows it makes both ready, as it does where it makes no tile.
func TestUsesOfWeightsInTiles(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 2, 1024).MulScalar(0.5).Contiguous()
	rows := nn.Int8.Linear(nn.RMSNorm(x, g.Input("g", ir.F32, 1024), 1e-5), g.Packed("v", "Q8_0", 8192, 1024))
	g.Output("y", nn.Int8.Linear(rows, g.Packed("w", "Q8_0", 40, 8192)))
	s := newRig(t, g, nil, nil).plan(hopper(t))
	if len(s.Launches) != 3 { // the copy, the tiles and the product
		t.Errorf("%d launches, want 3\n%s", len(s.Launches), s)
	}
}

// A value that blocks of a GPU make of what they read of another, top-k of a router, is too much work for each of its elements to be
// made by every block of a product of two rows.
func TestHeavyElementsAreStored(t *testing.T) {
	for rows, apart := range map[int]bool{1: false, 2: true} {
		g := tensor.NewGraph()
		x := g.Input("x", ir.F32, rows, 64).MulScalar(0.5).Contiguous()
		ranks := x.Unsqueeze(-1).Lt(x.Unsqueeze(-2)).Cast(ir.F32).Sum(-1) // [rows, 64]
		g.Output("y", ranks.Add(x.MaxKeep(-1)).Linear(g.Packed("w", "Q8_0", 4096, 64)))
		s := newRig(t, g, nil, nil).plan(hopper(t))
		if got := len(s.Launches) > 2; got != apart {
			t.Errorf("%d rows: ranks have a launch of their own: %t, want %t\n%s", rows, got, apart, s)
		}
	}
}

// The sum of a norm stands in the loop of the product that reads the row, but where matrix instructions multiply several rows: up to
// four tiles of them it is stored, once for all blocks. Rounded rows are read as integers, of which no block makes the sum beside its
// product.
func TestSumsOfFewRowsAreStored(t *testing.T) {
	for _, c := range []struct {
		rows   int
		mode   nn.Numeric
		stored bool
	}{{1, nn.Exact, false}, {2, nn.Exact, true}, {7, nn.Exact, true}, {32, nn.Exact, true}, {33, nn.Exact, false}, {2, nn.Int8, false}} {
		g := tensor.NewGraph()
		x := g.Input("x", ir.F32, c.rows, 256).MulScalar(0.5).Contiguous()
		rows := nn.RMSNorm(x, g.Input("g", ir.F32, 256), 1e-5)
		for _, name := range []string{"v", "w"} {
			g.Output("y"+name, c.mode.Linear(rows, g.Packed(name, "Q8_0", 200, 256)))
		}
		r := newRig(t, g, nil, nil)
		s := r.plan(hopper(t))
		stored := true
		for _, l := range s.Launches {
			for _, k := range l.Kernels {
				product := slices.ContainsFunc(k.Args, func(i int) bool { return s.Buffers[i].Format != "" })
				stored = stored && !(product && analyse.Any(k.AST, func(u *ir.UOp) bool { return u.Op == ir.OpRsqrt }))
			}
		}
		if stored != c.stored {
			t.Errorf("%d rows, mode %v: the sum is stored: %t, want %t\n%v", c.rows, c.mode, stored, c.stored, s)
		}
		r.check(s, interp.KernelOptions{}, flips)
	}
}
