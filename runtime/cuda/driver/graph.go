package driver

import "errors"

// GraphCreate makes an empty graph.
func (l *Library) GraphCreate() (Graph, error) {
	g, err := l.out(fnGraphCreate, 0)
	return Graph(g), err
}

// GraphDestroy drops a graph and its nodes. Instances made of it stay, but
// GraphSetKernel needs the nodes.
func (l *Library) GraphDestroy(g Graph) error { return l.call(fnGraphDestroy, uintptr(g)) }

// GraphAddKernel adds a launch after other nodes. The driver copies the
// parameters.
func (l *Library) GraphAddKernel(g Graph, after []Node, k *Kernel) (Node, error) {
	s, err := l.pool.get(paramRoom(k) + nodeParamsBytes + 8*len(after))
	if err != nil {
		return 0, err
	}
	defer l.pool.put(s)
	out := s.bytes(8)
	err = l.call(fnGraphAddKernelNode, out.addr(), uintptr(g), words(s, after).addr(), uintptr(len(after)), nodeParams(s, k).addr())
	return Node(out.uint64()), err
}

// GraphAddEmpty adds a node that does nothing: a join of many edges.
func (l *Library) GraphAddEmpty(g Graph, after []Node) (Node, error) {
	return l.addNode(fnGraphAddEmptyNode, g, after)
}

// GraphAddEventRecord adds the passing of a mark.
func (l *Library) GraphAddEventRecord(g Graph, after []Node, e Event) (Node, error) {
	return l.addNode(fnGraphAddEventRecordNode, g, after, uintptr(e))
}

func (l *Library) addNode(f function, g Graph, after []Node, more ...uintptr) (Node, error) {
	s, err := l.pool.get(8*len(after) + 64)
	if err != nil {
		return 0, err
	}
	defer l.pool.put(s)
	out := s.bytes(8)
	args := append([]uintptr{out.addr(), uintptr(g), words(s, after).addr(), uintptr(len(after))}, more...)
	err = l.call(f, args...)
	return Node(out.uint64()), err
}

// CUgraphEdgeData is 8 bytes: from_port, to_port, type and 5 of zero.
const (
	edgeBytes        = 8
	edgeFromPort     = 0
	edgeType         = 2
	portProgrammatic = 1 // CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
	typeProgrammatic = 1 // CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
)

// Programmatic reports whether the driver takes edges with data, from 12.3 on.
func (l *Library) Programmatic() bool { return l.address[fnGraphAddDependenciesData] != 0 }

// GraphAddEdges makes to[i] depend on from[i]. All edges of a call are of one
// kind: drivers from 580 on have been reported to take the first edge's data
// for all.
func (l *Library) GraphAddEdges(g Graph, from, to []Node, kind Edge) error {
	if len(from) != len(to) {
		return errors.New("cuda: edges: as many starts as ends are needed")
	}
	if len(from) == 0 {
		return nil
	}
	s, err := l.pool.get((16+edgeBytes)*len(from) + 64)
	if err != nil {
		return err
	}
	defer l.pool.put(s)
	starts, ends, n := words(s, from), words(s, to), uintptr(len(from))
	if kind == FullEdge {
		return l.addFullEdges(g, starts, ends, n)
	}
	data := s.bytes(edgeBytes * len(from))
	for i := range from {
		data[edgeBytes*i+edgeFromPort] = portProgrammatic
		data[edgeBytes*i+edgeType] = typeProgrammatic
	}
	return l.call(fnGraphAddDependenciesData, uintptr(g), starts.addr(), ends.addr(), data.addr(), n)
}

// addFullEdges prefers the newer function: whether later drivers keep the older
// one's signature under its plain name is not said.
func (l *Library) addFullEdges(g Graph, from, to slot, n uintptr) error {
	if l.Programmatic() {
		return l.call(fnGraphAddDependenciesData, uintptr(g), from.addr(), to.addr(), 0, n)
	}
	return l.call(fnGraphAddDependencies, uintptr(g), from.addr(), to.addr(), n)
}

// GraphInstantiate makes a graph ready to launch.
func (l *Library) GraphInstantiate(g Graph) (GraphExec, error) {
	e, err := l.out(fnGraphInstantiate, uintptr(g), 0)
	return GraphExec(e), err
}

// GraphUpload moves an instance to the GPU ahead of its first launch.
func (l *Library) GraphUpload(e GraphExec, s Stream) error {
	return l.call(fnGraphUpload, uintptr(e), uintptr(s))
}

// GraphLaunch queues one run of an instance.
func (l *Library) GraphLaunch(e GraphExec, s Stream) error {
	return l.call(fnGraphLaunch, uintptr(e), uintptr(s))
}

// GraphSetKernel changes the parameters of a kernel node in an instance; later
// launches use them.
func (l *Library) GraphSetKernel(e GraphExec, n Node, k *Kernel) error {
	s, err := l.pool.get(paramRoom(k) + nodeParamsBytes)
	if err != nil {
		return err
	}
	defer l.pool.put(s)
	return l.call(fnGraphExecKernelNodeSetParams, uintptr(e), uintptr(n), nodeParams(s, k).addr())
}

// GraphExecDestroy drops an instance.
func (l *Library) GraphExecDestroy(e GraphExec) error { return l.call(fnGraphExecDestroy, uintptr(e)) }
