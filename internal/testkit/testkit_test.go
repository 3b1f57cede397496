package testkit_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	_ "tgc/internal/rarecollection"
	_ "tgc/internal/steadyseed"
	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
)

// The op-by-op evaluator stays within the eager model's bounds: the bounds are
// sound for the plainest of all orders.
func TestEagerModelAgreesWithOpByOp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := testkit.DefaultLimits()
		limits.Symbolic = rapid.Bool().Draw(t, "symbolic")
		c := testkit.Cases(limits).Draw(t, "case")
		want, err := c.Expected()
		if err != nil {
			t.Fatal(err)
		}
		if err := testkit.Compare(opByOp(t, c), want); err != nil {
			t.Fatalf("%v\n%s", err, c.Text())
		}
	})
}

// So it does for programs of every dtype.
func TestEagerModelAgreesOnPrograms(t *testing.T) {
	programs := testkit.Cases(testkit.ProgramLimits())
	rapid.Check(t, func(t *rapid.T) {
		c := programs.Draw(t, "program")
		want, err := c.Expected()
		if err != nil {
			t.Fatal(err)
		}
		if err := testkit.Compare(opByOp(t, c), want); err != nil {
			t.Fatalf("%v\n%s", err, c.Text())
		}
	})
}

func opByOp(t *rapid.T, c *testkit.Case) map[int64]*interp.KernelBuffer {
	sink, err := c.Sink()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := c.Decoded()
	if err != nil {
		t.Fatal(err)
	}
	in := interp.TensorInputs{Buffers: make(map[int64]*interp.Array), Vars: c.Vars}
	for id, n := range testkit.AtExtents(sink, decoded, c.Vars) {
		a := &interp.Array{DType: n.DType, Shape: n.Shape, Data: make([]ir.Scalar, len(n.Data))}
		for i, v := range n.Data {
			a.Data[i] = v.Scalar
		}
		in.Buffers[id] = a
	}
	arrays, err := interp.EvalTensor(context.Background(), sink, in)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Text())
	}
	out := make(map[int64]*interp.KernelBuffer)
	for id, a := range arrays {
		out[id] = &interp.KernelBuffer{DType: a.DType, Data: a.Data}
	}
	return out
}

// The kernels of a schedule, evaluated one after another, equal the eager model
// for both cost profiles.
func TestSchedulesEqualEager(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := testkit.DefaultLimits()
		limits.Symbolic = rapid.Bool().Draw(t, "symbolic")
		c := testkit.Cases(limits).Draw(t, "case")
		want, err := c.Expected()
		float64s := rapid.Bool().Draw(t, "in float64")
		if float64s {
			want, err = c.ExpectedWide()
		}
		if err != nil {
			t.Fatal(err)
		}
		opt := schedule.DefaultOptions()
		if rapid.Bool().Draw(t, "cpu") {
			opt = schedule.CPUOptions()
		}
		s, err := c.Schedule(context.Background(), opt)
		if err != nil {
			t.Fatalf("%v\n%s", err, c.Text())
		}
		got, err := c.RunSchedule(context.Background(), s, interp.KernelOptions{Float64: float64s})
		if err != nil {
			t.Fatalf("%v\n%s", err, c.Text())
		}
		if err := testkit.Compare(got, want); err != nil {
			t.Fatalf("%v\n%s\n%s", err, c.Text(), s)
		}
	})
}
