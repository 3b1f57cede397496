package kernel_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/packed"
)

// minimaOf is what sums of groups are where weights have minima.
type minimaOf int

const (
	noMinima minimaOf = iota
	summedHere
	read
)

// bytesWithMinima is a product of bytes in groups with a scale of rows and one of columns, less, for each group, a
// minimum times the sum of its activations: summed beside the product, or read.
func bytesWithMinima(b *builder, tokens, rows, groups, size int64, minima minimaOf) *ir.UOp {
	x, w, out := b.param(0, ir.I8, tokens, groups*size), b.param(1, ir.U8, rows, groups*size), b.param(2, ir.F32, tokens, rows)
	scale, length := b.param(3, ir.F32, rows, groups), b.param(4, ir.F32, tokens, groups)
	t, n, g, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(size)
	k := b.Add(b.Mul(g, b.n(size)), j)
	v := b.Cast(b.Load(x, t, k), ir.I32)
	q := b.Cast(b.And(b.Load(w, n, k), b.ConstInt(ir.U8, 15)), ir.I32)
	factor := b.Mul(b.Load(length, t, g), b.Load(scale, n, g))
	total := b.sum(b.Mul(factor, b.Cast(b.sum(b.Mul(v, q), j), ir.F32)), g)
	if minima == noMinima {
		return b.sink(b.Store(out, total, list(t, n), list(t, n)))
	}
	least, of := b.param(5, ir.F32, rows, groups), b.Mul(b.Load(length, t, g), b.Cast(b.sum(v, j), ir.F32))
	if minima == read {
		of = b.Load(b.param(6, ir.F32, tokens, groups), t, g)
	}
	total = b.Sub(total, b.sum(b.Mul(b.Load(least, n, g), of), g))
	return b.sink(b.Store(out, total, list(t, n), list(t, n)))
}

// Sums with minima have the accumulators of those without, and a matrix instruction goes on with what the one before
// has summed up of a group, of bytes or of floats.
func TestMatrixSumsOfMinima(t *testing.T) {
	for _, c := range []struct {
		name   string
		build  func(b *builder) *ir.UOp
		starts int
	}{
		{"without", func(b *builder) *ir.UOp { return bytesWithMinima(b, 16, 32, 4, 32, noMinima) }, 1},
		{"summed here", func(b *builder) *ir.UOp { return bytesWithMinima(b, 16, 32, 4, 32, summedHere) }, 2},
		{"read", func(b *builder) *ir.UOp { return bytesWithMinima(b, 16, 32, 4, 32, read) }, 1},
		{"floats", func(b *builder) *ir.UOp { return factoredMatmul(b, 16, 32, 4, 32) }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBuilder()
			sink := c.build(b)
			text := runPanels(t, b, sink, "MMA r1; UNROLL r1 2")
			if got := startsOfSums(text); got != c.starts {
				t.Errorf("%d sums of matrix instructions start from zero, want %d\n%s", got, c.starts, text)
			}
			if got := accumulators(text); got != 4 {
				t.Errorf("%d accumulators, want 4: one for each result of a lane\n%s", got, text)
			}
		})
	}
}

// An instruction goes on with the sum of up to 128 products of floats: it cuts off what a sum of more would round.
func TestMatrixSumsOfManyFloats(t *testing.T) {
	for unrolled, starts := range map[int]int{1: 1, 8: 1, 16: 16} {
		t.Run(fmt.Sprint(unrolled), func(t *testing.T) {
			b := newBuilder()
			sink := floatMatmul(b, ir.BF16, 16, 32, 256)
			text := runPanels(t, b, sink, fmt.Sprintf("MMA r0; UNROLL r0 %d", unrolled))
			if got := startsOfSums(text); got != starts {
				t.Errorf("%d sums of matrix instructions start from zero, want %d\n%s", got, starts, text)
			}
		})
	}
}

// halfMatmul is a product of halves, summed over groups of which each has a scale if it is scaled.
func halfMatmul(b *builder, tokens, rows, groups, size int64, scaled bool) *ir.UOp {
	x, w, out := b.param(0, ir.BF16, tokens, groups*size), b.param(1, ir.BF16, rows, groups*size), b.param(3, ir.F32, tokens, rows)
	t, n, g, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(size)
	k := b.Add(b.Mul(g, b.n(size)), j)
	total := b.sum(b.Mul(b.Cast(b.Load(x, t, k), ir.F32), b.Cast(b.Load(w, n, k), ir.F32)), j)
	if scaled {
		total = b.Mul(total, b.Load(b.param(2, ir.F32, groups), g))
	}
	return b.sink(b.Store(out, b.sum(total, g), list(t, n), list(t, n)))
}

// Instructions on halves go on with the accumulators of a loop, however many points they sum, and nothing is added but by them. Sums
// with a scale of their own start from zero.
func TestMatrixSumsOfHalves(t *testing.T) {
	sum := regexp.MustCompile(`:f32 = (add|fma) `)
	for _, c := range []struct {
		name, ofSum string
		size        int64
		scaled      bool
		sums        bool
	}{
		{"a loop", "MMA r1; UNROLL r1 2", 64, false, false},
		{"more than 128 points of an iteration", "MMA r1; UNROLL r1 16", 256, false, false},
		{"a scale of each iteration", "MMA r1; UNROLL r1 2", 32, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBuilder()
			text := runPanels(t, b, halfMatmul(b, 16, 32, 4, c.size, c.scaled), c.ofSum)
			if got := startsOfSums(text); got != 1 {
				t.Errorf("%d chains of matrix instructions, want 1\n%s", got, text)
			}
			if got := accumulators(text); got != 4 {
				t.Errorf("%d accumulators, want 4: one for each result of a lane\n%s", got, text)
			}
			if got := sum.MatchString(text); got != c.sums {
				t.Errorf("sums beside the instructions: %t, want %t\n%s", got, c.sums, text)
			}
		})
	}
}

// What decodes a factor of a matrix instruction is contracted as other expressions are: a product and a difference are one multiply-add.
func TestMatrixFactorsAreContracted(t *testing.T) {
	b := newBuilder()
	x, w, scale, least := b.param(0, ir.BF16, 16, 64), b.param(1, ir.U8, 32, 64), b.param(2, ir.F32, 32), b.param(4, ir.F32, 32)
	tokens, n, k := b.rng(16), b.rng(32), b.rng(64)
	weight := b.Sub(b.Mul(b.Load(scale, n), b.Cast(b.Load(w, n, k), ir.F32)), b.Load(least, n))
	product := b.Mul(b.Cast(b.Load(x, tokens, k), ir.F32), b.Cast(b.Cast(weight, ir.BF16), ir.F32))
	sink := b.sink(b.Store(b.param(3, ir.F32, 16, 32), b.sum(product, k), list(tokens, n), list(tokens, n)))
	text := runPlan(t, b, sink, "UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; MMA r0; FMA")
	if !strings.Contains(text, "= fma ") || strings.Contains(text, "= sub ") {
		t.Errorf("a weight is not decoded by a multiply-add\n%s", text)
	}
}

// A thread makes what a lane reads of a panel's rows, of both of its rows, and neighbouring threads go on along the sum: one
// store, and loads of lines, not of rows.
func TestPanelsOfLines(t *testing.T) {
	b := newBuilder()
	sink := floatMatmul(b, ir.BF16, 16, 32, 256)
	text := runPanels(t, b, sink, "MMA r0; UNROLL r0 8")
	if !regexp.MustCompile(`%\d+:bf16x8 = shuffle %\d+ %\d+ mask 0 1 4 5 2 3 6 7`).MatchString(text) {
		t.Errorf("no two rows become one store of a fragment\n%s", text)
	}
	if !regexp.MustCompile(`store %\d+ %\d+ align 16`).MatchString(text) {
		t.Errorf("no fragment of rows is stored at once\n%s", text)
	}
}

// What the lanes of a warp read at once lies side by side in a panel, in different banks: between copies of the sum, which lie around it,
// there are few gaps.
func TestPanelsWithoutGaps(t *testing.T) {
	b := newBuilder()
	text := runPanels(t, b, floatMatmul(b, ir.BF16, 16, 32, 256), "MMA r0; UNROLL r0 4")
	total := 0
	for _, m := range regexp.MustCompile(`:\*bf16@shared = alloca count (\d+)`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		total += n
	}
	const sets, terms = 2, 3 // of double buffers; of the floats that are columns
	if least := sets * (32 + terms*16) * 64; total < least || total > least*11/10 {
		t.Errorf("panels of %d halves, want %d and a tenth more at most\n%s", total, least, text)
	}
}

// Copies that read the same bytes of packed weights, both halves of a byte, are of one thread, which loads them and what scales them
// once: of a type with 32 points in the low halves and the next 32 in the high ones, and of one with 16 in each.
func TestPanelsShareBytes(t *testing.T) {
	for _, quant := range []string{"Q4_K", "Q4_0"} {
		t.Run(quant, func(t *testing.T) {
			b := newBuilder()
			f, _ := packed.Lookup(quant)
			x, w, out := b.param(0, ir.BF16, 16, 256), b.packed(1, quant, 32, 256), b.param(3, ir.F32, 16, 32)
			tokens, n, k := b.rng(16), b.rng(32), b.rng(256)
			weight := b.Cast(b.Cast(f.Decode(b.Arena, w, n, k), ir.BF16), ir.F32)
			total := b.sum(b.Mul(b.Cast(b.Load(x, tokens, k), ir.F32), weight), k)
			text := runPanels(t, b, b.sink(b.Store(out, total, list(tokens, n), list(tokens, n))), "MMA r0; UNROLL r0 4")
			_, loop, _ := strings.Cut(text, " = for ")
			if got := strings.Count(loop, ":u8x4 = load"); got != 2 {
				t.Errorf("%d loads of codes in the loop, want one for each of two rows\n%s", got, text)
			}
		})
	}
}

// runPanels is runPlan of a product of 16 x 32 with both factors in panels and these Opts of its sum.
func runPanels(t *testing.T, b *builder, sink *ir.UOp, ofSum string) string {
	t.Helper()
	return runPlan(t, b, sink, "UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; "+ofSum+"; FMA")
}

// runPlan lowers a kernel by a plan, runs the program and its PTX beside the reference, and returns the program's text.
func runPlan(t *testing.T, b *builder, sink *ir.UOp, opts string) string {
	t.Helper()
	chosen, err := plan.Parse(opts)
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.Lower(b.Arena, sink, chosen, hopper(t))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, b.Arena, sink, p, chosen, nil)
	emulate(t, sink, p, nil)
	return program.Print(p)
}

var (
	matrixLine = regexp.MustCompile(`(%\d+):f32x4 = mma (%\d+)`)
	loopLine   = regexp.MustCompile(`= for (.*) do `)
)

// startsOfSums counts the matrix instructions that do not go on with what another has summed up.
func startsOfSums(text string) (n int) {
	results := make(map[string]bool)
	for _, m := range matrixLine.FindAllStringSubmatch(text, -1) {
		if !results[m[2]] {
			n++
		}
		results[m[1]] = true
	}
	return n
}

// accumulators counts what a loop carries that starts from the same zero.
func accumulators(text string) (most int) {
	for _, m := range loopLine.FindAllStringSubmatch(text, -1) {
		count := make(map[string]int)
		for _, value := range strings.Fields(m[1]) {
			count[value]++
			most = max(most, count[value])
		}
	}
	return most
}
