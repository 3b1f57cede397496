package kernel_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
)

// addInPlace: out[i] = out[i]*y[i] + 1, of which no element may be written twice.
func addInPlace(b *builder, n int64) *ir.UOp {
	y, out := b.param(0, ir.F32, n), b.param(1, ir.F32, n)
	i := b.rng(n)
	return b.sink(b.Store(out, b.Add(b.Mul(b.Load(out, i), b.Load(y, i)), b.f(1)), list(i), list(i)))
}

// largest: the largest and the sum of each row, and the row divided by them.
func largest(b *builder, rows, n int64) *ir.UOp {
	x, out := b.param(0, ir.F32, rows, n), b.param(1, ir.F32, rows, n)
	i, j, r, q := b.rng(rows), b.rng(n), b.rng(n), b.rng(n)
	top, sum := b.Reduce(ir.OpMax, b.Load(x, i, r), r), b.sum(b.Load(x, i, q), q)
	return b.sink(b.Store(out, b.Add(b.Mul(b.Load(x, i, j), top), sum), list(i, j), list(i, j)))
}

// product: out[m,n] = sum_k x[m,k]*w[k,n], columns side by side.
func product(b *builder, m, n, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, m, k), b.param(1, ir.F32, k, n), b.param(2, ir.F32, m, n)
	i, j, r := b.rng(m), b.rng(n), b.rng(k)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(x, i, r), b.Load(w, r, j)), r), list(i, j), list(i, j)))
}

// blocks: out[n] = sum_g s[n,g] * sum_k x[g,k]*w[n,g,k], a sum in a sum.
func blocks(b *builder, n, groups, k int64) *ir.UOp {
	x, s, w, out := b.param(0, ir.F32, groups, k), b.param(1, ir.F32, n, groups), b.param(2, ir.F32, n, groups, k), b.param(3, ir.F32, n)
	i, g, r := b.rng(n), b.rng(groups), b.rng(k)
	inner := b.sum(b.Mul(b.Load(x, g, r), b.Load(w, i, g, r)), r)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(s, i, g), inner), g), list(i), list(i)))
}

// halves: i32(x[i]*2), from f16, in digits of the index.
func halves(b *builder, n int64) *ir.UOp {
	x, y, out := b.param(0, ir.F16, n), b.param(1, ir.I32, n), b.param(2, ir.I32, n)
	i := b.rng(n)
	v := b.Add(b.Cast(b.Mul(b.Cast(b.Load(x, i), ir.F32), b.f(4)), ir.I32), b.Load(y, b.Add(b.Mul(b.Div(i, b.n(4)), b.n(4)), b.Mod(i, b.n(4)))))
	return b.sink(b.Store(out, v, list(i), list(i)))
}

// rounded: out[n] = sum_k y[k]*w[n,k] with y[k] = x[k] less the largest of x, which is
// made once, in a stage.
func rounded(b *builder, n, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, k), b.param(1, ir.F32, n, k), b.param(2, ir.F32, n)
	i, r, z, q := b.rng(n), b.rng(k), b.rng(k), b.rng(k)
	y := b.Make(ir.OpStage, ir.F32, ir.StageArg{}, b.Sub(b.Load(x, z), b.Reduce(ir.OpMax, b.Load(x, q), q)), z)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(y, r), b.Load(w, i, r)), r), list(i), list(i)))
}

// oddKernel draws a kernel whose extents nothing divides.
func oddKernel(rt *rapid.T, b *builder) *ir.UOp {
	size := func(name string) int64 {
		return int64(rapid.SampledFrom([]int{1, 2, 3, 5, 7, 13, 16, 17, 31, 33, 35, 37}).Draw(rt, name))
	}
	n, m, k := size("n"), size("m"), size("k")
	switch rapid.IntRange(0, 8).Draw(rt, "kernel") {
	case 0:
		return elementwise(b, n)
	case 1:
		return addInPlace(b, n)
	case 2:
		return largest(b, m, n)
	case 3:
		return product(b, m, n, k)
	case 4:
		return blocks(b, m, n, k)
	case 5:
		return halves(b, n)
	case 6:
		return matvec(b, n, k)
	case 7:
		return rounded(b, n, k)
	}
	return normRow(b, m, n)
}

// Lanes, copies and threads of any amount keep the values of axes of any extent, on
// a CPU and a GPU.
func TestOddExtents(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(rt *rapid.T) {
		b := newBuilder()
		sink := oddKernel(rt, b)
		desc := avx512
		kinds := []plan.OptKind{plan.VECTOR, plan.VECTOR, plan.UPCAST, plan.UNROLL, plan.ROLL, plan.STAGE, plan.FMA, plan.STREAM}
		if rapid.Bool().Draw(rt, "gpu") {
			desc = hopper(rt)
			kinds = append(kinds, plan.LOCAL, plan.LOCAL, plan.GROUP, plan.WARP)
		}
		axes := plan.Axes(sink)
		var chosen plan.Plan
		for range rapid.IntRange(1, 5).Draw(rt, "opts") {
			opt := plan.Opt{Kind: rapid.SampledFrom(kinds).Draw(rt, "kind")}
			switch opt.Kind {
			case plan.FMA:
			case plan.STREAM:
				opt.Axis = "p1"
			case plan.STAGE:
				opt.Axis = rapid.SampledFrom(axes).Draw(rt, "axis").Name
			default:
				opt.Axis = rapid.SampledFrom(axes).Draw(rt, "axis").Name
				opt.Amount = int64(rapid.SampledFrom([]int{2, 3, 4, 8, 16, 32}).Draw(rt, "amount"))
			}
			chosen.Opts = append(chosen.Opts, opt)
		}
		if kernel.Feasible(b.Arena, sink, chosen, desc) != nil {
			return
		}
		p, err := kernel.Lower(b.Arena, sink, chosen, desc)
		if err != nil {
			if strings.Contains(err.Error(), "differs among them") {
				return // threads that meet: known when the program is written
			}
			rt.Fatalf("%s: feasible, but: %v", chosen, err)
		}
		if err := program.VerifyGPU(p); desc != avx512 && err != nil {
			rt.Fatalf("%s: %v\n%s", chosen, err, show(p))
		}
		accepted++
		compare(rt, b.Arena, sink, p, chosen, nil)
	})
	if accepted == 0 {
		t.Error("no plan was accepted")
	}
}

// Lanes that do not divide an axis need no mask: the last vector starts earlier. Of a
// sum, and where the kernel reads what it writes, what it repeats is left out.
func TestTails(t *testing.T) {
	for _, c := range []struct {
		name, plan  string
		build       func(b *builder) *ir.UOp
		want, never string // in the program
	}{
		{"points", "VECTOR s0 16", func(b *builder) *ir.UOp { return elementwise(b, 37) }, "f32x16 = load", "if "},
		{"columns", "VECTOR s1 16; UPCAST s0 4; FMA", func(b *builder) *ir.UOp { return product(b, 7, 37, 5) }, "f32x16 = load", "gather"},
		{"sum", "VECTOR r0 16; FMA", func(b *builder) *ir.UOp { return matvec(b, 3, 37) }, "f32x16 = fma", "gather"},
		{"largest", "VECTOR r0 16", func(b *builder) *ir.UOp { return largest(b, 3, 37) }, "f32x16 = max", "gather"},
		{"in place", "VECTOR s0 16", func(b *builder) *ir.UOp { return addInPlace(b, 37) }, "if ", "gather"},
		{"lanes of a sum past its end", "VECTOR r0 8; UNROLL r0 8; FMA", func(b *builder) *ir.UOp { return matvec(b, 3, 40) }, "f32x8 = load", "gather"},
		{"points of a stage", "VECTOR z0 4; LOCAL z0 8", func(b *builder) *ir.UOp { return rounded(b, 3, 36) }, "f32x4 = load", "gather"},
		{"shorter than a vector", "VECTOR s0 16", func(b *builder) *ir.UOp { return elementwise(b, 13) }, "if ", ""},
	} {
		b := newBuilder()
		p := evaluate(t, b.Arena, c.build(b), c.plan, nil)
		text := program.Print(p)
		if !strings.Contains(text, c.want) || c.never != "" && strings.Contains(text, c.never) {
			t.Errorf("%s: %s: want %q, not %q\n%s", c.name, c.plan, c.want, c.never, text)
		}
	}
}

// Lanes of which some read past an edge load those inside, lanes that a division sends to
// two elements load both, and digits of neighbours that make up a place are neighbours:
// none is a gather.
func TestLanesAtEdges(t *testing.T) {
	for _, c := range []struct {
		name, plan string
		build      func(b *builder) *ir.UOp
		want       string // in the program
	}{
		{"padding", "VECTOR s0 8; ROLL s0", func(b *builder) *ir.UOp { return padded(b, 37, 3) }, "f32x8 = guarded"},
		{"padding of 13 lanes", "VECTOR s0 13", func(b *builder) *ir.UOp { return padded(b, 31, 4) }, "f32x13 = guarded"},
		{"step", "VECTOR s0 8", func(b *builder) *ir.UOp { return repeated(b, 93, 9) }, "f32x8 = where"},
		{"step of as many lanes", "VECTOR s0 16", func(b *builder) *ir.UOp { return repeated(b, 93, 15) }, "f32x16 = where"},
		{"digits", "VECTOR s0 8", func(b *builder) *ir.UOp { return digits(b, 93, 9) }, "f32x8 = load"},
		{"two steps", "VECTOR s0 16", func(b *builder) *ir.UOp { return repeated(b, 93, 7) }, "gather"},
	} {
		b := newBuilder()
		p := evaluate(t, b.Arena, c.build(b), c.plan, nil)
		if text := program.Print(p); !strings.Contains(text, c.want) || c.want != "gather" && strings.Contains(text, "gather") {
			t.Errorf("%s: %s: want %q\n%s", c.name, c.plan, c.want, text)
		}
	}
}

// padded: out[i] = x[i-pad] inside of x, else 1
func padded(b *builder, n, pad int64) *ir.UOp {
	x, out := b.param(0, ir.F32, n), b.param(1, ir.F32, n+2*pad)
	i := b.rng(n + 2*pad)
	at := b.Add(i, b.n(-pad))
	inside := b.And(b.Lt(b.n(-1), at), b.Lt(at, b.n(n)))
	return b.sink(b.Store(out, b.Where(inside, b.Load(x, at), b.f(1)), list(i), list(i)))
}

// digits: out[i] = x[i/n, i%n]
func digits(b *builder, points, n int64) *ir.UOp {
	x, out := b.param(0, ir.F32, (points+n-1)/n, n), b.param(1, ir.F32, points)
	i := b.rng(points)
	return b.sink(b.Store(out, b.Load(x, b.Div(i, b.n(n)), b.Mod(i, b.n(n))), list(i), list(i)))
}

// repeated: out[i] = x[i/times]
func repeated(b *builder, n, times int64) *ir.UOp {
	x, out := b.param(0, ir.F32, (n+times-1)/times), b.param(1, ir.F32, n)
	i := b.rng(n)
	return b.sink(b.Store(out, b.Load(x, b.Div(i, b.n(times))), list(i), list(i)))
}

// Copies of a fold are folded before its lanes are, and those that are its identity not at
// all: what two results have in common they share.
func TestFoldsOfCopies(t *testing.T) {
	for _, c := range []struct {
		name, plan, what string
		build            func(b *builder) *ir.UOp
		want             int
	}{
		{"lanes once", "VECTOR r0 16; UNROLL r0 4", "fold max", func(b *builder) *ir.UOp { return largest(b, 3, 64) }, 1},
		{"copies before", "VECTOR r0 16; UNROLL r0 4", ":f32x16 = max", func(b *builder) *ir.UOp { return largest(b, 3, 64) }, 3},
		{"a prefix", "UPCAST s1 16; UNROLL r0 16", "= mul", func(b *builder) *ir.UOp { return prefixes(b, 3, 16) }, 16*15/2 + 2}, // and two of addresses
	} {
		b := newBuilder()
		p := evaluate(t, b.Arena, c.build(b), c.plan, nil)
		if got := strings.Count(program.Print(p), c.what); got > c.want {
			t.Errorf("%s: %s: %d times %q, want at most %d\n%s", c.name, c.plan, got, c.what, c.want, show(p))
		}
	}
}

// prefixes: out[n,i] = product of x[n,k], k <= i
func prefixes(b *builder, rows, n int64) *ir.UOp {
	x, out := b.param(0, ir.F32, rows, n), b.param(1, ir.F32, rows, n)
	r, i, k := b.rng(rows), b.rng(n), b.rng(n)
	v := b.Where(b.Lt(i, k), b.f(1), b.Load(x, r, k))
	return b.sink(b.Store(out, b.Reduce(ir.OpMul, v, k), list(r, i), list(r, i)))
}

// What is chosen between scalars for all lanes is chosen between vectors: a CPU has masks for those, and jumps
// for scalars.
func TestChosenInLanes(t *testing.T) {
	b := newBuilder()
	x, count, w, out := b.param(0, ir.F32, 64), b.param(1, ir.I32, 1), b.param(2, ir.F32, 64, 16), b.param(3, ir.F32, 16)
	i, k := b.rng(16), b.rng(64)
	there := b.Lt(b.Cast(k, ir.I32), b.Load(count, b.n(0)))
	term := b.Mul(b.Where(there, b.Load(x, k), b.f(0)), b.Load(w, k, i))
	text := decodeText(t, b, b.sink(b.Store(out, b.sum(term, k), list(i), list(i))), "VECTOR s0 16; FMA")
	if !strings.Contains(text, ":f32x16 = where") {
		t.Errorf("want a choice of 16 lanes:\n%s", text)
	}
}
