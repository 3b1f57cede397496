package schedule_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/nn"
	"tgc/packed"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

// Traps 18 to 34; see traps_test.go.

// 18: padding takes part in a maximum, and a negative factor turns it round.
func TestTrap18Maximum(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 8).Abs().AddScalar(1).Neg()
	g.Output("a", x.Pad(0, 1, 1).Max(0))
	g.Output("b", x.MulScalar(-3).Max(0))
	g.Output("c", x.Mul(x.SumKeep(0)).Max(0))
	trap(t, g, schedule.DefaultOptions(), nil)
}

// 19: a narrowing cast is opaque to the algebra; moving it is exact.
func TestTrap19Narrowing(t *testing.T) {
	g := tensor.NewGraph()
	x := normalised(g.Input("x", ir.F32, 64)).Cast(ir.F16).Cast(ir.F32)
	g.Output("y", x.Linear(g.Input("w", ir.F32, 32, 64)))
	r := newRig(t, g, nil, nil)
	s := r.plan(schedule.DefaultOptions())
	r.check(s, interp.KernelOptions{}, 0)
}

// 20: a value that is inlined at two depths must not capture its own range, and
// its copies are one loop; two stages of one value are one stage.
func TestTrap20TwoDepths(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 64)
	mean := x.Mul(x).MeanKeep(-1)
	y := x.Maximum(mean).Linear(g.Input("w", ir.F32, 40, 64))
	g.Output("y", y.Mul(mean))
	s, _ := trap(t, g, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 1)
	squares := 0
	for _, u := range ir.Toposort(s.Launches[0].Kernels[0].AST) {
		if u.Op == ir.OpReduce && u.Src[0].Op == ir.OpMul && u.Src[0].Src[0] == u.Src[0].Src[1] {
			squares++
		}
	}
	if squares != 1 {
		t.Errorf("%d sums of squares, want 1\n%s", squares, s)
	}

	g = tensor.NewGraph()
	p := g.Input("x", ir.F32, 64).Softmax(0)
	first := p.Linear(g.Input("w1", ir.F32, 40, 64))
	second := p.Flip(0).Linear(g.Input("w2", ir.F32, 40, 64))
	g.Output("y", first.Add(second))
	s, _ = trap(t, g, schedule.DefaultOptions(), nil)
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			stages := 0
			for _, u := range ir.Toposort(k.AST) {
				if u.Op == ir.OpStage {
					stages++
				}
			}
			if stages > 1 {
				t.Errorf("%d stages, want 1\n%s", stages, s)
			}
		}
	}
}

// 21: the sum of a softmax reads the stored value of a store that holds the
// same tuple: not one kernel, unless by the expression.
func TestTrap21SumOfSoftmax(t *testing.T) {
	g := tensor.NewGraph()
	p := g.Input("x", ir.F32, 12).Softmax(0)
	g.Output("p", p)
	g.Output("sum", p.Sum(0))
	trap(t, g, schedule.DefaultOptions(), nil)
}

// innermost lists the plain sums of a schedule that hold no other reduce.
func innermost(s *schedule.Schedule) []*ir.UOp {
	var out []*ir.UOp
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			for _, u := range ir.Toposort(k.AST) {
				if u.Op != ir.OpReduce || slices.ContainsFunc(ir.Toposort(u.Src[0]), func(x *ir.UOp) bool { return x.Op == ir.OpReduce }) {
					continue
				}
				out = append(out, u)
			}
		}
	}
	return out
}

// 22: after the integer constant is distributed, R2 takes it out of its sum:
// no innermost sum multiplies by it.
func TestTrap22ConstantLeaves(t *testing.T) {
	g := tensor.NewGraph()
	x := nn.RMSNorm(g.Input("x", ir.F32, 256), g.Input("g", ir.F32, 256), 1e-5)
	g.Output("y", nn.Int8.Linear(x, g.Packed("w", "Q6_K", 32, 256)))
	s, _ := trap(t, g, schedule.DefaultOptions(), nil)
	isIntegerSum := func(u *ir.UOp) bool { return analyse.IsSum(u) && u.DType == ir.I32 }
	sums := 0
	for _, u := range ir.Toposort(s.Launches[0].Kernels[0].AST) {
		if !isIntegerSum(u) || analyse.Any(u.Src[0], isIntegerSum) {
			continue
		}
		sums++
		if analyse.Any(u.Src[0], func(x *ir.UOp) bool { return x.DType == ir.I32 && x.IsInt(-32) }) {
			t.Errorf("the constant stands in %s", schedule.KernelText(u))
		}
	}
	if sums != 2 {
		t.Errorf("%d innermost sums of integers, want the product's and the constant's\n%s", sums, s)
	}
}

// 23: with R3 before R2m no scale of Q4_K leaves the sum, and no integer dot can
// match. Values do not tell: the innermost sums read quants and nothing else.
func TestTrap23ScalesLeave(t *testing.T) {
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F32, 256).Linear(g.Packed("w", "Q4_K", 32, 256)))
	s, reads := trap(t, g, schedule.DefaultOptions(), nil)
	for _, u := range innermost(s) {
		for _, x := range ir.Toposort(u.Src[0]) {
			if x.Op == ir.OpField && x.Arg.(ir.FieldArg).Field != "qs" {
				t.Errorf("%s stands in the inner sum %s", x.Arg.(ir.FieldArg).Field, schedule.KernelText(u))
			}
		}
	}
	if n := int64(32 * 256); reads[1]["qs"] != n || reads[1]["d"] != n/256 || reads[1]["dmin"] != n/256 {
		t.Errorf("reads %v, want qs %d and d, dmin %d", reads[1], n, n/256)
	}
}

// 24: groups of 24 against blocks of 32 have no common chain.
func TestTrap24NoCommonChain(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 4, 24).Transpose(0, 0).Reshape(96)
	g.Output("y", x.Linear(g.Packed("w", "Q8_0", 8, 96)))
	trap(t, g, schedule.DefaultOptions(), nil)
}

// 25: packed data are read once, whatever is fused.
func TestTrap25FieldReads(t *testing.T) {
	m := llamaTiny()
	m.format, m.width, m.heads, m.kv, m.head, m.ff = "Q6_K", 256, 4, 2, 64, 256
	for _, opt := range []schedule.Options{schedule.DefaultOptions(), schedule.CPUOptions()} {
		g := m.build()
		r := modelRigOf(t, m, g, 3)
		s := r.plan(opt)
		_, reads := r.run(s, interp.KernelOptions{})
		for _, b := range g.Buffers() {
			if b.Format == "" {
				continue
			}
			n := int64(1)
			for _, d := range b.Shape {
				extent, _ := d.Int()
				n *= extent
			}
			got := reads[b.ID]
			if got["ql"] != n || got["qh"] != n {
				t.Errorf("%s: ql read %d times, qh %d, want %d\n%s", b.Name, got["ql"], got["qh"], n, s)
			}
			if !opt.Profile.IntegerSums && (got["scales"] != n/16 || got["d"] != n/256) {
				t.Errorf("%s: scales read %d times, d %d, want %d and %d", b.Name, got["scales"], got["d"], n/16, n/256)
			}
		}
	}
}

// 26: a tile that is the whole value would put a matvec into one block. Where that takes
// less than a launch, it pays.
func TestTrap26OneTile(t *testing.T) {
	g := tensor.NewGraph()
	q := g.Input("x", ir.F32, 512).Linear(g.Packed("w", "Q8_0", 256, 512))
	g.Output("p", q.Softmax(0))
	s, _ := trap(t, g, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 2)
	small := tensor.NewGraph()
	q = small.Input("x", ir.F32, 64).Linear(small.Packed("w", "Q8_0", 64, 64))
	small.Output("p", q.Softmax(0))
	s, _ = trap(t, small, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 1)
}

// 27: the variance of a constant row is rounding (1e-17) against 0: relative to
// the output every rule is wrong. Forms are compared by the largest value on the
// way.
func TestTrap27VarianceOfConstant(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 48)
	c := x.Sub(x.MeanKeep(0))
	g.Output("v", c.Mul(c).MeanKeep(0).Reshape(1))
	r := newRig(t, g, nil, nil)
	for i := range r.buffers[0].Data {
		r.buffers[0].Data[i].F = float64(float32(0.1))
	}
	want, _ := r.run(r.plan(plainOptions()), interp.KernelOptions{Float64: true})
	got, _ := r.run(r.plan(schedule.DefaultOptions()), interp.KernelOptions{Float64: true})
	if d := math.Abs(want[1].Data[0].F - got[1].Data[0].F); !(d <= 1e-9*r.largest) {
		t.Errorf("variance %g, want %g", got[1].Data[0].F, want[1].Data[0].F)
	}
}

// 29: "packed bytes are read once" is a law on plans: the loop order (t, n, k)
// of the kernel form reads them once per row of a prompt. The plan of a CPU
// holds a tile of rows inside, and its program reads them once per tile.
func TestTrap29PromptReadsOnce(t *testing.T) {
	build := func(tokens, rows, width int) *tensor.Graph {
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, tokens, width).Linear(g.Packed("w", "Q8_0", rows, width)))
		return g
	}
	_, reads := trap(t, build(16, 8, 64), schedule.CPUOptions(), nil)
	if n := int64(16 * 8 * 64); reads[1]["qs"] != n {
		t.Errorf("the kernel form reads qs %d times, want %d", reads[1]["qs"], n)
	}
	const tokens, rows, width = 16, 1024, 1024
	s := newRig(t, build(tokens, rows, width), nil, nil).plan(schedule.CPUOptions())
	wantKernels(t, s, 1)
	desc, err := target.Parse("llvm:x86-64-v3")
	if err != nil {
		t.Fatal(err)
	}
	a := ir.NewArena()
	k := s.Launches[0].Kernels[0]
	sink := a.Import(k.AST)
	choice, err := heuristic.Choose(a, sink, desc, heuristic.Knobs{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.Lower(a, sink, choice.Plan, desc)
	if err != nil {
		t.Fatal(err)
	}
	slot := slices.IndexFunc(k.Args, func(i int) bool { return s.Buffers[i].Format != "" })
	once := int64(rows * width / 32 * 34) // bytes of the matrix
	if n := bytesLoaded(p, slot); n < once || n > 2*once {
		t.Errorf("the program reads %d bytes of the matrix, want %d to %d (a tile holds at least half of the prompt); plan %s: %s", n, once, 2*once, choice.Plan, choice.Why)
	}
}

// bytesLoaded counts the bytes that a program's loads take from a buffer, loops
// multiplied out. Gathers and guarded loads count what they may take.
func bytesLoaded(p *program.Program, slot int) int64 {
	from := make(map[*program.Value]bool)
	known := make(map[*program.Value]int64)
	for _, x := range p.Params {
		from[x.Value] = x.Kind == program.ParamBuffer && x.Slot == slot
	}
	var count func(b *program.Block, times int64) int64
	count = func(b *program.Block, times int64) (n int64) {
		for _, in := range b.Instrs {
			switch in.Op {
			case program.Const:
				known[in.Result] = in.Int
			case program.PtrAdd:
				from[in.Result] = from[in.Args[0]]
			case program.Alu:
				if in.Result.Type.Ptr {
					from[in.Result] = from[in.Args[0]]
				}
			case program.Load, program.Gather:
				if from[in.Args[0]] {
					n += times * int64(in.Result.Type.Lanes*in.Result.Type.Elem.Size())
				}
			case program.Guarded:
				if from[in.Args[1]] {
					n += times * int64(in.Result.Type.Lanes*in.Result.Type.Elem.Size())
				}
			case program.For:
				lo, hi, step := known[in.Args[0]], known[in.Args[1]], known[in.Args[2]]
				n += count(in.Body, times*((hi-lo+step-1)/max(step, 1)))
			case program.If:
				n += max(count(in.Body, times), count(in.Else, times))
			case program.GridLoop:
				n += count(in.Body, times*p.Units())
			}
		}
		return n
	}
	return count(p.Body, 1)
}

// 30: a row of a format is written so that every field's index stays inside its
// block, in untaken arms too.
func TestTrap30FieldsInBounds(t *testing.T) {
	for _, f := range packed.All() {
		a := ir.NewArena()
		width := a.Index(int64(2 * f.BlockElems))
		buf := a.Make(ir.OpParam, ir.U8, ir.ParamArg{Slot: 0, Format: f.Name}, a.Index(4), width)
		e := f.Decode(a, buf, a.Range(0, a.Index(4)), a.Range(1, width))
		bounds := ir.NewBounds()
		for _, u := range ir.Toposort(e) {
			if u.Op != ir.OpField {
				continue
			}
			field, ok := f.Field(u.Arg.(ir.FieldArg).Field)
			if !ok {
				t.Fatalf("%s: no field %s", f.Name, u.Arg.(ir.FieldArg).Field)
			}
			if b := bounds.Of(u.Src[3]); b.Lo < 0 || b.Hi >= int64(field.Count) {
				t.Errorf("%s.%s is read at %d..%d of %d", f.Name, field.Name, b.Lo, b.Hi, field.Count)
			}
		}
	}
}

// 31: 8-bit activations: the group scale leaves the inner sum, and rounding
// does not run once per output row.
func TestTrap31QuantisedActivations(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 64).Reshape(2, 32)
	d := x.Abs().MaxKeep(1).MulScalar(1.0 / 127)
	q := x.Mul(d.Recip()).AddScalar(0.5).Floor()
	y := q.Mul(d).Reshape(64)
	g.Output("y", y.Linear(g.Packed("w", "Q8_0", 96, 64)))
	s, _ := trap(t, g, schedule.DefaultOptions(), nil)
	// The innermost sum is over stored or staged integers: no rounding in it.
	for _, line := range strings.Split(s.String(), "\n") {
		if i := strings.LastIndex(line, "*f32(b"); i >= 0 && strings.Contains(line, ".qs[") {
			if sum := line[strings.LastIndex(line[:strings.Index(line, ".qs[")], "ADD("):]; strings.HasPrefix(sum, "ADD((floor") {
				t.Errorf("rounding in the inner sum:\n%s", s)
			}
		}
	}
}

// 31, second half: 8-bit outputs stored with their scale. Both readers of the
// product hold one tile of a group, and are two stores of one kernel that reads
// its weights once.
func TestTrap31QuantisedOutputs(t *testing.T) {
	for _, tokens := range []int{1, 3} {
		g := tensor.NewGraph()
		h := g.Input("x", ir.F32, tokens, 64).Linear(g.Packed("w", "Q8_0", 96, 64)).Reshape(tokens, 3, 32)
		d := h.Abs().MaxKeep(2).MulScalar(1.0 / 127)
		g.Output("d", d.Reshape(tokens, 3))
		g.Output("q", h.Mul(d.Recip()).AddScalar(0.5).Floor().Cast(ir.I8))
		opt := schedule.DefaultOptions()
		opt.Profile.MinBlocks = 1
		r := newRig(t, g, nil, nil)
		s := r.plan(opt)
		wantKernels(t, s, 1)
		if n := len(s.Launches[0].Kernels[0].AST.Src); n != 2 {
			t.Errorf("%d stores, want 2\n%s", n, s)
		}
		reads := r.check(s, interp.KernelOptions{}, 2e-6)
		if n := int64(tokens * 96 * 64); reads[1]["qs"] != n {
			t.Errorf("%d reads of qs, want %d", reads[1]["qs"], n)
		}
	}
}

// 32: a tile splits a value's loops, not its signature: its readers' indices
// stay, and it is not inlined any more.
func TestTrap32LoopsAndSignature(t *testing.T) {
	g := tensor.NewGraph()
	q := g.Input("x", ir.F32, 64).Linear(g.Packed("w", "Q8_0", 128, 64)).Reshape(8, 8, 2)
	half := q.SliceInts(2, 1, 1).Neg().Cat(2, q.SliceInts(2, 0, 1)).Reshape(8, 16)
	turned := q.Reshape(8, 16).Mul(g.Input("cos", ir.F32, 16)).Add(half.Mul(g.Input("sin", ir.F32, 16)))
	g.Output("a", turned.Transpose(0, 1))
	g.Output("b", turned.Mul(turned).Sum(0))
	s, reads := trap(t, g, schedule.DefaultOptions(), nil)
	if !strings.Contains(s.String(), "STAGE") || len(s.Launches) != 2 {
		t.Errorf("want a tile in a launch of its own\n%s", s)
	}
	if n := reads[1]["qs"]; n != 128*64 {
		t.Errorf("%d reads of qs, want %d", n, 128*64)
	}
}

// 33: extents of 1 everywhere.
func TestTrap33ExtentOne(t *testing.T) {
	m := llamaTiny()
	m.heads, m.kv, m.head, m.width, m.ff, m.context = 1, 1, 32, 32, 32, 1
	r := modelRig(t, m, 0)
	r.check(r.plan(schedule.DefaultOptions()), interp.KernelOptions{}, 2e-5)

	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 1, 32)
	g.Output("y", normalised(x).Linear(g.Packed("w", "Q8_0", 1, 32)).Softmax(-1))
	trap(t, g, schedule.DefaultOptions(), nil)
}

// 34: a square is known by its factors being one node, also when they were
// written twice.
func TestTrap34SquareIsOneNode(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 64)
	centred := func() *tensor.Tensor { return x.Sub(x.MeanKeep(0)) }
	variance := centred().Mul(centred()).MeanKeep(0)
	g.Output("y", variance.AddScalar(1e-5).Rsqrt().Mul(centred()))
	s, _ := trap(t, g, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 1)
	if !strings.Contains(s.String(), "TUPLE") {
		t.Errorf("the square is not seen\n%s", s)
	}
}

// 35: matrices that are gathered for groups of rows, as many as there are or more,
// are not unpacked into memory: the product reads them where they lie. Fewer, which
// are a selection, are.
func TestTrap35GatheredMatrices(t *testing.T) {
	for groups, kernels := range map[int]int{6: 1, 3: 2} {
		g := tensor.NewGraph()
		which := make([]int64, groups)
		for i := range which {
			which[i] = int64(i*5) % 4
		}
		w := g.Packed("w", "Q8_0", 4, 16, 64).Gather(0, g.Input("which", ir.I32, groups))
		x := g.Input("x", ir.F32, groups, 8, 64)
		g.Output("y", x.Unsqueeze(2).Mul(w.Unsqueeze(1)).Sum(-1))
		s, _ := trap(t, g, schedule.DefaultOptions(), map[string][]int64{"which": which})
		wantKernels(t, s, kernels)
	}
}
