package cuda

import (
	"context"
	"fmt"
	"time"

	"tgc/runtime/cuda/driver"
)

// profile is a second graph of the step: the calls in a chain with a mark
// before the first and after each. Marks inside a graph are passed without the
// host, so that a short kernel's time holds no launch from the host.
type profile struct {
	graph graph
	nodes []driver.Node // by call
	marks []driver.Event
}

// Profile runs the step once, its calls one after the other, and reports the
// time of each. Kernels do not overlap here and start with the caches as the
// one before left them; an edge of some microsecond is part of every time.
func (r *Recording) Profile(ctx context.Context, vars map[string]int64) ([]time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := r.usable(); err != nil {
		return nil, err
	}
	if err := r.setVars(vars); err != nil || len(r.calls) == 0 {
		return nil, err
	}
	var times []time.Duration
	err := r.device.with(func() (err error) {
		if r.profile == nil {
			if r.profile, err = r.buildProfile(); err != nil {
				return err
			}
		}
		if err := r.refresh(); err != nil {
			return err
		}
		times, err = r.profile.run(r.device)
		return err
	})
	if err != nil {
		return nil, r.explain(err)
	}
	return times, nil
}

// refresh brings the parameters of the second graph up to date.
func (r *Recording) refresh() error {
	for i := range r.calls {
		if !r.calls[i].HasVars() {
			continue
		}
		if err := r.device.drv.GraphSetKernel(r.profile.graph.exec, r.profile.nodes[i], &r.calls[i].kernel); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recording) buildProfile() (*profile, error) {
	p := &profile{}
	var err error
	if p.graph, err = newGraph(r.device, func(g driver.Graph) error { return p.add(r, g) }); err != nil {
		p.free(r.device.drv)
		return nil, err
	}
	return p, nil
}

// add adds the calls and marks.
func (p *profile) add(r *Recording, g driver.Graph) error {
	last, err := p.mark(r.device.drv, g, nil)
	if err != nil {
		return err
	}
	for i := range r.calls {
		node, err := r.device.drv.GraphAddKernel(g, []driver.Node{last}, &r.calls[i].kernel)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", r.calls[i].Name(), err)
		}
		p.nodes = append(p.nodes, node)
		if last, err = p.mark(r.device.drv, g, []driver.Node{node}); err != nil {
			return err
		}
	}
	return nil
}

// mark adds a mark after a node.
func (p *profile) mark(drv driver.Driver, g driver.Graph, after []driver.Node) (driver.Node, error) {
	e, err := drv.EventCreate(true)
	if err != nil {
		return 0, err
	}
	p.marks = append(p.marks, e)
	return drv.GraphAddEventRecord(g, after, e)
}

func (p *profile) run(d *Device) ([]time.Duration, error) {
	if err := d.drv.GraphLaunch(p.graph.exec, d.stream); err != nil {
		return nil, err
	}
	if err := d.drv.StreamSynchronize(d.stream); err != nil {
		return nil, err
	}
	times := make([]time.Duration, len(p.nodes))
	for i := range times {
		var err error
		if times[i], err = d.drv.EventElapsed(p.marks[i], p.marks[i+1]); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// free drops the graph and its marks. What a lost context refuses is gone.
func (p *profile) free(drv driver.Driver) {
	p.graph.free(drv)
	for _, e := range p.marks {
		_ = drv.EventDestroy(e)
	}
}
