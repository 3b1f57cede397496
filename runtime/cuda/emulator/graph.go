package emulator

import (
	"slices"

	"tgc/internal/lists"
	"tgc/runtime/cuda/driver"
)

// node is a part of a graph: a launch, the passing of a mark, or (neither) a
// join of edges.
type node struct {
	handle driver.Node
	kernel *launchable
	mark   driver.Event
	full   []driver.Node // ended before this one starts
	early  []driver.Node // all their blocks have allowed this one to start
}

// graph is a graph as it is made.
type graph struct{ nodes []*node }

// instance is a graph ready to run: nodes in an order in which every one comes
// after those it depends on.
type instance struct{ nodes []*node }

func (g *graph) find(h driver.Node) *node {
	return lists.First(g.nodes, func(n *node) bool { return n.handle == h }, nil)
}

// GraphCreate makes an empty graph.
func (d *Driver) GraphCreate() (driver.Graph, error) {
	return made(d, "cuGraphCreate", func(c *gpuContext, h driver.Graph) error {
		c.graphs[h] = &graph{}
		return nil
	})
}

// GraphDestroy drops a graph; its instances stay.
func (d *Driver) GraphDestroy(h driver.Graph) error {
	return d.in("cuGraphDestroy", func(c *gpuContext) error {
		if c.graphs[h] == nil {
			return refuse("cuGraphDestroy", driver.InvalidHandle, "no such graph")
		}
		delete(c.graphs, h)
		return nil
	})
}

// add adds a node after others.
func (d *Driver) add(call string, g driver.Graph, after []driver.Node, fill func(c *gpuContext, n *node) error) (driver.Node, error) {
	return made(d, call, func(c *gpuContext, h driver.Node) error {
		to := c.graphs[g]
		if to == nil {
			return refuse(call, driver.InvalidHandle, "no such graph")
		}
		for _, a := range after {
			if to.find(a) == nil {
				return refuse(call, driver.InvalidHandle, "no such node")
			}
		}
		n := &node{handle: h, full: slices.Clone(after)}
		if fill != nil {
			if err := fill(c, n); err != nil {
				return err
			}
		}
		to.nodes = append(to.nodes, n)
		return nil
	})
}

// GraphAddKernel adds a launch.
func (d *Driver) GraphAddKernel(g driver.Graph, after []driver.Node, k *driver.Kernel) (driver.Node, error) {
	return d.add("cuGraphAddKernelNode", g, after, func(c *gpuContext, n *node) error {
		var err error
		n.kernel, err = c.prepare("cuGraphAddKernelNode", k)
		return err
	})
}

// GraphAddEmpty adds a node that does nothing.
func (d *Driver) GraphAddEmpty(g driver.Graph, after []driver.Node) (driver.Node, error) {
	return d.add("cuGraphAddEmptyNode", g, after, nil)
}

// GraphAddEventRecord adds the passing of a mark.
func (d *Driver) GraphAddEventRecord(g driver.Graph, after []driver.Node, e driver.Event) (driver.Node, error) {
	return d.add("cuGraphAddEventRecordNode", g, after, func(c *gpuContext, n *node) error {
		n.mark = e
		if c.events[e] == nil {
			return refuse("cuGraphAddEventRecordNode", driver.InvalidHandle, "no such event")
		}
		return nil
	})
}

// GraphAddEdges makes to[i] depend on from[i].
func (d *Driver) GraphAddEdges(g driver.Graph, from, to []driver.Node, kind driver.Edge) error {
	const call = "cuGraphAddDependencies"
	return d.in(call, func(c *gpuContext) error {
		in := c.graphs[g]
		if in == nil || len(from) != len(to) {
			return refuse(call, driver.InvalidValue, "no such graph, or as many starts as ends are needed")
		}
		for i := range from {
			a, b := in.find(from[i]), in.find(to[i])
			switch {
			case a == nil || b == nil:
				return refuse(call, driver.InvalidHandle, "no such node")
			case kind == driver.FullEdge:
				b.full = append(b.full, a.handle)
			case a.kernel == nil || b.kernel == nil || d.options.SM < programmaticFrom:
				return refuse(call, driver.InvalidValue, "a programmatic edge goes from a kernel to a kernel, from sm_%d on", programmaticFrom)
			default:
				b.early = append(b.early, a.handle)
			}
		}
		return nil
	})
}

// programmaticFrom is the first architecture with programmatic edges.
const programmaticFrom = 90

// GraphInstantiate puts the nodes in an order; a cycle is refused.
func (d *Driver) GraphInstantiate(g driver.Graph) (driver.GraphExec, error) {
	const call = "cuGraphInstantiate"
	return made(d, call, func(c *gpuContext, h driver.GraphExec) error {
		from := c.graphs[g]
		if from == nil {
			return refuse(call, driver.InvalidHandle, "no such graph")
		}
		e := &instance{}
		done := make(map[driver.Node]bool)
		for len(e.nodes) < len(from.nodes) {
			before := len(e.nodes)
			for _, n := range from.nodes {
				if !done[n.handle] && n.ready(done) {
					done[n.handle] = true
					e.nodes = append(e.nodes, n.instantiate())
				}
			}
			if len(e.nodes) == before {
				return refuse(call, driver.InvalidValue, "the edges make a circle")
			}
		}
		c.instances[h] = e
		return nil
	})
}

func (n *node) instantiate() *node {
	out := *n
	if n.kernel != nil {
		out.kernel = n.kernel.clone()
	}
	return &out
}

// ready reports that all nodes ahead of n are done.
func (n *node) ready(done map[driver.Node]bool) bool {
	missing := func(h driver.Node) bool { return !done[h] }
	return !slices.ContainsFunc(n.full, missing) && !slices.ContainsFunc(n.early, missing)
}

// GraphUpload does nothing: there is no device to move the instance to.
func (d *Driver) GraphUpload(e driver.GraphExec, _ driver.Stream) error {
	return d.in("cuGraphUpload", func(c *gpuContext) error {
		_, err := c.instance("cuGraphUpload", e)
		return err
	})
}

func (c *gpuContext) instance(call string, h driver.GraphExec) (*instance, error) {
	e := c.instances[h]
	if e == nil {
		return nil, refuse(call, driver.InvalidHandle, "no such instance")
	}
	return e, nil
}

// GraphLaunch queues a run of an instance as it is now.
func (d *Driver) GraphLaunch(h driver.GraphExec, s driver.Stream) error {
	return d.in("cuGraphLaunch", func(c *gpuContext) error {
		e, err := c.instance("cuGraphLaunch", h)
		if err != nil {
			return err
		}
		run := &replay{context: c, nodes: slices.Clone(e.nodes)}
		return c.queue("cuGraphLaunch", s, run.run)
	})
}

// GraphSetKernel changes the parameters of a launch for the runs that come.
func (d *Driver) GraphSetKernel(h driver.GraphExec, n driver.Node, k *driver.Kernel) error {
	const call = "cuGraphExecKernelNodeSetParams"
	return d.in(call, func(c *gpuContext) error {
		e, err := c.instance(call, h)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(e.nodes, func(have *node) bool { return have.handle == n && have.kernel != nil })
		if i < 0 {
			return refuse(call, driver.InvalidHandle, "no such kernel node")
		}
		changed := *e.nodes[i] // runs that are queued keep the old one
		if changed.kernel, err = c.prepare(call, k); err != nil {
			return err
		}
		e.nodes[i] = &changed
		return nil
	})
}

// GraphExecDestroy drops an instance; runs that are queued go on.
func (d *Driver) GraphExecDestroy(h driver.GraphExec) error {
	return d.in("cuGraphExecDestroy", func(c *gpuContext) error {
		if _, err := c.instance("cuGraphExecDestroy", h); err != nil {
			return err
		}
		delete(c.instances, h)
		return nil
	})
}
