package cuda

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/runtime/cuda/driver"
	"tgc/runtime/nvidia"
)

// graph is a graph with its instance. The instance's nodes are named by those
// of the graph, which therefore has to stay.
type graph struct {
	nodes driver.Graph
	exec  driver.GraphExec
}

func (g *graph) ready() bool { return g.exec != 0 }

// free drops both. What a lost context refuses is gone.
func (g *graph) free(drv driver.Driver) {
	if g.exec != 0 {
		_ = drv.GraphExecDestroy(g.exec)
	}
	if g.nodes != 0 {
		_ = drv.GraphDestroy(g.nodes)
	}
	*g = graph{}
}

// newGraph makes a graph of the nodes that add adds.
func newGraph(d *Device, add func(driver.Graph) error) (g graph, err error) {
	defer func() {
		if err != nil {
			g.free(d.drv)
		}
	}()
	if g.nodes, err = d.drv.GraphCreate(); err != nil {
		return g, err
	}
	if err := add(g.nodes); err != nil {
		return g, err
	}
	if g.exec, err = d.drv.GraphInstantiate(g.nodes); err != nil {
		return g, err
	}
	return g, d.drv.GraphUpload(g.exec, d.stream)
}

// addStep adds the step: a node per call, and edges from every call of a launch
// to every call of the next one.
func (r *Recording) addStep(g driver.Graph) error {
	var before []int // calls of the launch before
	for at := 0; at < len(r.calls); {
		launch := r.launchAt(at)
		if err := r.addLaunch(g, before, launch); err != nil {
			return err
		}
		before, at = launch, at+len(launch)
	}
	return nil
}

// launchAt lists the calls of the launch that starts at a call.
func (r *Recording) launchAt(at int) []int {
	return nvidia.LaunchAt(len(r.calls), at, func(i int) int { return r.calls[i].Launch })
}

// addLaunch adds the nodes of a launch after those of the one before. Where
// both have several, an empty node joins them: n+m edges, not n*m.
func (r *Recording) addLaunch(g driver.Graph, before, launch []int) error {
	after := lists.Map(before, func(i int) driver.Node { return r.calls[i].node })
	early := r.startsEarly(before, launch)
	if early {
		after = nil // the edge is added below
	}
	if len(before) > 1 && len(launch) > 1 {
		join, err := r.device.drv.GraphAddEmpty(g, after)
		if err != nil {
			return err
		}
		after = []driver.Node{join}
	}
	for _, i := range launch {
		c := &r.calls[i]
		var err error
		if c.node, err = r.device.drv.GraphAddKernel(g, after, &c.kernel); err != nil {
			return fmt.Errorf("kernel %s: %w", c.Name(), err)
		}
	}
	if !early {
		return nil
	}
	from, to := []driver.Node{r.calls[before[0]].node}, []driver.Node{r.calls[launch[0]].node}
	return r.device.drv.GraphAddEdges(g, from, to, driver.ProgrammaticEdge)
}

// earlyFrom is the first compute capability with programmatic dependent launch.
const earlyFrom = 90

// startsEarly reports whether a launch may begin before the one before has
// ended: it is one kernel that waits by itself, after one kernel. That one's
// own wait makes the chain complete: when it has ended, so have all before it.
func (r *Recording) startsEarly(before, launch []int) bool {
	return len(before) == 1 && len(launch) == 1 && !r.calls[launch[0]].first && r.calls[launch[0]].Rendered.WaitsGrid &&
		r.device.info.Compute >= earlyFrom && r.device.drv.Programmatic()
}
