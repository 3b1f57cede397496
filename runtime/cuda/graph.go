package cuda

import (
	"errors"
	"fmt"

	"tgc/runtime/cuda/driver"
)

// build makes the graph of the step: a node per call, and edges from every call
// of a launch to every call of the next one.
func (r *Recording) build() (exec driver.GraphExec, err error) {
	drv := r.device.drv
	g, err := drv.GraphCreate()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, drv.GraphDestroy(g)) }()
	var before []int // calls of the launch before
	for at := 0; at < len(r.calls); {
		launch := r.launchAt(at)
		if err := r.addLaunch(g, before, launch); err != nil {
			return 0, err
		}
		before, at = launch, at+len(launch)
	}
	exec, err = drv.GraphInstantiate(g)
	if err != nil {
		return 0, err
	}
	if err := drv.GraphUpload(exec, r.device.stream); err != nil {
		return 0, errors.Join(err, drv.GraphExecDestroy(exec))
	}
	return exec, nil
}

// launchAt lists the calls of the launch that starts at a call.
func (r *Recording) launchAt(at int) []int {
	var launch []int
	for i := at; i < len(r.calls) && r.calls[i].launch == r.calls[at].launch; i++ {
		launch = append(launch, i)
	}
	return launch
}

// addLaunch adds the nodes of a launch behind those of the one before. Where
// both have several, an empty node joins them: n+m edges, not n*m.
func (r *Recording) addLaunch(g driver.Graph, before, launch []int) error {
	var after []driver.Node
	for _, i := range before {
		after = append(after, r.calls[i].node)
	}
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
			return fmt.Errorf("kernel %s: %w", c.name(), err)
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
// ended: it is one kernel that waits by itself, behind one kernel. That one's
// own wait makes the chain complete: when it has ended, so have all before it.
func (r *Recording) startsEarly(before, launch []int) bool {
	return len(before) == 1 && len(launch) == 1 && r.calls[launch[0]].exec.rendered.WaitsGrid &&
		r.device.info.Compute >= earlyFrom && r.device.drv.Programmatic()
}
