package schedule

import (
	"slices"

	"tgc/ir"
)

// oncePerRow reports a reduce that can move into its only reader without being
// computed more often, however large what it reads: it is read outside what its
// reader's folds run over, each point by one setting of the reader's outer loops.
// A row's maximum, mean or norm thus stands in front of the loop over the row,
// computed by whoever computes the row. That needs rows short enough that
// sharing one among blocks would not pay for a launch.
func (s *scheduler) oncePerRow(p *value) bool {
	f := s.factsOf(p.body)
	readers := s.consumers(p)
	if f.state || f.stage || !f.constant || p.pinned || p.beside || p.target >= 0 || len(readers) != 1 || !constantExtents(p.ranges) {
		return false
	}
	c := readers[0]
	loops := c.storeLoops()
	if len(p.ranges) == 0 || len(p.ranges) > len(loops) || !constantExtents(loops) {
		return false
	}
	rows, inner := loops[:len(p.ranges)], loops[len(p.ranges):]
	for _, u := range s.usesOf(c, p) {
		if !slices.Equal(u.load.Indices(), rows) {
			return false
		}
	}
	for i, r := range rows {
		if s.points([]*ir.UOp{r}) != s.points(p.ranges[i:i+1]) {
			return false
		}
	}
	if len(inner) > 1 || len(inner) == 1 && s.points(inner)%s.opt.Profile.RowLanes != 0 {
		return false // nobody could share the row's points
	}
	if s.foldsAlong(c, inner) {
		return false // a product with a matrix: its rows and columns are tiled together
	}
	profile := &s.opt.Profile
	return s.work(p.body, nil) <= profile.LaunchEdge && s.work(c.body, inner) <= profile.LaunchEdge
}

// foldsAlong reports a reduce in c's body that depends on one of the ranges.
func (s *scheduler) foldsAlong(c *value, ranges []*ir.UOp) bool {
	for _, u := range ir.Toposort(c.body) {
		if (u.Op == ir.OpReduce || u.Op == ir.OpStage) && s.dependsOn(u, ranges...) {
			return true
		}
	}
	return false
}

// rowsOf is the number of points of the reader's store loops that the index of
// a use distinguishes.
func (s *scheduler) rowsOf(u placedUse) int64 {
	var rows []*ir.UOp
	for _, r := range u.consumer.storeLoops() {
		if slices.Contains(s.free.of(u.load), r) {
			rows = append(rows, r)
		}
	}
	return s.points(rows)
}
