package search

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// judged is a judge of a kernel whose inputs are known: fill says what a buffer holds.
func judged(t *testing.T, build func(g *tensor.Graph) *tensor.Tensor, fill func(b *schedule.Buffer) []float64) *judge {
	t.Helper()
	dev, g := interp.New(interp.Options{}), tensor.NewGraph()
	g.Output("y", build(g))
	c, err := g.Compile(t.Context(), dev.Target(), engine.Config{})
	if err != nil || len(c.Kernels) != 1 {
		t.Fatalf("%d kernels, %v, want 1", len(c.Kernels), err)
	}
	k := c.Kernels[0]
	b, err := NewBench(t.Context(), dev, k.AST, BenchOptions{Limits: DefaultLimits(), Baseline: k.Plan.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	j := &b.judge
	j.contents = func(_, slot int, bytes int64) []byte {
		buffer := &b.kernel.Schedule.Buffers[j.calls.slots[slot].index]
		if values := fill(buffer); values != nil {
			return []byte(ir.EncodeTable(buffer.DType, values))
		}
		return make([]byte, bytes)
	}
	j.trials = j.trials[:1]
	if err := j.sample(t.Context(), j.trials[0]); err != nil {
		t.Fatal(err)
	}
	return j
}

// results are the bytes of the one output.
func (j *judge) bytesOf(values []float32) map[int][]byte {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = float64(v)
	}
	for slot := range j.calls.slots {
		if written := writtenSlots(j.calls.kernel.Kernels[0].Program); written[0].Slot == slot {
			return map[int][]byte{slot: []byte(ir.EncodeTable(ir.F32, list))}
		}
	}
	return nil
}

// accepts says whether results are right, beside those of the heuristic's plan.
func (j *judge) accepts(t *testing.T, want, got []float32) error {
	t.Helper()
	trial := j.trials[0]
	trial.want = j.bytesOf(want)
	err := j.compare(t.Context(), trial, j.bytesOf(got))
	if err != nil && !errors.Is(err, errWrong) {
		t.Fatal(err)
	}
	return err
}

// beyond counts elements that the bounds of the sampled points alone would refuse.
func (j *judge) beyond(want, got []float32) (n int) {
	for i := range want {
		for _, bound := range j.trials[0].bounds {
			if !within(float64(got[i]), float64(want[i]), bound, ir.F32) {
				n++
			}
		}
	}
	return n
}

// orders in which terms may be summed up, in f32.
var orders = map[string]func(x []float32, rng *rand.Rand) float32{
	"first to last": func(x []float32, _ *rand.Rand) float32 { return inOrder(x) },
	"last to first": func(x []float32, _ *rand.Rand) float32 { x = slices.Clone(x); slices.Reverse(x); return inOrder(x) },
	"any": func(x []float32, rng *rand.Rand) float32 {
		x = slices.Clone(x)
		rng.Shuffle(len(x), func(i, k int) { x[i], x[k] = x[k], x[i] })
		return inOrder(x)
	},
	"2 lanes":  func(x []float32, _ *rand.Rand) float32 { return inLanes(x, 2) },
	"16 lanes": func(x []float32, _ *rand.Rand) float32 { return inLanes(x, 16) },
	"pairs":    func(x []float32, _ *rand.Rand) float32 { return inPairs(x) },
}

func inOrder(x []float32) (sum float32) {
	for _, v := range x {
		sum += v
	}
	return sum
}

func inLanes(x []float32, n int) float32 {
	lanes := make([]float32, n)
	for i, v := range x {
		lanes[i%n] += v
	}
	return inPairs(lanes)
}

func inPairs(x []float32) float32 {
	if len(x) == 1 {
		return x[0]
	}
	return inPairs(x[:len(x)/2]) + inPairs(x[len(x)/2:])
}

// Sums in any order are right, also where neighbours cancel, so that sums in order stay small and
// others do not; one element that is off by more than that is not.
func TestSumsInAnyOrder(t *testing.T) {
	const rows, n = 12, 2048
	for name, term := range map[string]func(k int, rng *rand.Rand) float64{
		"random":            func(_ int, rng *rand.Rand) float64 { return 2*rng.Float64() - 1 },
		"of one sign":       func(_ int, rng *rand.Rand) float64 { return rng.Float64() },
		"neighbours cancel": func(k int, rng *rand.Rand) float64 { return float64(1-2*(k%2)) * (1 + rng.Float64()/1024) },
		"halves cancel":     func(k int, rng *rand.Rand) float64 { return float64(1-2*(2*k/n)) * (1 + rng.Float64()/1024) },
		"a few large ones":  func(_ int, rng *rand.Rand) float64 { return math.Pow(2*rng.Float64()-1, 15) },
	} {
		rng := rand.New(rand.NewPCG(3, 1))
		data := make([]float64, rows*n)
		for i := range data {
			data[i] = float64(float32(term(i%n, rng)))
		}
		j := judged(t, func(g *tensor.Graph) *tensor.Tensor { return g.Input("x", ir.F32, rows, n).Sum(1) }, func(b *schedule.Buffer) []float64 {
			if b.Bytes == 4*rows*n {
				return data
			}
			return nil
		})
		sums := func(order func([]float32, *rand.Rand) float32) (out []float32) {
			for row := range rows {
				x := make([]float32, n)
				for k := range x {
					x[k] = float32(data[row*n+k])
				}
				out = append(out, order(x, rng))
			}
			return out
		}
		want := sums(orders["first to last"])
		for order, sum := range orders {
			got := sums(sum)
			if err := j.accepts(t, want, got); err != nil {
				t.Errorf("%s, %s: %v", name, order, err)
			}
			for row := range rows {
				wrong := slices.Clone(got)
				wrong[row] += float32(data[row*n+row]) // a term that is there twice
				if err := j.accepts(t, want, wrong); err == nil && math.Abs(data[row*n+row]) > 0.5 {
					t.Errorf("%s, %s: row %d is wrong and accepted", name, order, row)
				}
			}
		}
	}
}

// Where large terms of a sum cancel it errs by more than any of the sampled points: such elements
// are judged by what the interpreter says of them. One wrong element of thousands is seen, wherever
// it is.
func TestFewElementsCancel(t *testing.T) {
	const rows, n, every = 3000, 16, 149
	rng := rand.New(rand.NewPCG(5, 2))
	a, b := make([]float64, rows*n), make([]float64, rows)
	for i := range rows {
		row := a[i*n : (i+1)*n]
		sum := 0.0
		for k := range row {
			row[k] = float64(float32(2*rng.Float64() - 1))
			sum += row[k]
		}
		b[i] = 1
		if i%every == every/2 {
			row[n/2], b[i] = float64(float32(row[n/2]-sum)), 0x1p10
		}
	}
	j := judged(t, func(g *tensor.Graph) *tensor.Tensor {
		return g.Input("a", ir.F32, rows, n).Mul(g.Input("b", ir.F32, rows, 1)).Sum(1)
	}, func(buffer *schedule.Buffer) []float64 {
		if buffer.Bytes == 4*rows*n {
			return a
		}
		return b
	})
	sums := func(order func([]float32, *rand.Rand) float32) (out []float32) {
		for i := range rows {
			row := make([]float32, n)
			for k := range row {
				row[k] = float32(a[i*n+k])
			}
			out = append(out, order(row, rng)*float32(b[i]))
		}
		return out
	}
	want, got := sums(orders["first to last"]), sums(orders["last to first"])
	if n := j.beyond(want, got); n < 3 || n > rows/every+1 {
		t.Errorf("%d elements are beyond the bounds of the sampled points, want some of %d", n, rows/every)
	}
	if err := j.accepts(t, want, got); err != nil {
		t.Error(err)
	}
	for _, i := range []int{0, 1, 17, rows / 2, rows - 1, every / 2, every + every/2} {
		wrong := slices.Clone(got)
		wrong[i] += float32(0.01 * b[i])
		if err := j.accepts(t, want, wrong); err == nil {
			t.Errorf("element %d: %v instead of %v is accepted", i, wrong[i], got[i])
		}
	}
	all := slices.Clone(got)
	for i := range all {
		all[i] += 0.01
	}
	if err := j.accepts(t, want, all); err == nil || !strings.Contains(err.Error(), "wrong values") {
		t.Errorf("error %v, want wrong values", err)
	}
}

// Sums of products of bytes as integers, with and without the offset that makes them unsigned, are
// right however scaled blocks are summed up.
func TestIntegerFormsOfSums(t *testing.T) {
	const rows, blocks, size = 6, 64, 32
	rng := rand.New(rand.NewPCG(9, 4))
	bytesOf := func(n int) (list []float64) {
		for range n {
			list = append(list, float64(rng.IntN(255)-127))
		}
		return list
	}
	q, y := bytesOf(rows*blocks*size), bytesOf(blocks*size)
	scales := make([]float64, rows*blocks)
	for i := range scales {
		scales[i] = float64(float32(rng.Float64() / 127))
	}
	j := judged(t, func(g *tensor.Graph) *tensor.Tensor {
		w, x := g.Input("q", ir.I8, rows, blocks, size).Cast(ir.F32), g.Input("y", ir.I8, blocks, size).Cast(ir.F32)
		return w.Mul(x).Sum(2).Mul(g.Input("s", ir.F32, rows, blocks)).Sum(1)
	}, func(b *schedule.Buffer) []float64 {
		switch b.Bytes {
		case rows * blocks * size:
			return q
		case blocks * size:
			return y
		case 4 * rows * blocks:
			return scales
		}
		return nil
	})
	forms := map[string]func(row, block int) float32{
		"floats": func(row, block int) (sum float32) {
			for k := range size {
				sum += float32(q[(row*blocks+block)*size+k]) * float32(y[block*size+k])
			}
			return sum * float32(scales[row*blocks+block])
		},
		"integers": func(row, block int) float32 {
			sum := int32(0)
			for k := range size {
				sum += int32(q[(row*blocks+block)*size+k]) * int32(y[block*size+k])
			}
			return float32(sum) * float32(scales[row*blocks+block])
		},
		"unsigned": func(row, block int) float32 {
			sum, of := int32(0), int32(0)
			for k := range size {
				sum += (int32(q[(row*blocks+block)*size+k]) + 128) * int32(y[block*size+k])
				of += int32(y[block*size+k])
			}
			s := float32(scales[row*blocks+block])
			return float32(sum)*s - float32(of)*(128*s)
		},
	}
	sums := func(form func(row, block int) float32, order func([]float32, *rand.Rand) float32) (out []float32) {
		for row := range rows {
			terms := make([]float32, blocks)
			for block := range terms {
				terms[block] = form(row, block)
			}
			out = append(out, order(terms, rng))
		}
		return out
	}
	want := sums(forms["floats"], orders["first to last"])
	for form, term := range forms {
		for order, sum := range orders {
			got := sums(term, sum)
			if err := j.accepts(t, want, got); err != nil {
				t.Errorf("%s, %s: %v", form, order, err)
			}
			got[rows-1] += float32(100 * scales[0])
			if j.accepts(t, want, got) == nil {
				t.Errorf("%s, %s: a wrong element is accepted", form, order)
			}
		}
	}
}

// What is no number, or has no end, in a kernel's results is compared as such, and the rest of them to what
// rounding may do; where rounding decides whether there is a number at all, either is right.
func TestResultsThatAreNoNumbers(t *testing.T) {
	const n = 64
	rng := rand.New(rand.NewPCG(5, 3))
	a, b := make([]float64, n), make([]float64, n)
	for i := range a {
		a[i], b[i] = float64(float32(2*rng.Float64()-1)), 0
	}
	const infinite, either = 11, 21 // a sum without end, and one of which rounding decides whether it is below 0
	a[0], a[n-1] = -0.5, -0.25
	a[infinite], b[infinite] = 1, math.Inf(1)
	a[either], b[either] = 0x1.8p-20, -0x1.8p-20
	j := judged(t, func(g *tensor.Graph) *tensor.Tensor {
		return g.Input("ab", ir.F32, 2, n).Mul(g.Scalar(ir.F32, 1.0/3)).Sum(0).Sqrt()
	}, func(*schedule.Buffer) []float64 { return slices.Concat(a, b) })
	right := make([]float32, n)
	for i := range right {
		right[i] = float32(math.Sqrt((a[i] + b[i]) / 3))
	}
	nan := float32(math.NaN())
	for _, c := range []struct {
		what  string
		at    int
		value float32
		right bool
	}{
		{"nothing is changed", 1, right[1], true},
		{"a number for none", 0, 0.5, false},
		{"none for a number", infinite + 1, nan, right[infinite+1] != right[infinite+1]},
		{"a number for one without end", infinite, 1, false},
		{"no number for one without end", infinite, nan, false},
		{"rounding decides", either, nan, true},
		{"rounding decides", either, 1e-5, true},
	} {
		got := slices.Clone(right)
		got[c.at] = c.value
		if err := j.accepts(t, right, got); (err == nil) != c.right {
			t.Errorf("%s: element %d is %v instead of %v: %v", c.what, c.at, c.value, right[c.at], err)
		}
	}
}

// A kernel that stores at a position that it loads is judged where it stores: one that stores nothing is wrong.
func TestPositionsWithinCaches(t *testing.T) {
	const rows, width = 8, 16
	dev, g := interp.New(interp.Options{}), tensor.NewGraph()
	x, at := g.Input("x", ir.F32, width, width), g.Input("at", ir.I32, 1).Expand(width)
	g.Keep(g.State("cache", ir.F32, rows, width).AssignAt(x.Sum(1), at, g.Iota(ir.I32, g.Dims(width)[0])))
	c, err := g.Compile(t.Context(), dev.Target(), engine.Config{})
	if err != nil || len(c.Kernels) != 1 {
		t.Fatalf("%d kernels, %v, want 1", len(c.Kernels), err)
	}
	b, err := NewBench(t.Context(), dev, c.Kernels[0].AST, BenchOptions{Limits: DefaultLimits(), Baseline: c.Kernels[0].Plan.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	for i, trial := range b.judge.trials {
		if len(trial.samples) < leastPoints {
			t.Errorf("trial %d: %d points are known, want %d at least", i, len(trial.samples), leastPoints)
		}
		unchanged := make(map[int][]byte)
		for slot := range trial.want {
			unchanged[slot] = b.judge.contents(trial.set, slot, b.judge.calls.slots[slot].host)
		}
		if err := b.judge.compare(t.Context(), trial, unchanged); !errors.Is(err, errWrong) {
			t.Errorf("trial %d: a kernel that stores nothing: %v, want that its values are wrong", i, err)
		}
	}
}
