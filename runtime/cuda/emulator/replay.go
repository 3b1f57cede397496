package emulator

import (
	"context"
	"slices"

	"tgc/internal/ptxemu"
	"tgc/runtime/cuda/driver"
)

// replay is one run of an instance. Nodes run one at a time in a random order
// that the edges allow. A kernel after a programmatic edge begins in the middle
// of the one ahead of it: as soon as the blocks of that one allow it, some of its
// own run up to their wait.
type replay struct {
	context *gpuContext
	nodes   []*node
	done    map[driver.Node]bool
	allowed map[driver.Node]bool // kernels whose blocks let the next one start
	begun   map[driver.Node]*ptxemu.Grid
	chain   map[driver.Node]*ptxemu.Grid // the first kernel that may not have ended when this one starts
}

// mostEarly bounds the blocks that begin early: their state lies in memory.
const mostEarly = 16

func (r *replay) run(ctx context.Context) error {
	r.done, r.allowed = make(map[driver.Node]bool), make(map[driver.Node]bool)
	r.begun, r.chain = make(map[driver.Node]*ptxemu.Grid), make(map[driver.Node]*ptxemu.Grid)
	for len(r.done) < len(r.nodes) {
		var ready []*node
		for _, n := range r.nodes {
			if !r.done[n.handle] && n.ready(r.done) {
				ready = append(ready, n)
			}
		}
		n := ready[r.context.random.IntN(len(ready))] // no circle: there is one
		if err := r.node(ctx, n); err != nil {
			return err
		}
		r.done[n.handle] = true
	}
	return nil
}

func (r *replay) node(ctx context.Context, n *node) error {
	switch {
	case n.kernel != nil:
		g := r.begun[n.handle]
		if g == nil {
			var err error
			if g, err = r.start(ctx, n); err != nil {
				return err
			}
		}
		delete(r.begun, n.handle)
		return g.Run(ctx)
	case n.mark != 0:
		return r.context.pass(n.mark)
	}
	return nil
}

// start begins a kernel, which may start others.
func (r *replay) start(ctx context.Context, n *node) (*ptxemu.Grid, error) {
	g, err := r.context.start(n.kernel, func(l *ptxemu.Launch) {
		if len(n.early) > 0 {
			l.After = r.chain[n.early[0]]
		}
		l.Dependents = func() error {
			r.allowed[n.handle] = true
			return r.dependents(ctx, n)
		}
	})
	if err != nil {
		return nil, err
	}
	r.chain[n.handle] = g
	if len(n.early) > 0 {
		r.chain[n.handle] = r.chain[n.early[0]]
	}
	return g, nil
}

// dependents begins the kernels that a kernel has allowed to.
func (r *replay) dependents(ctx context.Context, ahead *node) error {
	for _, n := range r.nodes {
		waits := func(h driver.Node) bool { return !r.allowed[h] }
		unfinished := func(h driver.Node) bool { return !r.done[h] }
		if !slices.Contains(n.early, ahead.handle) || slices.ContainsFunc(n.early, waits) || slices.ContainsFunc(n.full, unfinished) {
			continue
		}
		g, err := r.start(ctx, n)
		if err != nil {
			return err
		}
		r.begun[n.handle] = g
		if err := g.Early(ctx, 1+r.context.random.IntN(mostEarly)); err != nil {
			return err
		}
	}
	return nil
}
