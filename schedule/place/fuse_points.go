package place

import (
	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// FusePoints: every point of p is read once, nowhere inside a loop that
// would repeat it: p moves into its readers without recomputation. Two sums over weights
// stay apart where their rows would leave workers without any.
func FusePoints(s *state.State, p *state.Value) bool {
	list := s.PlacedUses(p)
	for _, u := range list {
		if repeated := s.Multiplicity(u.Consumer, u.Use); len(repeated) > 0 {
			s.Record(p, false, "repeated inside a reduce", state.Number{Name: "times", Value: s.Points(repeated)})
			return false
		}
		if u.Binder != nil && u.Binder.Op == ir.OpStage && s.Opt.Profile.SharedStages && s.OperandReuse(p) > 1 {
			s.Record(p, false, "rows of a product share its columns, blocks would read all of them each")
			return false
		}
		if u.Binder != nil && s.FactsOf(p.Body).Weights && s.FactsOf(u.Consumer.Body).Weights && rowsOf(s.Exprs, u) < s.Opt.Profile.Workers {
			s.Record(p, false, "both read weights: a grid barrier")
			return false
		}
		if breaksStream(s, p, u) {
			s.Record(p, false, "rows of several matrices would be read in turn")
			return false
		}
	}
	if !jointlyInjective(s.Graph, list) {
		s.Record(p, false, "points are read more than once", state.Number{Name: "uses", Value: int64(len(list))}, state.Number{Name: "readers", Value: int64(len(s.Users[p.ID]))})
		return false
	}
	if crowded(s, p) || losesWorkers(s, p, list) {
		return false
	}
	if stagesElsewhere(s, p, list) {
		s.Record(p, false, "its stages would be rows of a padding, or of single elements")
		return false
	}
	if keepsRow(s, p) {
		s.Record(p, false, "it takes a fold of its row in, and windows read it")
		return false
	}
	if !s.ReplaceReads(p, s.AsBody(p), state.BodiesOnly) {
		return false
	}
	s.Record(p, true, "every point is read once", state.Number{Name: "points", Value: s.Points(p.Ranges)})
	return true
}

// losesWorkers reports that a reader folds the points of p, which are folds themselves, in fewer
// work units than p has: the loss of each row of a batch takes a worker, their mean is one point.
// What is then made one after the other must cost no more than a launch.
func losesWorkers(s *state.State, p *state.Value, uses []state.PlacedUse) bool {
	if !s.FactsOf(p.Body).Reduce || !expr.ConstantExtents(p.Ranges) { // caches of all sizes are one kernel
		return false
	}
	most, units := max(s.Opt.Profile.Workers, 1), int64(expr.ManyOps)
	for _, u := range uses {
		if u.Binder != nil && u.Binder.Op == ir.OpReduce {
			units = min(units, expr.Saturate(rowsOf(s.Exprs, u), gridChunks(s, s.Points([]*ir.UOp{u.Binder.ReduceRange()}), 1)))
		}
	}
	before, after := min(most, s.Points(p.Ranges)), min(most, units)
	if after >= before {
		return false
	}
	work := s.Work(p.Body, p.Ranges)
	if lost := work/after - work/before; lost > s.Opt.Profile.Launch {
		s.Record(p, false, "workers would wait for few rows", state.Number{Name: "lost", Value: lost}, state.Number{Name: "launch", Value: s.Opt.Profile.Launch}, state.Number{Name: "units", Value: units})
		return true
	}
	return false
}
