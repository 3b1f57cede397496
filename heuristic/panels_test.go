package heuristic_test

import (
	"fmt"
	"slices"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/nn"
	"tgc/packed"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

// panelTargets are a CPU with tile instructions, one with a dot instruction of 64 bytes, one of 32, and two without.
var panelTargets = []string{"sapphirerapids", "znver5", "alderlake", "haswell", "cortex-a72"}

// onTiles are the types whose groups tile instructions sum in exact mode: codes that are small integers, in
// groups of 16 or 32, of which digits of an index may be parts; scales of less are integers, too, or stand outside.
var onTiles = []string{
	"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "IQ4_NL", "IQ4_XS",
	"IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S",
}

// Products of many tokens with weights that are decoded into panels are what the kernels
// say, for every packed type, rows and tokens that no tile divides, in both arithmetics.
func TestPackedPanels(t *testing.T) {
	several := []string{"Q6_K", "Q4_K", "Q8_0", "IQ4_NL"} // types of which other targets are tried, too
	for _, f := range packed.All() {
		few := slices.Contains(several, f.Name)
		if f.IsPlain() || testing.Short() && !few {
			continue
		}
		for i, name := range panelTargets {
			for _, mode := range []nn.Numeric{nn.Exact, nn.Int8} {
				if i > 0 && !few {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %s", f.Name, name, mode), func(t *testing.T) {
					t.Parallel()
					checkPanels(t, f.Name, target.ForCPU(name, nil, 2), mode)
				})
			}
		}
	}
}

// checkPanels plans the kernels of a product of 11 tokens and 104 rows and compares each
// with its own evaluation.
func checkPanels(t *testing.T, format string, desc *target.Desc, mode nn.Numeric) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 11, 512).MulScalar(0.5).Contiguous()
	g.Output("y", mode.Linear(x, g.Packed("w", format, 104, 512)))
	a, s := scheduled(t, g, desc)
	panels, tiles := false, false
	for _, launch := range s.Launches {
		for _, k := range launch.Kernels {
			if !slices.ContainsFunc(ir.Toposort(k.AST), func(u *ir.UOp) bool { return u.Op == ir.OpField }) {
				continue
			}
			choice, err := heuristic.Choose(a, k.AST, desc, heuristic.Knobs{})
			if err != nil {
				t.Fatal(err)
			}
			panels = panels || slices.ContainsFunc(choice.Plan.Opts, func(o plan.Opt) bool { return o.Kind == plan.STAGE && o.Axis == "s1" })
			tiles = tiles || slices.ContainsFunc(choice.Plan.Opts, func(o plan.Opt) bool { return o.Kind == plan.MMA })
			checkPlanBy(t, a, k.AST, choice.Plan, desc, nil, interp.KernelOptions{})
		}
	}
	if desc.HasTiles() && mode == nn.Exact && tiles != slices.Contains(onTiles, format) {
		t.Errorf("kernels use tile instructions: %t", tiles)
	}
	if !panels {
		t.Error("no kernel decodes weights into panels")
	}
}

// Floats of many rows that lie along k are turned as they go into panels, whatever their size: of 32 bits
// where registers are few.
func TestFloatPanels(t *testing.T) {
	for _, name := range panelTargets {
		for _, dtype := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
			for _, shape := range [][2]int{{1040, 128}, {1004, 37}} { // rows and k
				desc, tokens := target.ForCPU(name, nil, 2), 11
				if dtype == ir.F32 { // it is not widened
					tokens = 66
				}
				g := tensor.NewGraph()
				g.Output("y", g.Input("x", ir.F32, tokens, shape[1]).Linear(g.Input("w", dtype, shape[0], shape[1]).Cast(ir.F32)))
				a, s := scheduled(t, g, desc)
				sink := s.Launches[0].Kernels[0].AST
				choice, err := heuristic.Choose(a, sink, desc, heuristic.Knobs{})
				if err != nil {
					t.Fatal(err)
				}
				opts := choice.Plan.Opts
				along := func(kind plan.OptKind) bool {
					return slices.ContainsFunc(opts, func(o plan.Opt) bool { return o.Kind == kind && o.Axis == "s1" })
				}
				wide := dtype == ir.F32 && desc.VectorRegs >= 32 && 3*shape[1] > 4*tokens // tiles along k are large enough
				if wide == along(plan.STAGE) || wide == along(plan.VECTOR) {
					t.Errorf("%s %s: %s, rows as lanes of a panel, want %v", name, dtype, choice.Plan, !wide)
				}
				checkPlanBy(t, a, sink, choice.Plan, desc, nil, interp.KernelOptions{})
			}
		}
	}
}

// scheduled is the schedule of a graph, and the arena of its kernels.
func scheduled(t *testing.T, g *tensor.Graph, desc *target.Desc) (*ir.Arena, *schedule.Schedule) {
	sink, err := g.Sink()
	if err != nil {
		t.Fatal(err)
	}
	a := ir.NewArena()
	s, err := schedule.Run(t.Context(), a, a.Import(sink), schedule.OptionsFor(desc))
	if err != nil {
		t.Fatal(err)
	}
	return a, s
}

// Sums longer than the second cache holds the activations of are chains of pieces, of equal tiles; the
// terms of an activation are stored together, and a group with a minimum has one sum for a token.
func TestTilesOfLongSums(t *testing.T) {
	desc := target.ForCPU("sapphirerapids", nil, 2)
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 128, 8192).MulScalar(0.5).Contiguous()
	g.Output("y", nn.Exact.Linear(x, g.Packed("w", "Q4_K", 64, 8192)))
	a, s := scheduled(t, g, desc)
	pieces, terms, sums := 0, 0, plan.TileSums(desc) // 13 tokens of two registers of rows
	for _, launch := range s.Launches {
		for _, k := range launch.Kernels {
			stores := 0
			for _, u := range k.AST.Src {
				if u.Op == ir.OpStore && u.Src[1].DType == ir.BF16 {
					stores++
				}
			}
			terms = max(terms, stores)
			choice, err := heuristic.Choose(a, k.AST, desc, heuristic.Knobs{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(choice.Plan.Opts, func(o plan.Opt) bool { return o.Kind == plan.MMA }) {
				continue
			}
			pieces++
			p, err := kernel.Lower(a, k.AST, choice.Plan, desc)
			if err != nil {
				t.Fatal(err)
			}
			p.Body.Each(func(in *program.Instr) {
				if in.Op == program.For && slices.ContainsFunc(in.Body.Instrs, func(x program.Instr) bool { return x.Op == program.TileDot }) && len(in.Results) != sums {
					t.Errorf("a loop around tiles of %d sums carries %d", sums, len(in.Results))
				}
			})
		}
	}
	if pieces != 4 || terms != 3 {
		t.Errorf("%d kernels with tiles and %d terms stored by one kernel, want 4 and 3", pieces, terms)
	}
}

// Codes of 16 points with an integer scale are multiplied with it where the product is one term: a product of tiles then
// takes 32 points.
func TestTilesOfScaledCodes(t *testing.T) {
	desc := target.ForCPU("sapphirerapids", nil, 2)
	for format, words := range map[string]int{"Q2_K": 16, "Q3_K": 16, "Q4_K": 16, "Q6_K": 8} {
		g := tensor.NewGraph()
		x := g.Input("x", ir.F32, 32, 512).MulScalar(0.5).Contiguous()
		g.Output("y", nn.Exact.Linear(x, g.Packed("w", format, 64, 512)))
		a, s := scheduled(t, g, desc)
		dots := 0
		for _, launch := range s.Launches {
			for _, k := range launch.Kernels {
				choice, err := heuristic.Choose(a, k.AST, desc, heuristic.Knobs{})
				if err != nil {
					t.Fatal(err)
				}
				p, err := kernel.Lower(a, k.AST, choice.Plan, desc)
				if err != nil {
					t.Fatal(err)
				}
				p.Body.Each(func(in *program.Instr) {
					if in.Op != program.TileDot {
						return
					}
					if dots++; in.Tile.Words != words || len(in.Args) != 1+2*3 {
						t.Errorf("%s: a product of %d words and %d pairs, want %d and 3", format, in.Tile.Words, len(in.Args)/2, words)
					}
				})
			}
		}
		if dots == 0 {
			t.Errorf("%s: no products of tiles", format)
		}
	}
}

// A tile's panel lies in the second cache beside its activations where one of equal use does:
// the rows of 8,192 floats that a cache has room for are not four registers of them.
func TestPanelsStayNear(t *testing.T) {
	g := tensor.NewGraph()
	g.Output("y", nn.Exact.Linear(g.Input("x", ir.F32, 128, 8192), g.Packed("w", "Q8_0", 256, 8192)))
	sink, err := g.Sink()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cache  int
		rows   int64 // registers of them
		tokens int64
	}{{1 << 20, 2, 12}, {2 << 20, 2, 13}, {4 << 20, 4, 6}} {
		desc := target.ForCPU("znver5", nil, 2).WithCaches(48<<10, c.cache, 0)
		a := ir.NewArena()
		s, err := schedule.Run(t.Context(), a, a.Import(sink), schedule.OptionsFor(desc))
		if err != nil {
			t.Fatal(err)
		}
		choice, err := heuristic.Choose(a, s.Launches[0].Kernels[0].AST, desc, heuristic.Knobs{})
		if err != nil {
			t.Fatal(err)
		}
		want := []plan.Opt{{Kind: plan.UPCAST, Axis: "s1", Amount: c.rows}, {Kind: plan.UPCAST, Axis: "s0", Amount: c.tokens}}
		for _, o := range want {
			if !slices.Contains(choice.Plan.Opts, o) {
				t.Errorf("%d bytes of cache: %s, want %v", c.cache, choice.Plan, want)
			}
		}
	}
}

// Tiles of bytes read what lies together: the columns of a tile are one run of memory, codes with an offset
// are signed bytes, scales of activations multiply sums of activations once for all rows, and each of two
// matrices has a loop of its own.
func TestTilesOfBytes(t *testing.T) {
	desc := target.ForCPU("sapphirerapids", nil, 2)
	for format, perToken := range map[string]int{"Q4_0": 3, "Q8_0": 3, "Q4_K": 5} { // a conversion, a product, a multiply-add; a product and a difference of a minimum
		g := tensor.NewGraph()
		x := g.Input("x", ir.F32, 32, 512).MulScalar(0.5).Contiguous()
		g.Output("y", nn.Int8.Linear(x, g.Packed("gate", format, 64, 512)).Mul(nn.Int8.Linear(x, g.Packed("up", format, 64, 512))))
		a, s := scheduled(t, g, desc)
		loops := 0
		for _, launch := range s.Launches {
			for _, k := range launch.Kernels {
				choice, err := heuristic.Choose(a, k.AST, desc, heuristic.Knobs{})
				if err != nil {
					t.Fatal(err)
				}
				p, err := kernel.Lower(a, k.AST, choice.Plan, desc)
				if err != nil {
					t.Fatal(err)
				}
				p.Body.Each(func(in *program.Instr) {
					if in.Op != program.For {
						return
					}
					tiles, operations := 0, 0
					for _, x := range in.Body.Instrs {
						switch {
						case x.Op == program.TileDot:
							if tiles++; x.Tile.StrideA != 32 {
								t.Errorf("%s: columns of a tile lie %d bytes apart", format, x.Tile.StrideA)
							}
						case x.Op == program.Alu:
							if t := x.Result.Type; t.Elem == ir.F32 || t.Lanes == plan.TileRows {
								operations++
							}
						}
					}
					if tiles == 0 {
						return
					}
					loops++
					if most := plan.TileRows*perToken + 3; tiles != 1 || operations > most {
						t.Errorf("%s: a loop over groups has %d tiles and %d operations, want 1 and at most %d", format, tiles, operations, most)
					}
				})
			}
		}
		if loops != 2 {
			t.Errorf("%s: %d loops around tiles, want one of each matrix", format, loops)
		}
	}
}

// Scales and minima of a weight that many tokens use are one chain of multiply-adds: a loop over a panel carries a
// sum for each result of the tile, and the scales of blocks are in those of the groups.
func TestPanelsHaveOneSum(t *testing.T) {
	for _, cpu := range []string{"haswell", "znver4"} {
		desc := target.ForCPU(cpu, nil, 1)
		g := tensor.NewGraph()
		x := g.Input("x", ir.F32, 40, 1024).MulScalar(0.5).Contiguous()
		g.Output("y", nn.Int8.Linear(x, g.Packed("w", "Q4_K", 256, 1024)))
		a, s := scheduled(t, g, desc)
		loops := 0
		for _, launch := range s.Launches {
			for _, k := range launch.Kernels {
				choice, err := heuristic.Choose(a, k.AST, desc, heuristic.Knobs{})
				if err != nil {
					t.Fatal(err)
				}
				results := int64(1)
				for _, o := range choice.Plan.Opts {
					if o.Kind == plan.UPCAST {
						results *= o.Amount
					}
				}
				p, err := kernel.Lower(a, k.AST, choice.Plan, desc)
				if err != nil {
					t.Fatal(err)
				}
				p.Body.Each(func(in *program.Instr) {
					if in.Op != program.For || !slices.ContainsFunc(in.Body.Instrs, func(x program.Instr) bool { return x.Op == program.Dot4 }) || results == 1 {
						return
					}
					if loops++; int64(len(in.Results)) != results {
						t.Errorf("%s: a loop carries %d sums of a tile of %d results (%s)", cpu, len(in.Results), results, choice.Plan)
					}
				})
			}
		}
		if loops != 1 {
			t.Errorf("%s: %d loops over panels, want 1", cpu, loops)
		}
	}
}
