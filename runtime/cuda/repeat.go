package cuda

import (
	"context"
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/runtime"
	"tgc/runtime/nvidia"
)

// Repeat makes one graph of n runs, one after the other: the host starts them
// at once, and the first kernel of a run starts as early after the last of the
// one before as any other does, unless kernels read ahead what the run before wrote.
func (r *Recording) Repeat(_ context.Context, n int) (runtime.Recording, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(); err != nil {
		return nil, err
	}
	out := &Recording{device: r.device, scratch: slices.Clone(r.scratch)}
	out.uses.Memory = slices.Clone(r.uses.Memory)
	apart := nvidia.ReadsOfLastRun(lists.Map(lists.Upto(len(r.calls)), func(i int) *nvidia.Call { return &r.calls[i].Call }))
	for run := range n {
		for i, c := range r.calls {
			c.first = apart && i == 0
			c.Call = c.Again(run * (r.calls[len(r.calls)-1].Launch + 1))
			c.kernel.Params = c.Params
			out.calls = append(out.calls, c)
		}
	}
	if !r.graph.ready() {
		return out, nil
	}
	err := r.device.with(func() error {
		var err error
		out.graph, err = newGraph(out.device, out.addStep)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cuda: record %d runs: %w", n, err)
	}
	return out, nil
}
