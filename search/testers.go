package search

import (
	"context"

	"tgc/target"
)

// A tester of a kernel opens the device in a process of its own and computes what the kernel's results are, which takes a
// second or several. So it stays for all that is tried of the kernel, and where the device is not the processor itself
// that of the next kernel is made while this one's plans are timed in the step.

// opening is a tester that is being made, or was.
type opening struct {
	done   chan struct{} // closed when it is
	tester Tester
	err    error
}

// testers are those of a step's kernels that are open.
type testers struct {
	begin Testers
	open  map[*TunedKernel]*opening
}

// start begins to make the tester of a kernel, if that was not begun.
func (t *testers) start(ctx context.Context, k *TunedKernel, bench BenchOptions) *opening {
	o := t.open[k]
	if o == nil {
		o = &opening{done: make(chan struct{})}
		t.open[k] = o
		go func() {
			defer close(o.done)
			o.tester, o.err = t.begin(ctx, k.Kernel.AST, bench)
		}()
	}
	return o
}

// of is the tester of a kernel, as soon as it is made.
func (t *testers) of(ctx context.Context, k *TunedKernel, bench BenchOptions) (Tester, error) {
	o := t.start(ctx, k, bench)
	<-o.done
	return o.tester, o.err
}

// release closes the tester of a kernel.
func (t *testers) release(k *TunedKernel) {
	o := t.open[k]
	if o == nil {
		return
	}
	delete(t.open, k)
	if <-o.done; o.err == nil {
		_ = o.tester.Close() // it only reads
	}
}

func (t *testers) close() {
	for k := range t.open {
		t.release(k)
	}
}

// bench says how candidates of a kernel are tried.
func (t *tuning) bench(k *TunedKernel, options *Options) BenchOptions {
	bench := t.options.Bench
	bench.Baseline, bench.Records, bench.Name = k.Kernel.Plan.String(), t.step.Compiled.Target.Records, k.Kernel.Name
	bench.rankFor(options)
	return bench
}

// beginNext begins the tester of the kernel that is searched next.
func (t *tuning) beginNext(ctx context.Context, i int) {
	if t.step.Compiled.Target.Kind != target.GPU {
		return
	}
	for at, k := range t.result.Kernels {
		if at > i && !k.settled && t.tasks[k] == nil && t.part(at) > 0 {
			options := t.options.Search
			t.testers.start(ctx, k, t.bench(k, &options))
			return
		}
	}
}
