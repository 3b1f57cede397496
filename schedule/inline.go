package schedule

import (
	"slices"

	"tgc/ir"
)

// joinProjections (R5p): a value that is arithmetic on projections of a tuple,
// read only in values that hold the same tuple, goes into them.
func (s *scheduler) joinProjections(p *value) bool {
	if !s.holdsTuple(p) {
		return false
	}
	for _, u := range s.placedUses(p) {
		if u.binder != nil {
			return false
		}
		have := s.tuplesOf(u.consumer.body)
		for _, t := range s.tuplesOf(s.instantiate(p, u.load.Indices())) {
			same := func(h *ir.UOp) bool {
				return h == t || s.isCascade(h) && s.isCascade(t) && h.Src[0] == t.Src[0] && h.ReduceRange() == t.ReduceRange()
			}
			if !slices.ContainsFunc(have, same) {
				return false
			}
		}
	}
	if !s.replaceReads(JoinProj, p, s.asBody(p)) {
		return false
	}
	s.record(JoinProj, p, true, "readers hold the same tuple")
	return true
}

// holdsTuple reports that the value's only reduces are tuples or maxima.
func (s *scheduler) holdsTuple(p *value) bool {
	return s.height(p.body) > 0 && len(s.tuplesOf(p.body)) > 0
}

// isCascade reports a softmax tuple or a maximum, which can join one.
func (s *scheduler) isCascade(u *ir.UOp) bool {
	_, softmax := s.a.IsSoftmax(u)
	return softmax || isMaximum(u)
}

// isTuple reports a tuple reduce, or a maximum that can join one.
func isTuple(u *ir.UOp) bool {
	return u.Op == ir.OpReduce && (u.Arg.(ir.ReduceArg).Op == ir.OpInvalid || isMaximum(u))
}

// tuplesOf lists the outermost reduces of an expression when they are all
// tuples or maxima, else none.
func (s *scheduler) tuplesOf(u *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	plain := false
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if s.height(u) == 0 || !seen.Add(u) {
			return
		}
		switch {
		case isTuple(u):
			out = append(out, u)
			return
		case u.Op == ir.OpReduce || u.Op == ir.OpStage:
			plain = true
			return
		}
		for _, src := range u.Src {
			visit(src)
		}
	}
	visit(u)
	if plain {
		return nil
	}
	return out
}

// pointFusion (R1p): every point of p is read once, nowhere inside a loop that
// would repeat it: p moves into its readers without recomputation.
func (s *scheduler) pointFusion(p *value) bool {
	list := s.placedUses(p)
	for _, u := range list {
		if repeated := s.multiplicity(u.consumer, u.use); len(repeated) > 0 {
			s.record(PointFusion, p, false, "repeated inside a reduce", Number{"times", s.points(repeated)})
			return false
		}
		if u.binder != nil && s.factsOf(p.body).weights && s.factsOf(u.consumer.body).weights && s.rowsOf(u) < s.opt.Profile.Parallel {
			s.record(PointFusion, p, false, "both read weights: a grid barrier")
			return false
		}
	}
	if !s.jointlyInjective(list) {
		s.record(PointFusion, p, false, "points are read more than once", Number{"uses", int64(len(list))}, Number{"readers", int64(len(s.users[p.id]))})
		return false
	}
	if s.crowded(PointFusion, p) {
		return false
	}
	if !s.replaceReads(PointFusion, p, s.asBody(p)) {
		return false
	}
	s.record(PointFusion, p, true, "every point is read once", Number{"points", s.points(p.ranges)})
	return true
}

// inlinePointwise (R1): a cheap pointwise value is recomputed in all its
// readers.
func (s *scheduler) inlinePointwise(p *value) bool {
	if !s.isPointwise(p) {
		return false
	}
	list := s.placedUses(p)
	consumers := s.users[p.id]
	full := s.fullRankOperands(p)
	ops := s.operations(p.body)
	if len(consumers) > 1 && full > 1 {
		s.record(Inline, p, false, "several readers, several operands", Number{"operands", int64(full)})
		return false
	}
	var total int64
	for _, u := range list {
		scope := s.operations(u.consumer.body)
		if u.binder != nil {
			scope = 0
			for _, v := range u.values {
				scope += s.operations(v)
			}
		}
		free := len(p.ranges) == 0
		outside := u.binder == nil && (full <= 1 || len(consumers) == 1 && len(list) == 1)
		single := u.binder != nil && len(list) == 1 && len(s.multiplicity(u.consumer, u.use)) == 0
		cheap := ops <= s.repeatLimit(p, u, full, scope)
		if !(free || outside || single || cheap) {
			s.record(Inline, p, false, "recomputed too often", Number{"ops", ops}, Number{"limit", s.repeatLimit(p, u, full, scope)}, Number{"times", s.points(s.multiplicity(u.consumer, u.use))})
			return false
		}
		if !s.leadsToTable(p, u) {
			total += saturate(ops, s.points(s.scope(u.consumer, u.use)))
		}
	}
	if full == 0 && len(p.ranges) > 0 && ops > s.opt.Profile.InlineOps && total > s.opt.Profile.TableOps {
		s.record(Inline, p, false, "a table is cheaper", Number{"ops", total}, Number{"limit", s.opt.Profile.TableOps})
		return false
	}
	if s.crowded(Inline, p) {
		return false
	}
	if !s.replaceReads(Inline, p, s.asBody(p)) {
		return false
	}
	s.record(Inline, p, true, "cheap to recompute", Number{"ops", ops})
	return true
}

// leadsToTable reports a reader that is a table itself once p is in it: what is
// stored is the end of such a chain. A prompt's angles are no table beside that of
// their sines, which every layer would compute again from them.
func (s *scheduler) leadsToTable(p *value, u placedUse) bool {
	c := u.consumer
	return u.binder == nil && s.isPointwise(c) && !c.pinned && c.target < 0 && s.points(c.ranges) <= s.points(p.ranges) && s.fullRankOperands(c) == 1
}

// crowded reports that a reader of p would grow past BodyOps. Values that cost no
// more than their read may always go.
func (s *scheduler) crowded(rule Rule, p *value) bool {
	ops := s.operations(p.body)
	if ops <= 1 {
		return false
	}
	for _, c := range s.consumers(p) {
		if sum := ops + s.operations(c.body); sum > s.opt.Profile.BodyOps {
			s.record(rule, p, false, "the reader grows too large", Number{"ops", sum}, Number{"limit", s.opt.Profile.BodyOps})
			return true
		}
	}
	return false
}

// repeatLimit is the operation count up to which p may be recomputed at a use.
// Where it would be repeated for every output row and could be staged instead,
// only the smallest values are; one that is too large to be kept by a block is
// stored, unless it has no operand at all.
func (s *scheduler) repeatLimit(p *value, u placedUse, operands int, scope int64) int64 {
	if s.opt.Rules.Has(StagePrologue) && len(s.multiplicity(u.consumer, u.use)) > 0 {
		if isNarrowing(p.body) {
			return 0
		}
		if light, _, _ := s.isLight(p, p.ranges); light {
			return s.opt.Profile.RepeatOps
		}
		if operands > 0 && (s.points(p.ranges) > s.opt.Profile.RepeatCap || s.drawsReduce(p)) {
			return 0
		}
	}
	return max(s.opt.Profile.InlineOps, scope/4)
}

// drawsReduce reports a value that loops read and whose place in them a reduce would
// take that others read outside of any loop: the scale of a group of activations,
// made of its largest, which the rounding of the group needs. While p is stored, both
// can compute that reduce, in one kernel; else it is stored for both, a launch of its
// own: LLaMA 3.2 3B int8 reads 128 tokens in 338 launches instead of 422 (H200, 11,670 ->
// 11,920 tokens a second). Values that a block can keep stay in their readers: batches of
// 8 lost by it.
func (s *scheduler) drawsReduce(p *value) bool {
	var r reads
	collectReads(p.body, new(ir.Visited), &r)
	for _, id := range r.values {
		q := s.values[id]
		if f := s.factsOf(q.body); s.height(q.body) != 1 || f.weights || f.state || q.pinned || q.target >= 0 || len(s.users[id]) < 2 {
			continue
		}
		inLoop := func(u placedUse) bool { return u.binder != nil || len(s.multiplicity(u.consumer, u.use)) > 0 }
		if light, _, _ := s.isLight(q, q.ranges); light {
			continue // every block computes it
		}
		if s.work(q.body, nil) <= s.opt.Profile.StageWork && !slices.ContainsFunc(s.placedUses(q), inLoop) {
			return true
		}
	}
	return false
}

// fullRankOperands counts the buffers and values that a pointwise value reads
// with all its ranges.
func (s *scheduler) fullRankOperands(p *value) int {
	var found []*ir.UOp
	own := sorted(p.ranges)
	for _, u := range ir.Toposort(p.body) {
		if (u.Op == ir.OpLoad || u.Op == ir.OpField) && u.Src[0].Op != ir.OpTable && contains(s.free.of(u), own) && !slices.Contains(found, u.Src[0]) {
			found = append(found, u.Src[0])
		}
	}
	if len(own) == 0 {
		return 0
	}
	return len(found)
}

// broadcastReduce (R4i): a light reduce is recomputed in every reader, once per
// block. R4 then lets it share the reader's loop, or it is a loop in front.
func (s *scheduler) broadcastReduce(p *value) bool {
	f := s.factsOf(p.body)
	if !f.reduce || p.beside {
		return false
	}
	light, _, work := s.isLight(p, nil)
	if (!light || s.roundsRepeated(p)) && s.oncePerRow(p) {
		if !s.replaceReads(Broadcast, p, s.asBody(p)) {
			return false
		}
		s.record(Broadcast, p, true, "once for each row of its reader", Number{"points", s.points(p.ranges)}, Number{"work", work})
		return true
	}
	if !light {
		s.record(Broadcast, p, false, s.whyHeavy(p, nil), Number{"work", work}, Number{"limit", s.stageWork(s.points(p.ranges))})
		return false
	}
	total := s.work(p.body, p.ranges)
	for _, u := range s.placedUses(p) {
		if s.isDynamic(u.load.Indices(), u.closed) {
			s.record(Broadcast, p, false, "read inside a reduce")
			return false
		}
		if other := s.work(u.consumer.body, u.consumer.storeLoops()); total > other {
			s.record(Broadcast, p, false, "more work than its reader", Number{"work", total}, Number{"reader", other})
			return false
		}
		if s.repeatedByBlocks(p, u) {
			s.record(Broadcast, p, false, "too much work for every block", Number{"work", total}, Number{"limit", s.stageWork(s.points(p.ranges))})
			return false
		}
	}
	if !s.replaceReads(Broadcast, p, s.asBody(p)) {
		return false
	}
	s.record(Broadcast, p, true, "light", Number{"work", work}, Number{"limit", s.stageWork(s.points(p.ranges))})
	return true
}

// repeatedByBlocks reports that all points of p are too much work for a block
// while the ranges that its index leaves out are many: blocks divide those among
// them, and each would compute all of p. A prompt's norms are stored therefore,
// a token's are not.
func (s *scheduler) repeatedByBlocks(p *value, u placedUse) bool {
	others := without(sorted(u.consumer.storeLoops()), s.free.of(u.load))
	return s.points(others) > s.opt.Profile.TileCap && s.work(p.body, p.ranges) > s.stageWork(s.points(p.ranges))
}

// roundsRepeated reports a light reduce that is too much work for every block and read
// where its rows are rounded to halves: the rounded rows are stored in any case, and the norm in
// front of them is no launch of its own. LLaMA 3.2 1B reads 128 tokens in f16 mode in
// 130 launches instead of 162, as many as in exact mode.
func (s *scheduler) roundsRepeated(p *value) bool {
	return slices.ContainsFunc(s.placedUses(p), func(u placedUse) bool {
		return widened(u.consumer.body) != nil && s.repeatedByBlocks(p, u)
	})
}

// isDynamic reports an index that uses closed ranges or depends on memory.
func (s *scheduler) isDynamic(index, closed []*ir.UOp) bool {
	for _, x := range index {
		if s.dependsOn(x, closed...) || hasLoad(x) {
			return true
		}
	}
	return false
}

// hasLoad reports that an index expression depends on memory.
func hasLoad(u *ir.UOp) bool {
	if u.Op == ir.OpLoad || u.Op == ir.OpReduce || u.Op == ir.OpField {
		return true
	}
	return u.Op != ir.OpRange && slices.ContainsFunc(u.Src, hasLoad)
}
