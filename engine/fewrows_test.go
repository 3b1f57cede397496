package engine_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/nn"
	"tgc/runtime"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// fewRows are two products of rounded rows of a norm: [rows, 1024] and matrices of 512 rows with offsets.
func fewRows(rows int) *tensor.Graph {
	g := tensor.NewGraph()
	x := nn.RMSNorm(g.Input("x", ir.F32, rows, 1024).MulScalar(0.5).Contiguous(), g.Input("gamma", ir.F32, 1024), 1e-5)
	for _, name := range []string{"v", "w"} {
		g.Output("y"+name, nn.Int8.Linear(x, g.Packed(name, "Q4_0", 512, 1024)))
	}
	return g
}

// On a GPU a batch of few rows is one launch behind that which makes them, as a single row is: each block folds their norms, all of its threads together, and stages
// integers, scales and sums of integers of all rows, without the factors of the norms. A batch of more rows has those made before.
func TestFewRowsAreOneLaunch(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for rows, launches := range map[int]int{1: 2, 2: 2, 3: 2, 4: 2, 5: 3, 8: 3} {
		c, err := fewRows(rows).Compile(t.Context(), desc, engine.Config{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Launches) != launches {
			t.Errorf("%d rows: %d launches, want %d", rows, len(c.Launches), launches)
		}
		if launches > 2 {
			continue
		}
		for _, k := range c.Kernels {
			for _, part := range append(k.Parts, k) {
				if len(part.Parts) > 0 || !strings.Contains(part.Name, "reduce") {
					continue
				}
				if plan := part.Plan.String(); !strings.Contains(plan, "STAGE r") || !strings.Contains(plan, "GROUP r") || !strings.Contains(plan, "VECTOR z2") {
					t.Errorf("%d rows: want sums of integers in a stage, a norm that all threads fold, and several integers a thread: %s", rows, plan)
				}
				for _, u := range ir.Toposort(part.AST) {
					if u.Op == ir.OpStage && analyse.Any(u, func(x *ir.UOp) bool { return x.Op == ir.OpRsqrt }) {
						t.Errorf("%d rows: a stage waits for the norm", rows)
					}
				}
			}
		}
	}
}

// What few rows are rounded to, and what products make of it, is the same in the emulator, where barriers are those of the PTX, as in the
// interpreter, and is what each of the rows is alone, but for numbers between two integers.
func TestFewRowsAsAlone(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	x, gamma, weights := randomFloats(r, 6*1024), randomFloats(r, 1024), make([]byte, 512*1024/32*18)
	for i := range weights {
		weights[i] = byte(r.Uint32())
	}
	for i := 0; i < len(weights); i += 18 {
		weights[i], weights[i+1] = 0, 0x2c // the scale of a block: 1/16
	}
	run := func(dev runtime.Device, rows int, x []float32) []float32 {
		f, err := tensor.Compile(t.Context(), fewRows(rows), dev, engine.Config{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := errors.Join(tensor.Set(t.Context(), f, "x", x), tensor.Set(t.Context(), f, "gamma", gamma),
			f.Write(t.Context(), "v", weights), f.Write(t.Context(), "w", weights), f.Run(t.Context(), nil)); err != nil {
			t.Fatal(err)
		}
		y, err := tensor.Get[float32](t.Context(), f, "yw")
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	emulated, _ := openEmulated(t)
	interpreted := interp.New(interp.Options{Debug: true, Shuffle: 3, Target: desc})
	for _, rows := range []int{3, 6} { // by blocks, and before
		together := run(interpreted, rows, x[:rows*1024])
		for i, y := range run(emulated, rows, x[:rows*1024]) {
			if y != together[i] {
				t.Fatalf("%d rows: element %d is %v emulated, %v interpreted", rows, i, y, together[i])
			}
		}
		for row := range rows {
			for i, y := range run(interpreted, 1, x[row*1024:][:1024]) {
				if got := together[row*512+i]; math.Abs(float64(got-y)) > 0.02 {
					t.Errorf("%d rows: row %d, element %d: %v together, %v alone", rows, row, i, got, y)
				}
			}
		}
	}
}
