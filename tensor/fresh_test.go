package tensor_test

import (
	"context"
	"errors"
	"flag"
	"math"
	"strings"
	"testing"
	"time"

	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/runtime/cpu"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// eager minimises (w-3)^2 by gradient descent with momentum, a step at a time, without a
// function: weights and momentum are tensors that each step computes.
func eager(ctx context.Context, w, v *tensor.Tensor, steps int) (_, _ *tensor.Tensor, err error) {
	for range steps {
		gradient := w.AddScalar(-3).MulScalar(2)
		v = v.MulScalar(0.9).Add(gradient)
		w = w.Sub(v.MulScalar(0.01))
		if err := tensor.Realize(ctx, w, v); err != nil {
			return nil, nil, err
		}
	}
	return w, v, nil
}

// eagerFresh is eager by graphs of their own.
func eagerFresh(ctx context.Context, w, v *tensor.Tensor, steps int) (_, _ *tensor.Tensor, err error) {
	for range steps {
		gradient := w.AddScalar(-3).MulScalar(2)
		v = v.MulScalar(0.9).Add(gradient)
		state, err := tensor.Fresh(ctx, w.Sub(v.MulScalar(0.01)), v)
		if err != nil {
			return nil, nil, err
		}
		w, v = state[0], state[1]
	}
	return w, v, nil
}

var eagerSteps = flag.Int("eager-steps", 300, "steps of TestEagerLoopDoesNotGrow")

// A loop of steps that are computed one by one leaves nothing behind: with -eager-steps 10000
// in half a minute, as the default does in a second. The resident set may grow by what Go's
// collector takes for its own, once.
func TestEagerLoopDoesNotGrow(t *testing.T) {
	for name, step := range map[string]func(ctx context.Context, w, v *tensor.Tensor, steps int) (_, _ *tensor.Tensor, err error){"realize": eager, "fresh": eagerFresh} {
		t.Run(name, func(t *testing.T) { loopDoesNotGrow(t, step) })
	}
}

func loopDoesNotGrow(t *testing.T, step func(ctx context.Context, w, v *tensor.Tensor, steps int) (_, _ *tensor.Tensor, err error)) {
	dev, err := cpu.New(t.Context(), cpu.Options{Threads: 1})
	if errors.Is(err, cpu.ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	g := tensor.NewGraph().On(dev)
	w, v := tensor.FromSlice(g, make([]float32, 4096), 4096), g.Zeros(ir.F32, 4096)
	if w, v, err = step(t.Context(), w, v, 50); err != nil {
		t.Fatal(err)
	}
	var grown, more int64
	for range 3 { // what other tests of the process have left may come and go once, a leak grows every time
		heap, resident := testkit.MemoryInUse(t)
		start := time.Now()
		if w, v, err = step(t.Context(), w, v, *eagerSteps); err != nil {
			t.Fatal(err)
		}
		if w, v, err = step(t.Context(), w, v, 1); err != nil { // forgets what no step refers to
			t.Fatal(err)
		}
		heapAfter, residentAfter := testkit.MemoryInUse(t)
		grown, more = heapAfter-heap, residentAfter-resident
		t.Logf("after %d steps of %v the heap has %d bytes more, the process %d", *eagerSteps, time.Since(start)/time.Duration(*eagerSteps), grown, more)
		if grown <= 1<<20 && more <= 64<<20 {
			break
		}
	}
	if grown > 1<<20 || more > 64<<20 { // a step's two tensors are 32 KiB
		t.Errorf("the heap grew by %d bytes, the process by %d", grown, more)
	}
	values, err := tensor.Data[float32](w)
	if err != nil || math.Abs(float64(values[4095])-3) > 1e-3 {
		t.Errorf("w is %v, %v, want 3", values[4095], err)
	}
}

func TestFresh(t *testing.T) {
	dev := interp.New(interp.Options{})
	x := tensor.FromSlice(tensor.NewGraph().On(dev), []int32{1, 2, 3, 4}, 2, 2)
	list, err := tensor.Fresh(t.Context(), x.Add(x), x, x.Sum())
	if err != nil {
		t.Fatal(err)
	}
	if list[0].Graph() == x.Graph() || list[1].Graph() != list[0].Graph() {
		t.Error("not of one new graph")
	}
	got, err := tensor.Data[int32](list[0].Add(list[1]).Add(list[2]))
	if err != nil || got[3] != 22 || list[0].String() != "i32[2 2]" || list[2].String() != "i32[]" {
		t.Errorf("%v, %v: %v", list, err, got)
	}
	if _, err := tensor.Fresh(t.Context(), x, nil); err == nil || !strings.Contains(err.Error(), "a tensor is nil") {
		t.Errorf("a nil tensor: %v", err)
	}
	if one, err := x.Fresh(t.Context()); err != nil || one.Graph() == x.Graph() || one.String() != "i32[2 2]" {
		t.Errorf("of one: %v, %v", one, err)
	}
	if list, err := tensor.Fresh(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("of nothing: %v, %v", list, err)
	}
}
