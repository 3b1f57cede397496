package cuda

import (
	"context"
	"fmt"
	"time"

	"tgc/runtime/cuda/driver"
)

// Chain times some calls of the step as it runs them: a graph of these calls
// alone, repeated, with the edges that the step has between them, and a mark at
// either end. It returns the time of one call, end to end: what a kernel does
// while the one before ends is not counted, and what its own end costs the next
// one is.
func (r *Recording) Chain(ctx context.Context, vars map[string]int64, calls []int, times int) (time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err := r.usable(); err != nil {
		return 0, err
	}
	for _, i := range calls {
		if i < 0 || i >= len(r.calls) {
			return 0, fmt.Errorf("cuda: chain: call %d, want 0 to %d", i, len(r.calls)-1)
		}
	}
	if len(calls) == 0 || times < 1 {
		return 0, fmt.Errorf("cuda: chain: %d calls, %d times: want at least one", len(calls), times)
	}
	if err := r.setVars(vars); err != nil {
		return 0, err
	}
	var took time.Duration
	err := r.device.with(func() (err error) {
		took, err = r.timeChain(calls, times)
		return err
	})
	if err != nil {
		return 0, r.explain(err)
	}
	return took / time.Duration(times*len(calls)), nil
}

// timeChain makes the graph, runs it once to warm up and once between its marks.
func (r *Recording) timeChain(calls []int, times int) (time.Duration, error) {
	p := &profile{}
	defer p.free(r.device.drv)
	var err error
	if p.graph, err = newGraph(r.device, func(g driver.Graph) error { return p.addChain(r, g, calls, times) }); err != nil {
		return 0, err
	}
	for range 2 {
		if err := r.device.drv.GraphLaunch(p.graph.exec, r.device.stream); err != nil {
			return 0, err
		}
	}
	if err := r.device.drv.StreamSynchronize(r.device.stream); err != nil {
		return 0, err
	}
	return r.device.drv.EventElapsed(p.marks[0], p.marks[1])
}

// addChain adds a mark, the calls, and a mark.
func (p *profile) addChain(r *Recording, g driver.Graph, calls []int, times int) error {
	drv := r.device.drv
	last, err := p.mark(drv, g, nil)
	if err != nil {
		return err
	}
	before := -1
	for range times {
		for _, i := range calls {
			early := before >= 0 && r.startsEarly([]int{before}, []int{i})
			after := []driver.Node{last}
			if early {
				after = nil
			}
			node, err := drv.GraphAddKernel(g, after, &r.calls[i].kernel)
			if err != nil {
				return fmt.Errorf("kernel %s: %w", r.calls[i].Name(), err)
			}
			if early {
				if err := drv.GraphAddEdges(g, []driver.Node{last}, []driver.Node{node}, driver.ProgrammaticEdge); err != nil {
					return err
				}
			}
			last, before = node, i
		}
	}
	_, err = p.mark(drv, g, []driver.Node{last})
	return err
}
