package ptxemu

import "slices"

// Where the sides of a branch meet again: the branch's immediate
// post-dominator, by the algorithm of Cooper, Harvey and Kennedy on the reversed
// flow graph of basic blocks.

type flowGraph struct {
	steps  []step
	starts []int // first step of each block
	of     []int // block of each step
	next   [][]int
	before [][]int // predecessors in the reversed graph are successors here
}

// findMeetings sets step.meet of every branch; len(steps) where the sides only
// meet at the end.
func findMeetings(steps []step) *flowGraph {
	g := newFlowGraph(steps)
	immediate := g.postDominators()
	for i := range steps {
		if steps[i].kind != branch {
			continue
		}
		steps[i].meet = len(steps)
		if d := immediate[g.of[i]]; d >= 0 && d < len(g.starts) {
			steps[i].meet = g.starts[d]
		}
	}
	return g
}

func newFlowGraph(steps []step) *flowGraph {
	g := &flowGraph{steps: steps, of: make([]int, len(steps))}
	leader := make([]bool, len(steps)+1)
	leader[0] = true
	for i := range steps {
		switch steps[i].kind {
		case branch:
			leader[steps[i].target] = true
			leader[i+1] = true
		case exit:
			leader[i+1] = true
		}
	}
	for i := range steps {
		if leader[i] {
			g.starts = append(g.starts, i)
		}
		g.of[i] = len(g.starts) - 1
	}
	end := len(g.starts) // a virtual block
	g.next = make([][]int, end)
	blockAt := func(i int) int {
		if i >= len(steps) {
			return end
		}
		return g.of[i]
	}
	for b := range g.starts {
		last := len(steps) - 1
		if b+1 < end {
			last = g.starts[b+1] - 1
		}
		s := &steps[last]
		switch {
		case s.kind == exit && s.guard < 0:
			g.next[b] = []int{end}
		case s.kind == exit:
			g.next[b] = []int{end, blockAt(last + 1)}
		case s.kind == branch && s.guard < 0:
			g.next[b] = []int{blockAt(s.target)}
		case s.kind == branch:
			g.next[b] = []int{blockAt(s.target), blockAt(last + 1)}
		default:
			g.next[b] = []int{blockAt(last + 1)}
		}
	}
	return g
}

// postDominators gives each block's immediate one; the virtual end is
// len(starts), and -1 stands for blocks from which the end is not reached.
func (g *flowGraph) postDominators() []int {
	end := len(g.starts)
	g.before = make([][]int, end+1)
	for b, list := range g.next {
		for _, n := range list {
			g.before[n] = append(g.before[n], b)
		}
	}
	order := g.postOrder(end)
	rank := make([]int, end+1) // position in postorder of the reversed graph
	for i := range rank {
		rank[i] = -1
	}
	for i, b := range order {
		rank[b] = i
	}
	immediate := slices.Repeat([]int{-1}, end+1)
	immediate[end] = end
	for changed := true; changed; {
		changed = false
		for _, b := range slices.Backward(order) {
			if b == end {
				continue
			}
			best := -1
			for _, n := range g.next[b] {
				if immediate[n] < 0 {
					continue
				}
				if best < 0 {
					best = n
				} else {
					best = intersect(immediate, rank, best, n)
				}
			}
			if best >= 0 && immediate[b] != best {
				immediate[b] = best
				changed = true
			}
		}
	}
	return immediate
}

func intersect(immediate, rank []int, a, b int) int {
	for a != b {
		for rank[a] < rank[b] {
			a = immediate[a]
		}
		for rank[b] < rank[a] {
			b = immediate[b]
		}
	}
	return a
}

// postOrder walks the reversed graph from the end, without recursion.
func (g *flowGraph) postOrder(end int) []int {
	type frame struct{ block, child int }
	seen := make([]bool, end+1)
	seen[end] = true
	stack := []frame{{end, 0}}
	var order []int
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.child == len(g.before[top.block]) {
			order = append(order, top.block)
			stack = stack[:len(stack)-1]
			continue
		}
		n := g.before[top.block][top.child]
		top.child++
		if !seen[n] {
			seen[n] = true
			stack = append(stack, frame{n, 0})
		}
	}
	return order
}
