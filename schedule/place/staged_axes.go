package place

import (
	"tgc/ir"
	"tgc/schedule/state"
)

// stageAxes says which axes of p are staged in consumer c, and the index of the
// others, the same at all uses.
func stageAxes(s *state.Graph, c, p *state.Value) (staged []bool, outside []*ir.UOp) {
	staged = make([]bool, len(p.Ranges))
	outside = make([]*ir.UOp, len(p.Ranges))
	for _, u := range s.UsesOf(c, p) {
		for j, x := range u.Load.Indices() {
			if outside[j] == nil {
				outside[j] = x
			}
			if x != outside[j] || isDynamic(s.Exprs, []*ir.UOp{x}, u.Closed) {
				staged[j] = true
			}
		}
	}
	return staged, outside
}

// stagedRanges are those of the axes of p that are staged.
func stagedRanges(p *state.Value, staged []bool) (axes []*ir.UOp) {
	for j, r := range p.Ranges {
		if staged[j] {
			axes = append(axes, r)
		}
	}
	return axes
}

// axesIn are the axes of p that are staged in consumer c.
func axesIn(s *state.State, c, p *state.Value) []*ir.UOp {
	staged, _ := stageAxes(s.Graph, c, p)
	return stagedRanges(p, staged)
}
