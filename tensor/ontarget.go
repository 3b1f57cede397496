package tensor

import (
	"context"
	"maps"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/target"
)

// OnTarget says that some targets had better compute t in another way: when the graph
// is compiled, other gets the target and returns a tensor of t's shape, dtype and
// values, or nil where t's own computation suits. It must not build on t. Gradients
// are those of t's own computation. OnTarget returns t.
func (t *Tensor) OnTarget(other func(*target.Desc) *Tensor) *Tensor {
	if !t.ok() {
		return t
	}
	if t.graph.others == nil {
		t.graph.others = make(map[*ir.UOp]func(*target.Desc) *Tensor)
	}
	t.graph.others[t.node] = other
	return t
}

// SumInParts is Sum over one axis, for a long axis and few results: a target that
// needs more work at once than those makes partial sums first, as many as its
// Tuning.SumParts allows.
func (t *Tensor) SumInParts(axis int) *Tensor {
	whole := t.Sum(axis)
	if !whole.ok() {
		return whole
	}
	if axis < 0 {
		axis += t.Rank()
	}
	n, constant := t.Dim(axis).Int()
	if !constant {
		return whole
	}
	return whole.OnTarget(func(desc *target.Desc) *Tensor {
		parts := desc.Tuning.PartsOf(int(n))
		if parts < 2 {
			return nil
		}
		return t.Unflatten(axis, parts, int(n)/parts).Sum(axis + 1).Contiguous().Sum(axis)
	})
}

// Compile compiles the graph for a target: what to compute is the graph's, how is
// the target's. Bind the buffers (Buffers) with engine.Capture; Compile of the package
// does both.
func (g *Graph) Compile(ctx context.Context, desc *target.Desc, config engine.Config) (*engine.Compiled, error) {
	return g.compile(ctx, desc, config, nil)
}

// compile is Compile with nodes that are known to have the value of others.
func (g *Graph) compile(ctx context.Context, desc *target.Desc, config engine.Config, known map[*ir.UOp]*ir.UOp) (*engine.Compiled, error) {
	sink, err := g.Sink()
	if err != nil {
		return nil, err
	}
	r := resolver{graph: g, desc: desc, done: maps.Clone(known)}
	if sink, err = r.resolve(sink); err != nil {
		return nil, err
	}
	c, err := engine.Compile(ctx, sink, desc, config)
	if err != nil {
		return nil, err
	}
	c.Larger = maps.Clone(g.larger)
	c.Names = make(map[int64]string)
	for _, b := range g.buffers {
		c.Names[b.ID] = b.Name
	}
	return c, nil
}

// resolver puts in what OnTarget says.
type resolver struct {
	graph *Graph
	desc  *target.Desc
	done  map[*ir.UOp]*ir.UOp
}

func (r *resolver) resolve(root *ir.UOp) (*ir.UOp, error) {
	if len(r.graph.others) == 0 && len(r.done) == 0 {
		return root, nil
	}
	if r.done == nil {
		r.done = make(map[*ir.UOp]*ir.UOp)
	}
	for _, u := range ir.Toposort(root) {
		if _, ok := r.done[u]; ok {
			continue
		}
		src := lists.Map(u.Src, func(s *ir.UOp) *ir.UOp { return r.done[s] })
		r.done[u] = r.graph.arena.With(u, src)
		if err := r.other(u); err != nil {
			return nil, err
		}
	}
	return r.done[root], nil
}

// other resolves a node that the target computes in another way.
func (r *resolver) other(u *ir.UOp) error {
	choose, ok := r.graph.others[u]
	if !ok {
		return nil
	}
	t := choose(r.desc)
	switch {
	case t == nil:
		return nil
	case !t.ok():
		return t.graph.err
	}
	node, err := r.resolve(t.node)
	if err == nil {
		r.done[u] = node
	}
	return err
}
