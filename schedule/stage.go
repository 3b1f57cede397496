package schedule

import (
	"slices"

	"tgc/ir"
)

// stagePrologue (R6p): a light value is computed by each block for itself, in
// front of its loops, and read as STAGE(p; axes) by every reader. Axes whose
// index holds a reduce range or a LOAD are staged; axes that are one function
// of the reader's own ranges at all uses stay outside. LayerNorm's row, q norm
// and RoPE in attention, top-k ids, the combine of a split reduce.
func (s *scheduler) stagePrologue(p *value) bool {
	if p.beside {
		s.record(StagePrologue, p, false, "stored with the tile that it is made of")
		return false
	}
	for _, u := range s.placedUses(p) {
		if s.repeatedByBlocks(p, u) {
			s.record(StagePrologue, p, false, "too much work for every block", Number{"work", s.work(p.body, p.ranges)}, Number{"limit", s.stageWork(s.points(p.ranges))})
			return false
		}
	}
	for _, c := range s.consumers(p) {
		staged, _ := s.stageAxes(c, p)
		var axes []*ir.UOp
		for j, r := range p.ranges {
			if staged[j] {
				axes = append(axes, r)
			}
		}
		light, size, work := s.isLight(p, axes)
		if n := s.opt.Profile.MatrixTokens; n > 0 && len(axes) > 0 && s.points(p.ranges) > s.opt.Profile.RepeatCap && s.factsOf(c.body).weights && s.weightReuse(c)%n == 0 {
			s.record(StagePrologue, p, false, "a matrix product reads many of its rows at once", Number{"points", s.points(p.ranges)}, Number{"limit", s.opt.Profile.RepeatCap})
			return false
		}
		if !light {
			s.record(StagePrologue, p, false, s.whyHeavy(p, axes), Number{"size", size}, Number{"cap", s.opt.Profile.StageCap}, Number{"work", work}, Number{"limit", s.stageWork(s.points(p.ranges))})
			return false
		}
		stored := len(axes) == 0 && c.target >= 0 // in the loops of its store, as in its own
		if once, again := s.stagedWork(p, staged, work); !stored && again > s.opt.Profile.StageWork && again > 2*once {
			s.record(StagePrologue, p, false, "its reduces would run again for every stage", Number{"work", again}, Number{"stored", once})
			return false
		}
		if len(axes) == 0 && !s.factsOf(p.body).reduce {
			s.record(StagePrologue, p, false, "no axis to stage")
			return false
		}
	}
	ok := s.replaceReads(StagePrologue, p, s.asStage(p))
	if ok {
		s.record(StagePrologue, p, true, "light", Number{"points", s.points(p.ranges)}, Number{"work", s.work(p.body, p.ranges)}, Number{"limit", s.stageWork(s.points(p.ranges))})
	}
	return ok
}

// asStage replaces the reads of p in a consumer by reads of one stage.
func (s *scheduler) asStage(p *value) replacement {
	stages := make(map[*value]*ir.UOp)
	staged := make(map[*value][]bool)
	return replacement{
		height: func(c *value) int {
			axes, outside := s.stageAxes(c, p)
			staged[c], stages[c] = axes, s.stageOf(p, axes, outside)
			return s.height(stages[c])
		},
		with: func(c *value, load *ir.UOp) *ir.UOp {
			var index []*ir.UOp
			for j, x := range load.Indices() {
				if staged[c][j] {
					index = append(index, x)
				}
			}
			if len(index) == 0 {
				return stages[c]
			}
			return s.a.Load(stages[c], index...)
		},
	}
}

// stagedWork is the work of computing all points of p once, in its own loops,
// and that of its stages together: more where a reduce depends on a staged axis
// but not on one outside (a row's sum, staged for every column).
func (s *scheduler) stagedWork(p *value, staged []bool, work int64) (once, again int64) {
	var outside []*ir.UOp
	for j, r := range p.ranges {
		if !staged[j] {
			outside = append(outside, r)
		}
	}
	return s.work(p.body, p.ranges), saturate(work, s.points(outside))
}

// stageAxes says which axes of p are staged in consumer c, and the index of the
// others, the same at all uses.
func (s *scheduler) stageAxes(c, p *value) (staged []bool, outside []*ir.UOp) {
	staged = make([]bool, len(p.ranges))
	outside = make([]*ir.UOp, len(p.ranges))
	for _, u := range s.usesOf(c, p) {
		for j, x := range u.load.Indices() {
			if outside[j] == nil {
				outside[j] = x
			}
			if x != outside[j] || s.isDynamic([]*ir.UOp{x}, u.closed) {
				staged[j] = true
			}
		}
	}
	return staged, outside
}

// stageOf is STAGE(p; staged axes), or p itself when no axis is staged.
func (s *scheduler) stageOf(p *value, staged []bool, outside []*ir.UOp) *ir.UOp {
	index := slices.Clone(outside)
	var axes []*ir.UOp
	for j, r := range p.ranges {
		if staged[j] {
			index[j] = s.newRange(r.Src[0])
			axes = append(axes, index[j])
		}
	}
	body := s.instantiate(p, index)
	if len(axes) == 0 {
		return body
	}
	return s.closeStage(s.a.Make(ir.OpStage, body.DType, ir.StageArg{}, append([]*ir.UOp{body}, axes...)...))
}
