package schedule_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/nn"
	"tgc/packed"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

// quantisedLinear is a product of rounded activations, which are computed, with
// packed weights.
func quantisedLinear(mode nn.Numeric, format string, tokens int) *tensor.Graph {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, tokens, 256).MulScalar(0.5).Contiguous()
	g.Output("y", mode.Linear(x, g.Packed("w", format, 40, 256)))
	return g
}

// Sums of rounded activations with packed weights are what the graph says, for
// every packed type: offsets, minimums, signs, tables, bits apart.
func TestIntegerSumsKeepValues(t *testing.T) {
	formats := packed.All()
	if testing.Short() {
		formats = slices.DeleteFunc(formats, func(f *packed.Format) bool {
			return !slices.Contains([]string{"Q6_K", "Q4_K", "Q8_0", "Q3_K", "Q5_0", "IQ4_NL"}, f.Name)
		})
	}
	for _, f := range formats {
		format := f.Name
		if f.IsPlain() {
			continue
		}
		for _, mode := range []nn.Numeric{nn.Int8, nn.Int16, nn.Half} {
			for _, opt := range []schedule.Options{schedule.DefaultOptions(), schedule.CPUOptions()} {
				for _, tokens := range []int{1, 3} {
					t.Run(fmt.Sprintf("%s %s %d", format, mode, tokens), func(t *testing.T) {
						trap(t, quantisedLinear(mode, format, tokens), opt, nil)
					})
				}
			}
		}
	}
}

// Rows that a product by matrix instructions reads are rounded by one kernel, which stores
// them beside the scales of their groups: no launch finds the largest of each group first.
func TestRoundedRowsAreOneLaunch(t *testing.T) {
	opt := schedule.DefaultOptions()
	opt.Profile.MatrixTokens, opt.Profile.TileReuse = 8, 4
	for _, tokens := range []int{8, 16, 64} {
		g := tensor.NewGraph()
		x := g.Input("x", ir.F32, tokens, 8192).Contiguous()
		g.Output("y", nn.Int8.Linear(x, g.Packed("w", "Q6_K", 2048, 8192)))
		s := newRig(t, g, nil, nil).plan(opt)
		if got := len(s.Launches); got > 3 { // the copy, the rounding, the product
			t.Errorf("%d tokens: %d launches, want at most 3\n%s", tokens, got, s)
		}
	}
}

// Normalised rows that tile instructions of BF16 read are stored as terms, however few they are: multiplied with the norm's weights
// where they are read, they would be no factor that the instructions take.
func TestNormedRowsAreTerms(t *testing.T) {
	opt := schedule.CPUOptions()
	opt.Profile.FloatTiles = 1 << 20
	for width, tokens := range map[int]int{64: 16, 256: 32, 512: 12, 2048: 16} {
		g := tensor.NewGraph()
		x := nn.RMSNorm(g.Input("x", ir.F32, tokens, width), g.Input("gamma", ir.F32, width), 1e-5)
		g.Output("y", x.Linear(g.Packed("w", "Q8_0", 48, width)))
		s := newRig(t, g, nil, nil).plan(opt)
		if !slices.ContainsFunc(s.Records, func(r schedule.Record) bool { return r.Pass == "split-terms" && r.Applied }) {
			t.Errorf("%d rows of %d are read as floats\n%s", tokens, width, s)
		}
		trap(t, g, opt, nil)
	}
}

// Activations of many tokens are stored as two terms of f16, in one word or in planes, and scaled for each row, where products are many enough
// for the launches that make them; integer scales of groups multiply codes as far as an f16 holds them.
func TestManyRowsAreScaledTerms(t *testing.T) {
	for _, c := range []struct {
		format string
		launch int64 // what one takes
		most   int64 // of codes; 0: no terms
		planes int64 // from how many tokens on
	}{{"Q8_0", 0, 128, 0}, {"Q6_K", 0, 32, 0}, {"Q4_K", 0, 63 * 15, 0}, {"Q3_K", 0, 32 * 4, 0}, {"Q4_K", 1 << 17, 0, 0}, {"Q4_K", 0, 63 * 15, 16}, {"Q8_0", 0, 128, 16}, {"Q8_0", 0, 128, 17}} {
		opt := schedule.DefaultOptions()
		opt.Profile.PlaneTokens = c.planes
		opt.Profile.MatrixTokens, opt.Profile.ScaledTokens, opt.Profile.Launch = 8, 16, c.launch
		g := tensor.NewGraph()
		x := nn.RMSNorm(g.Input("x", ir.F32, 16, 512), g.Input("gamma", ir.F32, 512), 1e-5)
		g.Output("y", x.Linear(g.Packed("w", c.format, 48, 512)).Add(x.Linear(g.Packed("v", c.format, 48, 512))))
		s, _ := trap(t, g, opt, nil)
		applied := slices.ContainsFunc(s.Records, func(r schedule.Record) bool { return r.Pass == "scale-terms" && r.Applied })
		if applied != (c.most > 0) {
			t.Errorf("%s, launches of %d: terms %t\n%s", c.format, c.launch, applied, s)
		}
		if most := mostCode(s); applied && most != c.most {
			t.Errorf("%s: codes up to %d, want %d\n%s", c.format, most, c.most, s)
		}
		text := s.String()
		if planes := strings.Contains(text, "_2_16_512") && strings.Contains(text, "r0:2,r1:16,r2:512"); planes != (c.planes == 16) {
			t.Errorf("%s, planes from %d of 16 tokens on: planes %t\n%s", c.format, c.planes, planes, text)
		}
	}
}

// Beside weights of F16 the second term is scaled by 2^6, beside codes by 2^11, whatever type the scales of groups have; of both, each product has
// its own. Activations that are halves already, other floats and few products have no terms.
func TestHalvesMeetScaledTerms(t *testing.T) {
	for _, c := range []struct {
		weights []string
		rounded bool
		launch  int64
		seconds []float64
	}{
		{[]string{"F16"}, false, 0, []float64{1 << 6}}, {[]string{"Q8_0"}, false, 0, []float64{1 << 11}}, {[]string{"F16", "Q8_0"}, false, 0, []float64{1 << 6, 1 << 11}},
		{[]string{"F16"}, true, 0, nil}, {[]string{"BF16"}, false, 0, nil}, {[]string{"F16"}, false, 1 << 17, nil},
	} {
		opt := schedule.DefaultOptions()
		opt.Profile.MatrixTokens, opt.Profile.ScaledTokens, opt.Profile.Launch = 8, 16, c.launch
		g := tensor.NewGraph()
		x := nn.RMSNorm(g.Input("x", ir.F32, 16, 512), g.Input("gamma", ir.F32, 512), 1e-5)
		if c.rounded {
			x = x.Cast(ir.F16).Cast(ir.F32)
		}
		for i, name := range c.weights {
			w := map[string]func(name string) *tensor.Tensor{
				"F16":  func(name string) *tensor.Tensor { return g.Input(name, ir.F16, 48, 512).Cast(ir.F32) },
				"BF16": func(name string) *tensor.Tensor { return g.Input(name, ir.BF16, 48, 512).Cast(ir.F32) },
				"Q8_0": func(name string) *tensor.Tensor { return g.Packed(name, "Q8_0", 48, 512) },
			}[name](fmt.Sprint("w", i))
			g.Output(fmt.Sprint("y", i), x.Linear(w))
		}
		s, _ := trap(t, g, opt, nil)
		for _, second := range []float64{1 << 6, 1 << 11} {
			if got, want := multipliesBy(s, second), slices.Contains(c.seconds, second); got != want {
				t.Errorf("%v, rounded %t, launches of %d: terms scaled by %g %t, want %t\n%s", c.weights, c.rounded, c.launch, second, got, want, s)
			}
		}
	}
}

// multipliesBy reports a kernel that multiplies with a constant.
func multipliesBy(s *schedule.Schedule, by float64) bool {
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			if analyse.Any(k.AST, func(u *ir.UOp) bool {
				f, constant := u.Float()
				return constant && u.DType == ir.F32 && f == by
			}) {
				return true
			}
		}
	}
	return false
}

// Sums of offsets beside sums of terms in planes are products of their own, as long as there are groups of all tokens, whatever their number, where they
// take longer than a launch.
func TestOffsetsAreProducts(t *testing.T) {
	const launch = 2 * 16 * 48 * 16 / 3 // of two products, whose multiply-adds are three for each operation
	for _, c := range []struct {
		format         string
		tokens, groups int
		launch         int64
		off            schedule.Rule
		apart          bool
	}{
		{"Q4_K", 16, 16, 0, "", true}, {"Q2_K", 16, 32, 0, "", true}, {"Q4_1", 16, 16, 0, "", true}, {"Q5_1", 19, 16, 0, "", true}, {"Q5_K", 19, 16, 0, "", true},
		{"Q4_K", 16, 16, launch, "", true}, {"Q4_K", 16, 16, launch + 1, "", false},
		{"Q6_K", 16, 32, 0, "", false}, {"Q8_0", 16, 16, 0, "", false}, {"Q4_K", 16, 512, 0, "share-group-sums", false},
	} {
		opt := schedule.DefaultOptions()
		opt.Profile.MatrixTokens, opt.Profile.ScaledTokens, opt.Profile.PlaneTokens = 8, 16, 16
		opt.Profile.Launch, opt.Profile.Workers = c.launch, 1
		if c.off != "" {
			opt.Off = opt.Off.With(c.off)
		}
		g := tensor.NewGraph()
		x := nn.RMSNorm(g.Input("x", ir.F32, c.tokens, 512), g.Input("gamma", ir.F32, 512), 1e-5)
		g.Output("y", x.Linear(g.Packed("w", c.format, 48, 512)).Add(x.Linear(g.Packed("v", c.format, 48, 512))))
		s, _ := trap(t, g, opt, nil)
		applied := slices.ContainsFunc(s.Records, func(r schedule.Record) bool { return r.Pass == "store-offsets" && r.Applied })
		products := strings.Count(s.String(), fmt.Sprintf("kernel reduce_%d_48_r_%d(", c.tokens, c.groups))
		if applied != c.apart || applied != (products > 0) {
			t.Errorf("%s, %d tokens, launches of %d: offsets apart %t, want %t, in %d products of %d groups\n%s", c.format, c.tokens, opt.Profile.Launch, applied, c.apart, products, c.groups, s)
		}
	}
}

// mostCode is the largest magnitude of what terms are multiplied with in innermost sums.
func mostCode(s *schedule.Schedule) (most int64) {
	for _, u := range innerSums(s) {
		product := int64(0)
		for _, f := range analyse.Factors(u.Src[0]) {
			offset := int64(0)
			if f.Op == ir.OpAdd {
				if c, ok := f.Src[1].Float(); ok {
					offset, f = int64(c), f.Src[0]
				}
			}
			if f.Op == ir.OpCast && f.Src[0].DType.IsInt() {
				b := ir.NewBounds().Of(f.Src[0])
				product = max(product, 1) * max(b.Hi+offset, -b.Lo-offset)
			}
		}
		most = max(most, product)
	}
	return most
}

// A scale whose group's largest value needs a norm that every block makes for itself stays in
// the products: as a value of its own it would be staged there, beside the largest that is
// stored anyway.
func TestScalesOfNormedRowsAreNotStaged(t *testing.T) {
	opt := schedule.DefaultOptions()
	opt.Profile.MatrixTokens, opt.Profile.TileReuse = 8, 4
	g := tensor.NewGraph()
	x := nn.RMSNorm(g.Input("x", ir.F32, 16, 896).MulScalar(2).Contiguous(), g.Input("gamma", ir.F32, 896), 1e-5)
	gate := nn.Int8.Linear(x, g.Packed("gate", "Q5_0", 4864, 896))
	g.Output("y", gate.Silu().Mul(nn.Int8.Linear(x, g.Packed("up", "Q5_0", 4864, 896))))
	s := newRig(t, g, nil, nil).plan(opt)
	if text := s.String(); strings.Contains(text, "STAGE(") {
		t.Errorf("a stage\n%s", text)
	}
}

// Digits are one loop for matrix instructions where the tokens fill half of their tiles, or have more numbers of a digit than one of them
// sums: three of eight. Bytes, which threads sum four at a time, wait for half of a tile.
func TestDigitsOfMatrixProducts(t *testing.T) {
	for _, c := range []struct {
		numeric nn.Numeric
		format  string
		tokens  int
		points  int64 // of the innermost loop
	}{
		{nn.Exact, "IQ2_XXS", 1, 8}, {nn.Exact, "IQ2_XXS", 2, 32}, {nn.Exact, "IQ2_XXS", 3, 32}, {nn.Exact, "IQ2_XXS", 5, 32},
		{nn.Exact, "IQ3_S", 1, 4}, {nn.Exact, "IQ3_S", 2, 32}, {nn.Exact, "IQ3_S", 4, 32}, {nn.Exact, "IQ3_S", 5, 32},
		{nn.Exact, "Q2_0", 3, 4}, {nn.Exact, "Q2_0", 4, 64},
		{nn.Int8, "IQ2_XXS", 4, 8}, {nn.Int8, "IQ2_XXS", 5, 32},
	} {
		opt := schedule.DefaultOptions()
		opt.Profile.MatrixTokens = 8
		s := newRig(t, quantisedLinear(c.numeric, c.format, c.tokens), nil, nil).plan(opt)
		if !slices.ContainsFunc(innerSums(s), func(u *ir.UOp) bool {
			n, _ := u.ReduceRange().Src[0].Int()
			return n == c.points
		}) {
			t.Errorf("%v %s, %d tokens: no innermost loop of %d points\n%s", c.numeric, c.format, c.tokens, c.points, s)
		}
	}
}

// Sums of activations alone stay in products that matrix instructions take, more than half of whose
// tiles the tokens fill; of other products they are values.
func TestGroupSumsStayInMatrixProducts(t *testing.T) {
	for tokens, stay := range map[int]bool{8: true, 16: true, 12: true, 5: true, 4: false, 3: false} {
		opt := schedule.DefaultOptions()
		opt.Profile.MatrixTokens = 8
		g := quantisedLinear(nn.Int8, "Q6_K", tokens)
		s := newRig(t, g, nil, nil).plan(opt)
		apart := slices.ContainsFunc(s.Records, func(r schedule.Record) bool { return r.Pass == "share-group-sums" && r.Applied })
		if apart == stay {
			t.Errorf("%d tokens: sums of activations are values: %t, want %t\n%s", tokens, apart, !stay, s)
		}
		trap(t, g, opt, nil)
	}
}

// Of panels each result adds one sum of activations for a scale, or for 16 points or more: not one for every few that share a byte.
func TestGroupsOfSumsInPanels(t *testing.T) {
	opt := schedule.OptionsFor(target.ForCPU("znver5", nil, 1).WithRecords(packed.MostRecordBits))
	for format, want := range map[string]int64{"Q5_0_words_32": 32, "Q5_0_words": 16, "Q4_0": 16, "Q8_0": 32, "Q6_K": 16} {
		s, _ := trap(t, quantisedLinear(nn.Int8, format, 32), opt, nil)
		found := false
		for _, u := range innerSums(s) {
			if u.DType != ir.I32 || slices.ContainsFunc(outsideStages(u), func(x *ir.UOp) bool { return x.Op == ir.OpField }) {
				continue
			}
			found = true
			if n, _ := u.ReduceRange().Src[0].Int(); n != want {
				t.Errorf("%s: a sum of activations over %d points, want %d\n%s", format, n, want, s)
			}
		}
		if !found {
			t.Errorf("%s: no sum of activations\n%s", format, s)
		}
	}
}

// A sum of converted bytes is one factor where weights are floats: distributing it would
// take two products in place of one.
func TestDigitsBelongToPackedWeights(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("a", ir.I8, 64).Cast(ir.F32).Add(g.Input("b", ir.I8, 64).Cast(ir.F32))
	g.Output("y", x.Mul(g.Input("w", ir.F32, 64)).Sum(0))
	s, _ := trap(t, g, schedule.DefaultOptions(), nil)
	if sums := innermost(s); len(sums) != 1 {
		t.Errorf("%d sums, want 1\n%s", len(sums), s)
	}
}

// The innermost sums that read quants are products of bytes in I32, nothing else:
// no scale, no offset and no rounding. Values do not tell.
func TestIntegerSumsAreDots(t *testing.T) {
	quants := map[string][]string{"Q6_K": {"ql", "qh"}, "Q4_K": {"qs"}, "Q8_0": {"qs"}, "Q4_0": {"qs"}}
	for format, fields := range quants {
		for _, mode := range []nn.Numeric{nn.Int8, nn.Int16} {
			for name, opt := range map[string]schedule.Options{"gpu": schedule.DefaultOptions(), "cpu": schedule.CPUOptions()} {
				s := newRig(t, quantisedLinear(mode, format, 1), nil, nil).plan(opt)
				dots := integerDots(t, s, fields, fmt.Sprintf("%s %s on a %s", format, mode, name))
				if want := map[nn.Numeric]int{nn.Int8: 1, nn.Int16: 2}[mode]; dots != want {
					t.Errorf("%s %s on a %s: %d dots, want %d\n%s", format, mode, name, dots, want, s)
				}
			}
		}
	}
}

// integerDots counts the innermost sums that read some fields, and wants them and
// all others of integers to be products of bytes.
func integerDots(t *testing.T, s *schedule.Schedule, fields []string, where string) (dots int) {
	t.Helper()
	for _, u := range innerSums(s) {
		var read []string
		rounds := false
		for _, x := range outsideStages(u) {
			if x.Op == ir.OpField {
				read = append(read, x.Arg.(ir.FieldArg).Field)
			}
			rounds = rounds || x.Op == ir.OpBitcast // of the sum that rounds
		}
		if !slices.ContainsFunc(read, func(f string) bool { return slices.Contains(fields, f) }) {
			continue
		}
		if u.DType != ir.I32 || len(read) != len(fields) || rounds {
			t.Errorf("%s: inner sum %s", where, schedule.KernelText(u))
		}
		dots++
	}
	for _, u := range innerSums(s) { // a sum of something else keeps its axis from dots
		if u.DType == ir.I32 && u.Src[0].Op != ir.OpMul && u.Src[0].Op != ir.OpCast {
			t.Errorf("%s: inner sum %s", where, schedule.KernelText(u))
		}
	}
	return dots
}

// chosenRows is a product of rounded activations with rows of packed weights that
// an input chooses: an expert's.
func chosenRows(mode nn.Numeric, format string) *tensor.Graph {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 1, 256).MulScalar(0.5).Contiguous()
	w := g.Packed("w", format, 4, 40, 256).Gather(0, g.Input("chosen", ir.I32, 2).Contiguous())
	g.Output("y", mode.Round(x).Reshape(1, 1, 256).Mul(w).Sum(-1))
	return g
}

// Rows that are gathered are packed fields like all others: scales and offsets
// leave their sums, and what is left are dots.
func TestChosenRowsAreDots(t *testing.T) {
	quants := map[string][]string{"Q6_K": {"ql", "qh"}, "Q4_K": {"qs"}}
	for format, fields := range quants {
		for _, opt := range []schedule.Options{schedule.DefaultOptions(), schedule.CPUOptions()} {
			g := chosenRows(nn.Int8, format)
			s := newRig(t, g, nil, nil).plan(opt)
			if dots := integerDots(t, s, fields, format); dots != 1 {
				t.Errorf("%s: %d dots, want 1\n%s", format, dots, s)
			}
			trap(t, g, opt, nil)
		}
	}
}

// A worker of a CPU reads the rows of a chosen matrix as one stream: what sums up the products with several of them is a
// kernel of its own. Sums over rows of one matrix stay with it, and blocks of a GPU read several matrices at once.
func TestChosenRowsAreStreams(t *testing.T) {
	for _, c := range []struct {
		opt      schedule.Options
		matrices bool
		kernels  int
	}{{schedule.CPUOptions(), true, 2}, {schedule.CPUOptions(), false, 1}, {schedule.DefaultOptions(), true, 1}} {
		g := tensor.NewGraph()
		x, w := g.Input("x", ir.F32, 1, 2, 1, 256), g.Packed("w", "Q4_K", 4, 96, 256).Gather(0, g.Input("chosen", ir.I32, 1, 2))
		if !c.matrices {
			x, w = g.Input("x", ir.F32, 1, 256), g.Packed("w", "Q4_K", 96, 256).Reshape(2, 48, 256)
		}
		g.Output("y", w.Mul(x).Sum(-1).Sum(-2))
		s, _ := trap(t, g, c.opt, nil)
		wantKernels(t, s, c.kernels)
	}
}

// A gated block with its norm takes as many launches in every mode: rounding is
// part of the kernels on both sides of it, to two digits too.
func TestModesLaunchAlike(t *testing.T) {
	for _, size := range []struct{ width, hidden int }{{1024, 3072}, {2048, 8192}, {3072, 8192}, {4096, 12288}} {
		for _, mode := range []nn.Numeric{nn.Exact, nn.Int8, nn.Int16, nn.Half} {
			g := tensor.NewGraph()
			x := g.Input("x", ir.F32, 1, size.width)
			y := nn.RMSNorm(x, g.Input("norm", ir.F32, size.width), 1e-5)
			gate := mode.Linear(y, g.Packed("gate", "Q6_K", size.hidden, size.width))
			up := mode.Linear(y, g.Packed("up", "Q6_K", size.hidden, size.width))
			g.Output("z", x.Add(mode.Linear(gate.Silu().Mul(up), g.Packed("down", "Q6_K", size.width, size.hidden))))
			sink, err := g.Sink()
			if err != nil {
				t.Fatal(err)
			}
			a := ir.NewArena()
			s, err := schedule.Run(t.Context(), a, a.Import(sink), schedule.DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Launches) != 2 {
				t.Errorf("%d x %d in %s: %d launches, want 2\n%s", size.width, size.hidden, mode, len(s.Launches), s)
			}
		}
	}
}

// outsideStages lists the nodes of an expression that no STAGE computes.
func outsideStages(u *ir.UOp) []*ir.UOp {
	seen, out := map[*ir.UOp]bool{u: true}, []*ir.UOp{u}
	for k := 0; k < len(out); k++ {
		if out[k].Op == ir.OpStage {
			continue
		}
		for _, x := range out[k].Src {
			if !seen[x] {
				seen[x] = true
				out = append(out, x)
			}
		}
	}
	return out
}

// innerSums lists the sums of a schedule that hold no other outside of stages.
func innerSums(s *schedule.Schedule) []*ir.UOp {
	var out []*ir.UOp
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			for _, u := range ir.Toposort(k.AST) {
				if u.Op == ir.OpReduce && !slices.ContainsFunc(outsideStages(u)[1:], func(x *ir.UOp) bool { return x.Op == ir.OpReduce }) {
					out = append(out, u)
				}
			}
		}
	}
	return out
}

// Integers that may grow past I32 stay floats.
func TestIntegerSumsAreBounded(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.I32, 64)
	g.Output("y", x.Cast(ir.F32).Sum(0))
	for _, u := range innermost(newRig(t, g, nil, nil).plan(schedule.DefaultOptions())) {
		if u.DType != ir.F32 {
			t.Errorf("sum of 64 of any I32 in %s", u.DType)
		}
	}
}

// Rows that a product gathers of rounded activations are integers as the rows themselves are:
// a mixture of experts sums bytes for many tokens, in its first products, too.
func TestGatheredRowsAreIntegers(t *testing.T) {
	const tokens, rows = 24, 16
	opt := schedule.CPUOptions()
	opt.Profile.ByteDots = true
	g := tensor.NewGraph()
	x := nn.Int8.Round(g.Input("x", ir.F32, tokens, 256).MulScalar(0.5).Contiguous())
	g.Output("y", x.Gather(0, g.Input("rows", ir.I32, rows)).Linear(g.Packed("w", "Q4_K", 40, 256)))
	for _, launch := range newRig(t, g, nil, nil).plan(opt).Launches {
		for _, k := range launch.Kernels {
			nodes := ir.Toposort(k.AST)
			has := func(op ir.Op, of ir.DType) bool {
				return slices.ContainsFunc(nodes, func(u *ir.UOp) bool { return u.Op == op && u.DType == of })
			}
			if has(ir.OpField, ir.F16) && !has(ir.OpReduce, ir.I32) {
				t.Error("a product with weights sums no integers")
			}
		}
	}
}

// A row that blocks quantise for themselves is not stored because it is wide: readers with stages of their own look as if they used
// their weights for many points, and one row is not the rows of a tile of matrix instructions.
func TestOneWideRowIsNoTile(t *testing.T) {
	for _, width := range []int{1024, 4096} {
		g := tensor.NewGraph()
		x := nn.RMSNorm(g.Input("x", ir.F32, 1, width), g.Input("norm", ir.F32, width), 1e-5)
		gate, up := nn.Int8.Linear(x, g.Packed("gate", "Q4_K", 8192, width)), nn.Int8.Linear(x, g.Packed("up", "Q4_K", 8192, width))
		g.Output("y", nn.Int8.Linear(gate.Silu().Mul(up), g.Packed("down", "Q4_K", 256, 8192)))
		s := newRig(t, g, nil, nil).plan(hopper(t))
		if len(s.Launches) != 2 {
			t.Errorf("%d launches for a row of %d, want 2: its network and what follows it\n%s", len(s.Launches), width, s)
		}
	}
}

// Both factors of the scores of many queries, and what their softmax weighs, are two terms of f16, where a warp has room for queries and
// products are many enough for the launches that find scales; cache rows that are not there yet count for no scale.
func TestScoresOfManyQueriesAreTerms(t *testing.T) {
	const rows, kv, group = 48, 2, 3
	for _, c := range []struct {
		queries, head int
		launch        int64
		want          bool
	}{{16, 32, 0, true}, {19, 24, 0, true}, {16, 32, 1 << 20, false}, {16, 256, 0, true}, {16, 272, 0, false}, {3, 32, 0, false}} {
		opt := schedule.DefaultOptions()
		opt.Profile.MatrixTokens, opt.Profile.ScaledTokens, opt.Profile.Launch, opt.Profile.Workers = 8, 16, c.launch, 1
		g := tensor.NewGraph()
		length, zero := g.Var("length", 1, rows), g.Dims(0)[0]
		q := g.Input("q", ir.F32, 1, c.queries, kv*group, c.head)
		keys, values := g.Input("k", ir.F32, 1, kv, rows, c.head), g.Input("v", ir.F32, 1, kv, rows, c.head)
		positions := lists.Make(c.queries, func(i int) int64 { return int64(i + 5) })
		g.Output("o", nn.Attention(q, keys.Slice(2, zero, length), values.Slice(2, zero, length), g.Input("positions", ir.I32, 1, c.queries)))
		there := int64(c.queries + 5)
		r := newRig(t, g, map[string]int64{"length": there}, map[string][]int64{"positions": positions})
		for _, id := range []int64{1, 2} {
			for i := range r.buffers[id].Data {
				if int64(i/c.head%rows) >= there {
					r.buffers[id].Data[i].F = math.NaN()
				}
			}
		}
		s := r.plan(opt)
		r.check(s, interp.KernelOptions{}, 3e-6)
		applied := slices.ContainsFunc(s.Records, func(r schedule.Record) bool { return r.Pass == "scale-scores" && r.Applied })
		if applied != c.want {
			t.Errorf("%d queries of %d, launches of %d: terms %t\n%s", c.queries, c.head, c.launch, applied, s)
		}
	}
}

// Attention of many queries rounds keys and values to halves where it reads them: a copy of a cache would be as long as the cache.
func TestCachesAreRoundedInPlace(t *testing.T) {
	const rows, kv, group, head = 200, 2, 8, 32
	for _, queries := range []int{40, 1} {
		g := tensor.NewGraph()
		length, zero := g.Var("length", 1, rows), g.Dims(0)[0]
		q := g.Input("q", ir.F32, 1, queries, kv*group, head)
		keys, values := g.Input("k", ir.F32, 1, kv, rows, head), g.Input("v", ir.F32, 1, kv, rows, head)
		half := func(x *tensor.Tensor) *tensor.Tensor { return x.Slice(2, zero, length).Cast(ir.F16).Cast(ir.F32) }
		positions := lists.Make(queries, func(i int) int64 { return int64(i + 5) })
		g.Output("o", nn.Attention(q, half(keys), half(values), g.Input("positions", ir.I32, 1, queries)))
		r := newRig(t, g, map[string]int64{"length": int64(queries) + 5}, map[string][]int64{"positions": positions})
		s := r.plan(hopper(t))
		r.check(s, interp.KernelOptions{}, 3e-6)
		if strings.Contains(s.String(), ":f16") {
			t.Errorf("%d queries: copies\n%s", queries, s)
		}
	}
}
