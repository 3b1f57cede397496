package place

import (
	"slices"
	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// holdsTuple reports that the value's only reduces are tuples or maxima.
func holdsTuple(s *expr.Exprs, p *state.Value) bool {
	return s.Height(p.Body) > 0 && len(s.TuplesOf(p.Body)) > 0
}

// isDynamic reports an index that uses closed ranges or depends on memory.
func isDynamic(s *expr.Exprs, index, closed []*ir.UOp) bool {
	return slices.ContainsFunc(index, func(x *ir.UOp) bool { return s.DependsOn(x, closed...) || expr.HasLoad(x) })
}
