package search_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/interp"
	"tgc/search"
)

// crowded counts how many programs are assembled at once.
type crowded struct {
	runtime.Device
	now, most atomic.Int32
}

func (d *crowded) Load(ctx context.Context, programs []*program.Program) ([]runtime.Executable, error) {
	n := d.now.Add(1)
	defer d.now.Add(-1)
	for most := d.most.Load(); n > most && !d.most.CompareAndSwap(most, n); most = d.most.Load() {
	}
	time.Sleep(20 * time.Millisecond)
	return d.Device.Load(ctx, programs)
}

// TGC_PARALLEL bounds what is compiled at once.
func TestParallel(t *testing.T) {
	for _, want := range []int32{1, 3} {
		dev := &crowded{Device: interp.New(interp.Options{})}
		k := kernelOf(t, matvec(t, "Q8_0", 5, 96), dev)
		options := optionsOf(k)
		options.Parallel = int(want)
		b, err := search.NewBench(t.Context(), dev, k.AST, options)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if _, err := b.Try(t.Context(), parse(t, "ROLL s0", "UPCAST s0", "UPCAST s0 5", "UNROLL r0 2", "UNROLL r0 4", "UNROLL r0 8")); err != nil {
			t.Fatal(err)
		}
		if got := dev.most.Load(); got != want {
			t.Errorf("%d at once, want %d", got, want)
		}
	}
}
