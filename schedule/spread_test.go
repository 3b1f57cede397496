package schedule_test

import (
	"testing"

	"tgc/ir"
	"tgc/schedule"
	"tgc/tensor"
)

// A chain of values that each take two points of the one before doubles with
// every link when it is recomputed: somewhere it must be stored, so that the
// kernels grow with the chain and not with two to the power of it.
func TestChainsOfNeighboursStayLinear(t *testing.T) {
	nodes := func(links int) int {
		g := tensor.NewGraph()
		x := g.Input("x", ir.F32, 64)
		for range links {
			x = x.Mul(x.Flip(0)).Add(x.Roll([]int{1}, []int{0})).MulScalar(0.25)
		}
		g.Output("y", x)
		s := newRig(t, g, nil, nil).plan(schedule.CPUOptions())
		total := 0
		for _, l := range s.Launches {
			for _, k := range l.Kernels {
				total += len(ir.Toposort(k.AST))
			}
		}
		return total
	}
	short, long := nodes(8), nodes(32)
	if long > 8*short {
		t.Errorf("a chain of 32 links has %d nodes, one of 8 links %d", long, short)
	}
}
