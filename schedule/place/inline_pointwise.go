package place

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// InlinePointwise: a cheap pointwise value is recomputed in all its
// readers.
func InlinePointwise(s *state.State, p *state.Value) bool {
	if !s.IsPointwise(p) {
		return false
	}
	list := s.PlacedUses(p)
	consumers := s.Users[p.ID]
	full := fullRankOperands(s.Exprs, p)
	ops := s.Operations(p.Body)
	if len(consumers) > 1 && full > 1 {
		s.Record(p, false, "several readers, several operands", state.Number{Name: "operands", Value: int64(full)})
		return false
	}
	if keepsRow(s, p) {
		s.Record(p, false, "it takes a fold of its row in, and windows read it")
		return false
	}
	if gathersAgain(s, p, list) {
		s.Record(p, false, "its elements would be gathered again", state.Number{Name: "uses", Value: int64(len(list))})
		return false
	}
	if turnsAgain(s, p, list) {
		s.Record(p, false, "its rows are columns, which would be read twice", state.Number{Name: "uses", Value: int64(len(list))})
		return false
	}
	if ops > 1 && forEachRow(s, p, list) {
		s.Record(p, false, "it would be made for each row of a cache")
		return false
	}
	if convertsAgain(s, p, list) {
		s.Record(p, false, "its numbers would be converted again")
		return false
	}
	var total int64
	for _, u := range list {
		scope := s.Operations(u.Consumer.Body)
		if u.Binder != nil {
			scope = 0
			for _, v := range u.Values {
				scope += s.Operations(v)
			}
		}
		free := len(p.Ranges) == 0
		outside := u.Binder == nil && (full <= 1 || len(consumers) == 1 && len(list) == 1)
		single := u.Binder != nil && len(list) == 1 && len(s.Multiplicity(u.Consumer, u.Use)) == 0
		cheap := ops <= repeatLimit(s, p, u, full, scope)
		if !(free || outside || single || cheap) {
			s.Record(p, false, "recomputed too often", state.Number{Name: "ops", Value: ops}, state.Number{Name: "limit", Value: repeatLimit(s, p, u, full, scope)}, state.Number{Name: "times", Value: s.Points(s.Multiplicity(u.Consumer, u.Use))})
			return false
		}
		if !leadsToTable(s.Graph, p, u) {
			total += expr.Saturate(ops, s.Points(s.Scope(u.Consumer, u.Use)))
		}
	}
	if full == 0 && len(p.Ranges) > 0 && ops > s.Opt.Profile.InlineOps && total > s.Opt.Profile.TableOps {
		s.Record(p, false, "a table is cheaper", state.Number{Name: "ops", Value: total}, state.Number{Name: "limit", Value: s.Opt.Profile.TableOps})
		return false
	}
	if crowded(s, p) {
		return false
	}
	if !s.ReplaceReads(p, s.AsBody(p), state.IntoAddresses) {
		return false
	}
	s.Record(p, true, "cheap to recompute", state.Number{Name: "ops", Value: ops})
	return true
}

// gathersAgain reports elements that memory names, which a GPU would gather more than once: two
// loads, one after the other. Of elements that are named one by one a second time is enough, of
// whole rows gatherTimes. What a block can keep is not asked: it is staged.
func gathersAgain(s *state.State, p *state.Value, list []state.PlacedUse) bool {
	if !s.Opt.Profile.SharedStages || len(p.Ranges) == 0 {
		return false
	}
	last, rows, each := p.Ranges[len(p.Ranges)-1], false, false
	for _, u := range ir.Toposort(p.Body) {
		if u.Op != ir.OpLoad {
			continue
		}
		for _, x := range u.Indices() {
			rows = rows || expr.HasLoad(x)
			each = each || expr.HasLoad(x) && slices.Contains(s.Free.Of(x), last)
		}
	}
	if light, _, _ := s.IsLight(p, p.Ranges); !rows || light {
		return false
	}
	times := int64(0)
	for _, u := range list {
		times = expr.Saturate(1, times+max(s.Points(s.Multiplicity(u.Consumer, u.Use)), 1))
	}
	return each && times > 1 || times >= gatherTimes
}

// gatherTimes is how often rows that memory names are read from where they lie. Running sums in
// blocks of 64 of 256 gathered rows of 256 take 6.3 us of an H200, and 4.1 where they are stored.
const gatherTimes = 64

// leadsToTable reports a reader that becomes a table itself once p is in it: only
// the end of such a chain is stored. A prompt's angles are not stored, but their
// sines are, which every layer would otherwise compute again from the angles.
func leadsToTable(s *state.Graph, p *state.Value, u state.PlacedUse) bool {
	c := u.Consumer
	return u.Binder == nil && s.IsPointwise(c) && !c.Pinned && c.Target < 0 && s.Points(c.Ranges) <= s.Points(p.Ranges) && fullRankOperands(s.Exprs, c) == 1
}

// crowded reports that a reader of p would grow past BodyOps. A value that costs no
// more than its read may always be inlined.
func crowded(s *state.State, p *state.Value) bool {
	ops := s.Operations(p.Body)
	if ops <= 1 {
		return false
	}
	for _, c := range s.Consumers(p) {
		if sum := ops + s.Operations(c.Body); sum > s.Opt.Profile.BodyOps {
			s.Record(p, false, "the reader grows too large", state.Number{Name: "ops", Value: sum}, state.Number{Name: "limit", Value: s.Opt.Profile.BodyOps})
			return true
		}
	}
	return false
}

// repeatLimit is the operation count up to which p may be recomputed at a use.
// Where it would be repeated for every output row and could be staged instead,
// only the smallest values are, and those that memory holds in fewer bytes; one that is too large to be kept by a block, or that
// would draw a reduce into its readers, is stored, unless it has no operand at all.
func repeatLimit(s *state.State, p *state.Value, u state.PlacedUse, operands int, scope int64) int64 {
	if !s.Opt.Off.Has(state.StagePrologues) && len(s.Multiplicity(u.Consumer, u.Use)) > 0 {
		if expr.IsNarrowing(p.Body) || readAsHalves(s, p, u.Consumer) {
			return 0
		}
		if widens(s.Exprs, p) || readsAround(s.Graph, p) {
			return s.Opt.Profile.InlineOps // its price says how often
		}
		if operands > 0 && drawsReduce(s, p) {
			return 0
		}
		if light, _, _ := s.IsLight(p, p.Ranges); light {
			return s.Opt.Profile.RepeatOps
		}
		if operands > 0 && s.Points(p.Ranges) > s.Opt.Profile.RepeatCap {
			return 0
		}
	}
	return max(s.Opt.Profile.InlineOps, scope/4)
}

// widens reports a value that takes more bytes than the elements of memory that it is made of: small integers times
// the scales of their groups, say. Stored it would be written and read at its own width.
func widens(s *expr.Exprs, p *state.Value) bool {
	own, bytes := expr.Sorted(p.Ranges), 0
	for _, u := range ir.Toposort(p.Body) {
		if u.Op == ir.OpLoad && u.Src[0].Op != ir.OpTable && ir.HoldsRanges(s.Free.Of(u), own) {
			bytes += u.DType.Size()
		}
	}
	return bytes > 0 && bytes < p.Body.DType.Size()
}

// readsAround reports a value that reads around a store (forward-stores): rows of a cache, but for one that is stored in the same step.
// It is what its readers would read of the cache itself, but for a test.
func readsAround(s *state.Graph, p *state.Value) bool {
	return slices.ContainsFunc(s.ReadMemo[p.ID].Versions, func(slot int) bool { return s.Versions[slot].Under >= 0 })
}

// forEachRow reports a row that is stored, and that a value chooses in place of one of many that it reads: made there it would be
// made for each of them.
func forEachRow(s *state.State, p *state.Value, list []state.PlacedUse) bool {
	return slices.ContainsFunc(list, func(u state.PlacedUse) bool {
		c := u.Consumer
		return u.Binder == nil && readsAround(s.Graph, c) && s.Points(c.Ranges) > s.Points(p.Ranges)
	})
}

// convertsAgain reports numbers of few bytes, of no weights, that many rows read on a CPU. Its lanes are rows then, so that
// each number is converted by itself; wide ones are operands as they lie in memory. Weights are
// decoded into panels. 128 queries of 32 heads of 64, keys and values of f16, 15 layers on two Zen 5 cores: 14.8 ms,
// of f32 7.2.
func convertsAgain(s *state.State, p *state.Value, list []state.PlacedUse) bool {
	most := s.Opt.Profile.PanelReuse
	return most > 0 && !s.FactsOf(p.Body).Weights && widens(s.Exprs, p) && slices.ContainsFunc(list, func(u state.PlacedUse) bool {
		return s.Points(s.Multiplicity(u.Consumer, u.Use)) >= most
	})
}

// drawsReduce reports that inlining p would put a reduce into loops, while other
// readers of that reduce need it outside of any loop. An example is the scale of a
// group of activations, computed from the group's largest value, which the rounding
// of the group needs too. If p is stored, the kernel that stores it and the other
// readers' kernel compute the reduce themselves; if p is inlined, the reduce is
// stored for both, by a launch of its own. LLaMA 3.2 3B int8 reads 128 tokens in 338
// launches instead of 422 (H200, 11,670 -> 11,920 tokens a second). It does not
// apply to reduces that every block computes for itself, whatever p is.
func drawsReduce(s *state.State, p *state.Value) bool {
	var r state.Reads
	state.CollectReads(p.Body, new(ir.Visited), &r)
	for _, id := range r.Values {
		q := s.Values[id]
		if f := s.FactsOf(q.Body); s.Height(q.Body) != 1 || f.Weights || f.State || q.Pinned || q.Target >= 0 || len(s.Users[id]) < 2 {
			continue
		}
		inLoop := func(u state.PlacedUse) bool { return u.Binder != nil || len(s.Multiplicity(u.Consumer, u.Use)) > 0 }
		if light, _, _ := s.IsLight(q, q.Ranges); light {
			continue // every block computes it
		}
		if readsLightReduce(s, q) {
			continue // which goes into it, and would run again wherever it does
		}
		if s.Work(q.Body, nil) <= s.Opt.Profile.StageWork && !slices.ContainsFunc(s.PlacedUses(q), inLoop) {
			return true
		}
	}
	return false
}

// readsLightReduce reports a value that reads a reduce which every block computes for itself:
// the sum of squares of a short row, say.
func readsLightReduce(s *state.State, q *state.Value) bool {
	return slices.ContainsFunc(s.ReadMemo[q.ID].Values, func(id int) bool {
		r := s.Values[id]
		light, _, _ := s.IsLight(r, r.Ranges)
		return light && s.FactsOf(r.Body).Reduce
	})
}

// fullRankOperands counts the buffers and values that a pointwise value reads
// with all its ranges.
func fullRankOperands(s *expr.Exprs, p *state.Value) int {
	var found []*ir.UOp
	own := expr.Sorted(p.Ranges)
	for _, u := range ir.Toposort(p.Body) {
		if (u.Op == ir.OpLoad || u.Op == ir.OpField) && u.Src[0].Op != ir.OpTable && ir.HoldsRanges(s.Free.Of(u), own) && !slices.Contains(found, u.Src[0]) {
			found = append(found, u.Src[0])
		}
	}
	if len(own) == 0 {
		return 0
	}
	return len(found)
}
